//! Listeners of an informer: a queue of deltas that can be received, handled with functions, or
//! used as a stream.
//!
//! The queue holds at most one delta per object, so the queue is never full. A slow listener
//! receives fewer deltas, each of which covers several changes and is marked as coalesced. The old
//! and new state of such a delta do not show a label that was removed and added again.
//!
//! A resync does not use the queue: its objects are taken from the store one by one, while no
//! change is pending. So a resync delays a change by at most one object, and needs no memory.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::delta::PendingDeltas;
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
    /// Start of the next resync.
    next: Instant,
    /// Place in the store up to which the objects of the resync in progress were delivered; `None`
    /// between two resyncs.
    cursor: Option<usize>,
    /// Number of objects that this resync has delivered.
    delivered: u32,
}

/// Next object of a resync.
pub(crate) enum Resynced {
    /// The object, and the place in the store after it.
    Object(Delta, usize),
    /// A change is pending, which is delivered first.
    Later,
    /// All objects were delivered.
    End,
}

/// Shortest resync period, as in client-go. Shorter periods are raised to this one.
const RESYNC_MIN: Duration = Duration::from_secs(1);

/// Longest resync period: one year, which every clock can add without overflow.
const RESYNC_MAX: Duration = Duration::from_secs(365 * 24 * 3600);

/// Number of objects of a resync after which the listener yields to other tasks, such as the watch.
const YIELD_AFTER: u32 = 64;

impl Listener {
    pub(crate) fn new(mailbox: Arc<Mailbox>, informer: Informer) -> Self {
        Self {
            mailbox,
            informer,
            resync: None,
        }
    }

    /// Delivers every object again in each `period`, as a [`Sync`](crate::Change::Sync), so that a
    /// listener can repeat actions that have failed. No request is sent to the server. The shortest
    /// period is 1 s. Each listener has its own period.
    ///
    /// A change is always delivered before the next object of a resync, and an object that changed
    /// is delivered as changed. A resync that is due while the last one is in progress is skipped.
    pub fn resync(mut self, period: Duration) -> Self {
        let period = period.clamp(RESYNC_MIN, RESYNC_MAX);
        self.resync = Some(Resync {
            period,
            next: Instant::now() + period,
            cursor: None,
            delivered: 0,
        });
        self
    }

    /// Reports whether a resync is in progress: it has begun, and not all objects are delivered.
    pub fn is_resyncing(&self) -> bool {
        let resync = self.resync.as_ref();
        resync.is_some_and(|resync| resync.cursor.is_some())
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
            let Some(cursor) = resync.cursor else {
                if tokio::time::timeout_at(resync.next, changed).await.is_err() {
                    // Resyncs that were due while the listener was busy are skipped.
                    resync.next = Instant::now() + resync.period;
                    resync.cursor = Some(0);
                }
                continue;
            };
            resync.delivered = resync.delivered.wrapping_add(1);
            if resync.delivered.is_multiple_of(YIELD_AFTER) {
                tokio::task::yield_now().await;
            }
            match self.informer.resynced(&self.mailbox, cursor) {
                Resynced::Object(delta, after) => {
                    resync.cursor = Some(after);
                    return Event::Delta(delta);
                }
                Resynced::Later => {}
                Resynced::End => resync.cursor = None,
            }
        }
    }

    /// Same as [`recv`](Listener::recv), but delivers no objects of a resync, and starts none. For
    /// a listener whose queue is full of unchanged objects, and that must still receive changes.
    ///
    /// # Cancel safety
    /// An event leaves the mailbox only when it is returned.
    pub async fn recv_change(&mut self) -> Event {
        loop {
            let mut changed = pin!(self.mailbox.changed.notified());
            changed.as_mut().enable();
            if let Some(event) = self.mailbox.pending.lock().pop() {
                return event;
            }
            changed.await;
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
                    Step::Left { object } => handler.left(object),
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

    /// Called when the informer no longer reads the part of the kind that the object belongs to;
    /// see [`InformerFactory::resplit`](crate::InformerFactory::resplit). By default, calls
    /// [`delete`](Handler::delete).
    fn left(&mut self, object: &Stored) {
        self.delete(object, false);
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

    /// Reports whether all changes have been received.
    pub(crate) fn is_empty(&self) -> bool {
        self.pending.lock().queue.len() == 0
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
    queue: PendingDeltas,
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
