//! A key that a worker holds.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Shared;
use crate::Merge;
use crate::engine::{Ticket, Work};

/// A key that a worker holds; dropping it says that the work is done.
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
    hold: Hold<K, P>,
    key: K,
    payload: P,
    priority: i32,
    waited: Duration,
    taken_at: Instant,
}

/// Ends the work when it is dropped.
struct Hold<K: Eq + Hash + Clone, P: Merge> {
    shared: Arc<Shared<K, P>>,
    ticket: Option<Ticket>,
}

impl<K: Eq + Hash + Clone, P: Merge> Item<K, P> {
    pub(super) fn new(shared: Arc<Shared<K, P>>, work: Work<K, P>, taken_at: Instant) -> Self {
        Self {
            hold: Hold {
                shared,
                ticket: Some(work.ticket),
            },
            key: work.key,
            payload: work.payload,
            priority: work.priority,
            waited: work.waited,
            taken_at,
        }
    }

    /// The key to work on.
    pub fn key(&self) -> &K {
        &self.key
    }

    /// What the triggers of this key merged into.
    pub fn payload(&self) -> &P {
        &self.payload
    }

    /// The same, to take it away: who works on a key to its end does not need it any more.
    pub fn payload_mut(&mut self) -> &mut P {
        &mut self.payload
    }

    /// The highest priority of these triggers.
    pub fn priority(&self) -> i32 {
        self.priority
    }

    /// How long the key was ready before it was handed out.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// When the key was handed out.
    pub fn taken_at(&self) -> Instant {
        self.taken_at
    }

    /// Ends the work on the key, as dropping this does, and forgets its failures: both at once,
    /// because that is how most work ends.
    pub fn forget(mut self) {
        let Some(ticket) = self.hold.ticket.take() else {
            return;
        };
        let now = self.hold.shared.now();
        self.hold.shared.change(|engine, _| {
            engine.forget(&self.key);
            engine.done(now, ticket);
        });
    }

    /// Puts the key back, with its payload and priority, because it was not worked on; see
    /// [`Engine::requeue_unworked`](crate::Engine::requeue_unworked).
    pub fn requeue_unworked(mut self) {
        let Some(ticket) = self.hold.ticket.take() else {
            return;
        };
        let work = Work {
            key: self.key,
            payload: self.payload,
            priority: self.priority,
            waited: self.waited,
            ticket,
        };
        let now = self.hold.shared.now();
        self.hold
            .shared
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

impl<K: Eq + Hash + Clone, P: Merge> Drop for Hold<K, P> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take() {
            let now = self.shared.now();
            self.shared.change(|engine, _| engine.done(now, ticket));
        }
    }
}
