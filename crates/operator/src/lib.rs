//! The Operator value: composes controllers, runs them, prints what they need.
//!
//! [`Operator`] is the single source of truth: from it the binary runs, and prints its CRDs. This
//! room and the command line are the only ones that print, read arguments and exit.

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
pub use operator::{MakeState, MakeStateWith, Operator, RunOptions, ServerAddresses};

// What an operator's author names, so that the facade needs no further dependency.
/// The crate whose derive `Args` declares the flags of [`Operator::args`]; the derive needs
/// `use opkit::clap;`.
pub use clap;
pub use opkit_controller::{
    Action, AnyController, AnyRunnable, ApplyError, Cause, Cleanup, Condition, ConditionStatus,
    Conditions, Context, Controller, DynamicObject, Error, EventApi, EventRecorder, EventType,
    EverySource, HotLoop, InformerOptions, Kind, LeaderElectionOptions, Leadership, Live,
    ManagerError, MapContext, MetricsRegistry, MissingPermissions, Object, ObjectKey, Outcome,
    Permission, Quantity, QuantityError, QuantityExt, ReadError, Readiness, Reads, Reasons,
    Reconcile, ReconcileLog, ReconcileRecord, RecordError, Reference, Request, Result, RunContext,
    Runnable, Scope, Selection, Source, StateContext, Stored, Trigger, TriggerError, Triggers,
    Write, WriteError, event, finalizer, limiter, metrics, predicate, trigger,
};
pub use opkit_manifests::PolicyRule;
// What generated code names.
#[doc(hidden)]
pub use opkit_controller::signature;
#[doc(hidden)]
pub use opkit_manifests::kinds;
/// The crate behind [`Operator::metrics`], for metrics that [`metrics`] does not offer.
pub use prometheus_client;
/// What stops a runnable, and [`Operator::run_with`].
pub use tokio_util::sync::CancellationToken;
