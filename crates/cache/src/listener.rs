//! Listeners of an informer: a queue of deltas that can be received, handled with functions, or
//! used as a stream.
//!
//! The queue holds at most one delta per object, so the queue is never full. A slow listener
//! receives fewer deltas, each of which covers several changes and is marked as coalesced. The old
//! and new state of such a delta do not show a label that was removed and added again.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::delta::DeltaQueue;
use crate::{Delta, Informer, Step, Stored};

/// Event that a [`Listener`] receives.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// An object changed.
    Delta(Delta),
    /// All objects of the first list have been delivered; sent once.
    Synced,
}

/// Subscription to an informer. Dropping the listener ends the subscription; the informer keeps
/// watching as long as the listener exists.
#[derive(Debug)]
pub struct Listener {
    mailbox: Arc<Mailbox>,
    informer: Informer,
    resync: Option<Resync>,
}

#[derive(Debug)]
struct Resync {
    period: Duration,
    next: Instant,
}

/// Shortest resync period, as in client-go. Shorter periods are raised to this one.
const RESYNC_MIN: Duration = Duration::from_secs(1);

impl Listener {
    pub(crate) fn new(mailbox: Arc<Mailbox>, informer: Informer) -> Self {
        Self {
            mailbox,
            informer,
            resync: None,
        }
    }

    /// Delivers every object again in each `period`, as a [`Sync`](crate::Change::Sync), so that a
    /// listener can repeat actions that have failed. No request is sent to the server.
    pub fn resync(mut self, period: Duration) -> Self {
        let period = period.max(RESYNC_MIN);
        self.resync = Some(Resync {
            period,
            next: Instant::now() + period,
        });
        self
    }

    /// Waits for the next event.
    ///
    /// # Cancel safety
    /// An event leaves the mailbox only when it is returned.
    pub async fn recv(&mut self) -> Event {
        loop {
            let mut changed = pin!(self.mailbox.changed.notified());
            changed.as_mut().enable();
            if let Some(event) = self.mailbox.pending.lock().pop() {
                return event;
            }
            let Some(resync) = &mut self.resync else {
                changed.await;
                continue;
            };
            if tokio::time::timeout_at(resync.next, changed).await.is_err() {
                // Resyncs that were due while the listener was busy are skipped.
                resync.next = Instant::now() + resync.period;
                self.informer.resync(&self.mailbox);
            }
        }
    }

    /// Returns the number of changed objects whose changes the listener has not received yet.
    pub fn backlog(&self) -> usize {
        self.mailbox.pending.lock().queue.len()
    }

    /// Calls `handler` for each event, until the future is dropped.
    ///
    /// # Cancel safety
    /// Each received event is handled before the next one is received, so dropping the future loses
    /// no event.
    pub async fn handle(mut self, mut handler: impl Handler) {
        loop {
            match self.recv().await {
                Event::Synced => handler.synced(),
                Event::Delta(delta) => delta.steps(|step| match step {
                    Step::Created { object, is_initial } => handler.add(object, is_initial),
                    Step::Updated { old, new, .. } => handler.update(old, new),
                    Step::Deleted { object, is_certain } => handler.delete(object, is_certain),
                }),
            }
        }
    }

    /// Converts the listener into a stream of events that never ends.
    pub fn into_stream(self) -> impl Stream<Item = Event> + Send {
        futures::stream::unfold(self, |mut listener| async move {
            let event = listener.recv().await;
            Some((event, listener))
        })
    }
}

/// Callbacks for changed objects. The default implementation of each method does nothing.
///
/// # Examples
/// ```
/// use opkit_cache::{Handler, Stored};
///
/// #[derive(Default)]
/// struct Names(Vec<String>);
///
/// impl Handler for Names {
///     fn add(&mut self, object: &Stored, _in_initial_list: bool) {
///         self.0.push(object.name().into_owned());
///     }
///     fn delete(&mut self, object: &Stored, _is_certain: bool) {
///         self.0.retain(|name| *name != object.name());
///     }
/// }
/// ```
pub trait Handler: Send {
    /// Called when an object is new to this listener.
    fn add(&mut self, object: &Stored, in_initial_list: bool) {
        let _ = (object, in_initial_list);
    }

    /// Called when an object changed, or when a resync delivers an object again. After a resync,
    /// `old` and `new` are the same version.
    fn update(&mut self, old: &Stored, new: &Stored) {
        let _ = (old, new);
    }

    /// Called when an object was deleted. `object` is the last known state of the object.
    /// `is_certain` is whether the object was in that state when it was deleted; see
    /// [`LastState`](crate::LastState).
    fn delete(&mut self, object: &Stored, is_certain: bool) {
        let _ = (object, is_certain);
    }

    /// Called when all objects of the first list have been delivered.
    fn synced(&mut self) {}
}

#[derive(Debug, Default)]
pub(crate) struct Mailbox {
    pending: Mutex<Pending>,
    changed: Notify,
}

impl Mailbox {
    pub(crate) fn push(&self, deltas: impl IntoIterator<Item = Delta>) {
        let mut pending = self.pending.lock();
        for delta in deltas {
            pending.queue.push(delta);
        }
        drop(pending);
        self.changed.notify_one();
    }

    pub(crate) fn synced(&self) {
        let mut pending = self.pending.lock();
        pending.synced = Synced::After(pending.queue.end());
        drop(pending);
        self.changed.notify_one();
    }
}

#[derive(Debug, Default)]
struct Pending {
    queue: DeltaQueue,
    synced: Synced,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Synced {
    #[default]
    NotYet,
    /// `Synced` is delivered when this many deltas have left the queue, even if later changes are
    /// pending. Otherwise a listener that never catches up would never receive `Synced`.
    After(u64),
    Delivered,
}

impl Pending {
    fn pop(&mut self) -> Option<Event> {
        if matches!(self.synced, Synced::After(deltas) if self.queue.popped() >= deltas) {
            self.synced = Synced::Delivered;
            return Some(Event::Synced);
        }
        self.queue.pop().map(Event::Delta)
    }
}

#[cfg(test)]
mod tests;
