//! [`Operator`]: composes controllers, runs them, and prints the manifests that they need.
//!
//! The `Operator` value is the single source of truth: the binary runs the controllers of the value
//! and prints its CRDs. Only this crate and the command line print, read arguments and exit.

mod arguments;
mod debug;
#[doc(hidden)]
pub mod entry;
mod error;
mod logging;
mod manifests;
mod namespaces;
mod operator;
mod rbac;
#[cfg(feature = "otlp")]
mod telemetry;

pub use error::OperatorError;
#[doc(hidden)]
pub use operator::CONVERSIONS;
pub use operator::{
    MakeState, MakeStateWith, Operator, OwnCertificateOptions, RunOptions, ServerAddresses,
    WebhookCertificates,
};

/// Crate whose derive `Args` declares the flags of [`Operator::args`]; the derive needs
/// `use opkit::clap;`.
pub use clap;
pub use opkit_certificates::Periods as CertificatePeriods;
pub use opkit_controller::ShardKey;
pub use opkit_debug::{
    FailedReconcile, ObjectName, OperatorPlan, PlannedEffect, PlannedObject, ReconciledKind,
};
#[doc(hidden)]
pub use opkit_manifests::kinds;
pub use opkit_manifests::{
    Model, ModelObject, MutatingPolicy, Part, PolicyResource, PolicyRule, Rbac, Settings,
    ValidatingPolicy, WebhookManifests,
};
/// Crate of the registry that [`Operator::metrics`] passes, for metric types that opkit does not
/// have.
pub use prometheus_client;
/// Token that stops a runnable or [`Operator::run_with`] when the token is cancelled.
pub use tokio_util::sync::CancellationToken;
