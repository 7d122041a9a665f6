//! [`Operator`]: composes controllers, runs them, and prints the manifests that they need.
//!
//! The `Operator` value is the single source of truth: the binary runs from it and prints its CRDs
//! from it. Only this crate and the command line print, read arguments and exit.

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

// Re-exports that an operator's code names, so that the facade needs no further dependency.
/// Crate whose derive `Args` declares the flags of [`Operator::args`]; the derive needs
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
// Names that generated code uses.
#[doc(hidden)]
pub use opkit_controller::signature;
#[doc(hidden)]
pub use opkit_manifests::kinds;
/// Crate that implements [`Operator::metrics`], for metric types that [`metrics`] does not have.
pub use prometheus_client;
/// Token that stops a runnable, and [`Operator::run_with`].
pub use tokio_util::sync::CancellationToken;
