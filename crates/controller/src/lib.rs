//! Controllers: sources, reconcilers, context, manager.
//!
//! A [`Controller`] names a kind, the function that reconciles it, and what else it depends on. A
//! [`Manager`] runs controllers against one cluster. A reconcile works through its [`Context`].
//!
//! Everything inside is type-erased: the typed shell is [`Controller`] and the methods of
//! [`Context`], so that a further kind costs little compile time.

mod action;
mod adopt;
mod applied;
mod apply;
mod as_applied;
mod context;
mod controller;
mod delete;
mod desired;
mod error;
mod events;
mod finalizer;
mod hash;
mod live;
mod manager;
mod mark;
mod owner;
pub mod predicate;
mod prune;
mod readiness;
mod reconcile;
mod record;
mod run;
mod source;
mod status;
mod status_schema;
mod update_status;
mod worker;

pub use action::{Action, Cleanup};
pub use context::Context;
pub use controller::{AnyController, Controller};
pub use error::{ApplyError, Error, ManagerError, ReadError, Result, WriteError};
pub use events::EventType;
pub use live::Live;
pub use manager::{Manager, ManagerOptions};
pub use readiness::Readiness;
pub use reconcile::{Reconcile, WithContext};
pub use record::{Outcome, ReconcileLog, ReconcileRecord};
pub use source::MapContext;

// What the methods above take and answer, so that rooms above need no further dependency.
pub use opkit_apimachinery::conditions::{Condition, ConditionStatus, Conditions};
pub use opkit_cache::{Scope, Selection};
pub use opkit_client::{Kind, Object, ObjectKey};
