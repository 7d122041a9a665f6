//! Controllers: sources, reconcilers, context, manager.
//!
//! A [`Controller`] names a kind, the function that reconciles it, and what else it depends on. A
//! [`Manager`] runs controllers against one cluster. A reconcile works through its [`Context`].
//! A [`LeaderElector`] lets one of several processes work.
//!
//! Everything inside is type-erased: the typed shell is [`Controller`] and the methods of
//! [`Context`], so that a further kind costs little compile time.

mod action;
mod adopt;
mod applied;
mod apply;
mod context;
mod controller;
mod create_once;
mod cross_namespace;
mod delete;
mod desired;
mod error;
mod error_policy;
pub mod event;
pub mod finalizer;
mod hash;
mod live;
mod manager;
mod mark;
mod owner;
pub mod predicate;
mod prune;
mod quantity;
mod readiness;
mod reconcile;
mod record;
mod request;
mod run;
mod runnable;
#[doc(hidden)]
pub mod signature;
mod source;
mod spec;
mod state;
mod status;
mod status_schema;
mod unowned;
mod update_status;
mod why;
mod worker;

pub use action::{Action, Cleanup};
pub use context::Context;
pub use controller::{Controller, EverySource, Source};
pub use cross_namespace::Reference;
pub use error::{ApplyError, Error, ManagerError, ReadError, RecordError, Result, WriteError};
pub use live::Live;
pub use manager::{Manager, ManagerOptions, MissingPermissions, Permission, until_signal};
pub use quantity::QuantityExt;
pub use readiness::Readiness;
pub use reconcile::{Reconcile, WithContext, WithState};
pub use record::{Cause, HotLoop, Outcome, ReconcileLog, ReconcileRecord};
pub use request::Request;
pub use run::Write;
pub use runnable::{AnyRunnable, RunContext, Runnable};
pub use source::{MapContext, Trigger, TriggerError, Triggers, WatchStream, trigger};
pub use spec::{AnyController, WatchedKind};
pub use state::{Reads, StateContext};

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
