//! Controllers: sources, reconcilers, context, manager.
//!
//! A [`Controller`] names a kind, the function that reconciles it, and what else it depends on. A
//! [`Manager`] runs controllers against one cluster. A reconcile works through its [`Context`].
//! A [`LeaderElector`] lets one of several processes work.
//!
//! Everything inside is type-erased: the typed shell is [`Controller`] and the methods of
//! [`Context`], so that a further kind costs little compile time.

mod builder;
mod context;
mod error;
mod manager;
mod object;
mod reads;
mod reconcile;
mod record;
mod source;
mod state;
mod worker;

pub use builder::{AnyController, Controller, EverySource, Source, WatchedKind};
pub use context::{Context, Live};
pub use error::{
    ApplyError, Error, ManagerError, MissingPermissions, Permission, ReadError, RecordError,
    Result, WriteError,
};
pub use manager::{AnyRunnable, Manager, ManagerOptions, RunContext, Runnable, until_signal};
pub use object::{QuantityExt, Readiness, Request};
pub use reads::{MapContext, Reference};
#[doc(hidden)]
pub use reconcile::signature;
pub use reconcile::{Action, Cleanup, Reconcile, WithContext, WithState};
pub use record::{Cause, HotLoop, Outcome, ReconcileLog, ReconcileRecord, Write};
pub use source::{Trigger, TriggerError, Triggers, WatchStream, event, predicate, trigger};
pub use state::{Reads, StateContext};

/// kube's `finalizer` function, for reconcilers in kube's shape that handle deletion themselves.
/// A controller declares a finalizer with [`Controller::finalizer`].
pub mod finalizer {
    pub use crate::reconcile::kube_finalizer::{Error, Event, finalizer};
}

/// The registry of metrics, and metrics with labels for an operator's own.
pub mod metrics {
    pub use opkit_servers::metrics::{Counter, Gauge, Histogram, Labelled, MetricsRegistry};
}

/// Rate limiters, for [`Controller::rate_limiter`].
pub mod limiter {
    pub use opkit_workqueue::{
        ItemExponential, ItemFastSlow, Jittered, MaxOf, RateLimiter, TokenBucket, WithMaxWait,
        default_controller_rate_limiter,
    };
}

// Types of the crates below in the signatures above, so that the crates above need no further
// dependency.
pub use opkit_apimachinery::conditions::{Condition, ConditionStatus, Conditions};
pub use opkit_apimachinery::quantity::{Quantity, QuantityError};
pub use opkit_cache::{DynamicObject, InformerOptions, Meta, Scope, Selection, Stored};
pub use opkit_client::{Kind, Object, ObjectKey};
pub use opkit_events::{EventApi, EventRecorder, EventType, ObjectReference};
pub use opkit_leaderelection::{
    LeaderElectionError, LeaderElectionMetrics, LeaderElectionOptions, LeaderElector,
    LeaderWatchdog, LeaderWork, Leadership, WorkGuard,
};
pub use opkit_servers::metrics::MetricsRegistry;
pub use opkit_servers::{
    Health, HealthServer, HealthServerOptions, HttpServer, MetricsServer, MetricsServerOptions,
    ServerError,
};
pub use opkit_workqueue::Reasons;
