//! Listening to an informer: as a queue of deltas, with functions, or as a stream.
//!
//! Full is never: what a listener has not seen yet is one delta per object at most. A slow listener
//! sees fewer, wider deltas, which say that they are: a label that went and came back is seen in no
//! difference of old and new.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::Stream;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::delta::DeltaQueue;
use crate::{Delta, Informer, Step, Stored};

/// What a [`Listener`] receives.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// An object changed.
    Delta(Delta),
    /// Everything of the first list has been received; comes once.
    Synced,
}

/// A subscription to an informer; dropping it ends it. The informer's watch goes on at least as
/// long as the listener is there.
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

/// Shorter periods are this one, as in client-go.
const RESYNC_MIN: Duration = Duration::from_secs(1);

impl Listener {
    pub(crate) fn new(mailbox: Arc<Mailbox>, informer: Informer) -> Self {
        Self {
            mailbox,
            informer,
            resync: None,
        }
    }

    /// Tells every object again each `period`, as a [`Sync`](crate::Change::Sync): for listeners
    /// whose own actions may have failed. The server is not asked.
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
                // Those that were missed while the listener was busy are not made up for.
                resync.next = Instant::now() + resync.period;
                self.informer.resync(&self.mailbox);
            }
        }
    }

    /// How many objects have changed that the listener has not yet seen.
    pub fn backlog(&self) -> usize {
        self.mailbox.pending.lock().queue.len()
    }

    /// Calls `handler` for each event until dropped.
    ///
    /// # Cancel safety
    /// An event that was taken is handled; dropping this between events loses none.
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

    /// The events as a stream that never ends.
    pub fn into_stream(self) -> impl Stream<Item = Event> + Send {
        futures::stream::unfold(self, |mut listener| async move {
            let event = listener.recv().await;
            Some((event, listener))
        })
    }
}

/// What to do when an object changes; each method does nothing unless it is written.
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
    /// An object is new to this listener.
    fn add(&mut self, object: &Stored, in_initial_list: bool) {
        let _ = (object, in_initial_list);
    }

    /// An object changed, or is told again by a resync: then both are the same version.
    fn update(&mut self, old: &Stored, new: &Stored) {
        let _ = (old, new);
    }

    /// An object is gone. `object` is its last known state, and `is_certain` whether it was in that
    /// state when it was deleted; see [`LastState`](crate::LastState).
    fn delete(&mut self, object: &Stored, is_certain: bool) {
        let _ = (object, is_certain);
    }

    /// Everything of the first list was told.
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
    /// To be told when so many deltas have left the queue: what changes later comes later, or a
    /// listener that never catches up would never hear of it.
    After(u64),
    Told,
}

impl Pending {
    fn pop(&mut self) -> Option<Event> {
        if matches!(self.synced, Synced::After(deltas) if self.queue.popped() >= deltas) {
            self.synced = Synced::Told;
            return Some(Event::Synced);
        }
        self.queue.pop().map(Event::Delta)
    }
}

#[cfg(test)]
mod tests;
