//! Sources: from a change in the cache, or a trigger, to the objects to reconcile.

pub(crate) mod enqueue;
pub mod event;
pub mod predicate;
pub(crate) mod spec;
mod trigger;

pub(crate) use self::enqueue::ControllerSources;
pub use self::trigger::{Trigger, TriggerError, Triggers, WatchStream, trigger};
