//! Sources: from what changed to which objects need a reconcile.

pub(crate) mod enqueue;
pub mod event;
pub mod predicate;
mod trigger;

pub use self::trigger::{Trigger, TriggerError, Triggers, WatchStream, trigger};
