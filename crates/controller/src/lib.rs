//! Controllers: sources, reconcilers, context, manager.
//!
//! A [`Controller`] consists of a kind, the function that reconciles it, and the other kinds that
//! it depends on. A [`Manager`] runs controllers against one or several clusters. A reconcile reads
//! and writes through its [`Context`]. A [`LeaderElector`] elects one of several processes, and
//! controllers that need leadership run only in that process.
//!
//! The implementation is type-erased: only [`Controller`] and the methods of [`Context`] are
//! generic, so that each further kind adds little compile time.

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
pub use manager::{
    AnyRunnable, Manager, ManagerOptions, Reconciled, RunContext, Runnable, ShardingOptions,
    until_signal,
};
pub use object::{QuantityExt, Readiness, Request};
pub use reads::{MapContext, Reference, UndeclaredReads};
#[doc(hidden)]
pub use reconcile::signature;
pub use reconcile::{Action, Cleanup, Reconcile, WithContext, WithState};
pub use record::{Cause, HotLoop, Outcome, QueuedRequest, ReconcileLog, ReconcileRecord, Write};
pub use source::{Trigger, TriggerError, Triggers, WatchStream, event, predicate, trigger};
pub use state::{Kinds, ReadDeclarations, Reads, StateContext};
pub use worker::owners::{ShardOwner, ShardOwners};

/// kube's `finalizer` function, for reconcile functions with kube's signature that handle deletion
/// themselves. Other controllers declare a finalizer with [`Controller::finalizer`].
pub mod finalizer {
    pub use crate::reconcile::kube_finalizer::{Error, Event, finalizer};
}

/// The metrics registry, and metrics with labels for an operator's own use.
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

// Types of lower crates that occur in the signatures above, re-exported so that higher crates need
// no further dependency.
pub use opkit_apimachinery::conditions::{Condition, ConditionStatus, Conditions};
pub use opkit_apimachinery::quantity::{Quantity, QuantityError};
pub use opkit_cache::{
    CachedClient, DynamicObject, Informer, InformerOptions, Lister, Meta, Scope, Selection,
    ShardKey, Stored,
};
pub use opkit_client::{Kind, Object, ObjectKey};
pub use opkit_events::{EventApi, EventRecorder, EventType, ObjectReference};
pub use opkit_leaderelection::{
    LeaderElectionError, LeaderElectionMetrics, LeaderElectionOptions, LeaderElector,
    LeaderWatchdog, LeaderWork, Leadership, OwnedSlots, ShardMember, SlotAssignment, SlotPermit,
    WorkGuard,
};
pub use opkit_servers::metrics::MetricsRegistry;
pub use opkit_servers::{
    Health, HealthServer, HealthServerOptions, HttpServer, MetricsServer, MetricsServerOptions,
    ServerError,
};
pub use opkit_workqueue::Reasons;
