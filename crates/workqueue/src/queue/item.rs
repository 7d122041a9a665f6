//! Key that a worker has taken from the queue.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::QueueCore;
use crate::Merge;
use crate::engine::{Ticket, Work};

/// Key that a worker has taken from the queue. Dropping the item ends the work on the key.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let queue = opkit_workqueue::Queue::<&str, ()>::default();
/// queue.add("robot-one", ());
/// let item = queue.get().await.unwrap();
/// assert_eq!((*item.key(), item.priority()), ("robot-one", 0));
/// item.requeue_unworked();
/// assert_eq!(queue.len(), 1);
/// # }
/// ```
pub struct Item<K: Eq + Hash + Clone, P: Merge> {
    guard: WorkGuard<K, P>,
    key: K,
    payload: P,
    priority: i32,
    waited: Duration,
    failures: u32,
    taken_at: Instant,
}

/// Guard that ends the work on a key when the guard is dropped.
struct WorkGuard<K: Eq + Hash + Clone, P: Merge> {
    core: Arc<QueueCore<K, P>>,
    ticket: Option<Ticket>,
}

impl<K: Eq + Hash + Clone, P: Merge> Item<K, P> {
    pub(super) fn new(core: Arc<QueueCore<K, P>>, work: Work<K, P>, taken_at: Instant) -> Self {
        Self {
            guard: WorkGuard {
                core,
                ticket: Some(work.ticket),
            },
            key: work.key,
            payload: work.payload,
            priority: work.priority,
            waited: work.waited,
            failures: work.failures,
            taken_at,
        }
    }

    /// Returns the key to work on.
    pub fn key(&self) -> &K {
        &self.key
    }

    /// Returns the payloads of all adds of the key, merged.
    pub fn payload(&self) -> &P {
        &self.payload
    }

    /// Returns the merged payload of the key for modification, for instance to take it out.
    pub fn payload_mut(&mut self) -> &mut P {
        &mut self.payload
    }

    /// Returns the highest priority with which the key was added.
    pub fn priority(&self) -> i32 {
        self.priority
    }

    /// Returns the time that the key was ready before it was handed out.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// Returns the number of times in a row that the work on the key has failed; see
    /// [`Queue::fail`](crate::Queue::fail).
    pub fn failures(&self) -> u32 {
        self.failures
    }

    /// Returns the time at which the key was handed out.
    pub fn taken_at(&self) -> Instant {
        self.taken_at
    }

    /// Ends the work on the key, as dropping the item does, and forgets the failures of the key:
    /// those of the rate limiter, and the row of failures. The queue is locked only once for all,
    /// because most work ends this way.
    pub fn forget(mut self) {
        let Some(ticket) = self.guard.ticket.take() else {
            return;
        };
        let now = self.guard.core.now();
        self.guard.core.change(|engine, _| {
            engine.forget(&self.key);
            engine.succeed(&self.key);
            engine.done(now, ticket);
        });
    }

    /// Puts the key back with its payload and priority, because the key was not worked on; see
    /// [`Engine::requeue_unworked`](crate::Engine::requeue_unworked).
    pub fn requeue_unworked(mut self) {
        let Some(ticket) = self.guard.ticket.take() else {
            return;
        };
        let work = Work {
            key: self.key,
            payload: self.payload,
            priority: self.priority,
            waited: self.waited,
            failures: self.failures,
            ticket,
        };
        let now = self.guard.core.now();
        self.guard
            .core
            .change(|engine, _| engine.requeue_unworked(now, work));
    }
}

impl<K: Eq + Hash + Clone + fmt::Debug, P: Merge> fmt::Debug for Item<K, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Item")
            .field("key", &self.key)
            .field("priority", &self.priority)
            .finish_non_exhaustive()
    }
}

impl<K: Eq + Hash + Clone, P: Merge> Drop for WorkGuard<K, P> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            let now = self.core.now();
            self.core.change(|engine, _| engine.done(now, ticket));
        }
    }
}
