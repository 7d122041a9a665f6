//! Sources: determine the objects to reconcile for a change in the cache, or for a trigger.

mod deleted;
pub(crate) mod enqueue;
pub mod event;
pub mod predicate;
pub(crate) mod resync;
pub(crate) mod spec;
mod trigger;

pub(crate) use self::deleted::DeletedObjects;
pub(crate) use self::enqueue::ControllerSources;
pub use self::trigger::{Trigger, TriggerError, Triggers, WatchStream, trigger};
