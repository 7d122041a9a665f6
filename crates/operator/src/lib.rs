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

pub use error::OperatorError;
pub use operator::{Operator, RunOptions};

// What an operator's author names, so that the facade needs no further dependency.
pub use opkit_controller::{
    Action, AnyController, ApplyError, Cleanup, Condition, ConditionStatus, Conditions, Context,
    Controller, Error, EventType, Kind, Live, ManagerError, MapContext, Object, ObjectKey, Outcome,
    ReadError, Readiness, Reconcile, ReconcileLog, ReconcileRecord, Result, Selection, WriteError,
    predicate,
};
