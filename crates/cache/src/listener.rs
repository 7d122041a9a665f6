//! What a listener has not yet seen: one delta per object, newest wins.
//!
//! Full is never: a mailbox holds at most one delta per object of its kind, because a second change
//! of an object that waits is merged into the first. A slow listener sees fewer, wider deltas, which
//! say that they are: a label that went and came back is seen in no difference of old and new.

use std::collections::{HashMap, VecDeque};
use std::pin::pin;
use std::sync::Arc;

use opkit_client::ObjectKey;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{AnyObject, Delta};

/// How many versions in between a delta keeps.
const BETWEEN: usize = 8;

/// What a [`Listener`] receives.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// An object changed.
    Delta(Delta),
    /// Everything of the first list has been received; comes once.
    Synced,
}

/// A subscription to an informer; dropping it ends it.
#[derive(Debug)]
pub struct Listener {
    mailbox: Arc<Mailbox>,
}

impl Listener {
    pub(crate) fn new(mailbox: Arc<Mailbox>) -> Self {
        Listener { mailbox }
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
            changed.await;
        }
    }
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
            pending.push(delta);
        }
        drop(pending);
        self.changed.notify_one();
    }

    pub(crate) fn synced(&self) {
        self.pending.lock().synced = Synced::ToTell;
        self.changed.notify_one();
    }
}

#[derive(Debug, Default)]
struct Pending {
    order: VecDeque<ObjectKey>,
    deltas: HashMap<ObjectKey, Delta>,
    synced: Synced,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Synced {
    #[default]
    NotYet,
    ToTell,
    Told,
}

impl Pending {
    fn push(&mut self, delta: Delta) {
        let Some(waiting) = self.deltas.get_mut(&delta.key) else {
            self.order.push_back(delta.key.clone());
            self.deltas.insert(delta.key.clone(), delta);
            return;
        };
        // Made and deleted again unseen: the last state is kept, so that its owner still hears.
        if waiting.old.is_none() && delta.new.is_none() {
            waiting.old = delta.old;
        }
        waiting.coalesced = true;
        if let Some(passed) = std::mem::replace(&mut waiting.new, delta.new) {
            keep(&mut waiting.between, passed);
        }
        waiting.unreadable = delta.unreadable;
        waiting.initial &= waiting.new.is_some();
    }

    fn pop(&mut self) -> Option<Event> {
        while let Some(key) = self.order.pop_front() {
            if let Some(delta) = self.deltas.remove(&key) {
                return Some(Event::Delta(delta));
            }
        }
        if self.synced == Synced::ToTell {
            self.synced = Synced::Told;
            return Some(Event::Synced);
        }
        None
    }
}

/// Keeps a version that nobody saw, if it leads elsewhere than those that are kept: to other
/// owners, or by other labels.
fn keep(between: &mut Vec<AnyObject>, passed: AnyObject) {
    let alike = |kept: &AnyObject| {
        let (kept, passed) = (kept.object_meta(), passed.object_meta());
        kept.labels == passed.labels && kept.owner_references == passed.owner_references
    };
    if between.len() < BETWEEN && !between.iter().any(alike) {
        between.push(passed);
    }
}

#[cfg(test)]
mod tests;
