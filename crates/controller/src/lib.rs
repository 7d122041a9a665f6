//! Controllers: sources, reconcilers, context, manager.
//!
//! A [`Controller`] names a kind, the function that reconciles it, and what else it depends on. A
//! [`Manager`] runs controllers against one cluster. A reconcile works through its [`Context`].
//! A [`LeaderElector`] lets one of several processes work.
//!
//! Everything inside is type-erased: the typed shell is [`Controller`] and the methods of
//! [`Context`], so that a further kind costs little compile time.

mod action;
mod applied;
mod apply;
mod context;
mod controller;
mod desired;
mod error;
mod events;
mod finalizer;
mod hash;
mod leaderelection;
mod manager;
mod owner;
pub mod predicate;
mod readiness;
mod reconcile;
mod record;
mod source;
mod status;
mod update_status;
mod worker;

pub use action::{Action, Cleanup};
pub use context::Context;
pub use controller::{AnyController, Controller};
pub use error::{ApplyError, Error, ManagerError, ReadError, Result, WriteError};
pub use events::EventType;
pub use leaderelection::{
    LeaderElectionError, LeaderElectionMetrics, LeaderElectionOptions, LeaderElector,
    LeaderWatchdog, LeaderWork, Leadership, WorkGuard,
};
pub use manager::{Manager, ManagerOptions};
pub use readiness::Readiness;
pub use reconcile::{Reconcile, WithContext};
pub use record::{Outcome, ReconcileLog, ReconcileRecord};
pub use source::MapContext;

// What the methods above take and answer, so that rooms above need no further dependency.
pub use opkit_apimachinery::conditions::{Condition, ConditionStatus, Conditions};
pub use opkit_cache::{Scope, Selection};
pub use opkit_client::{Kind, Object, ObjectKey};
