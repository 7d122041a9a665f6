//! Changes of objects, and the queue of the changes that a listener has not received: at most one
//! per object.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::RandomState;
use opkit_client::ObjectKey;

use crate::Stored;

/// Largest number of intermediate versions that a delta keeps.
const BETWEEN_MAX: usize = 8;

/// Kind of change of a [`Delta`], with client-go's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Change {
    /// The object is new to the listener.
    Added,
    /// The object changed.
    Updated,
    /// The object was deleted.
    Deleted,
    /// A list after a gap in the watch found the object changed.
    Replaced,
    /// The object did not change. A resync delivers the object again.
    Sync,
}

/// Last known state of a deleted object.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LastState {
    /// State of the object.
    pub object: Stored,
    /// Whether the object was in this state when it was deleted. True if the watch reported the
    /// deletion, or if this process deleted the object. False if a list no longer contained the
    /// object: the object may have changed before it was deleted, as with client-go's
    /// `DeletedFinalStateUnknown`.
    pub is_certain: bool,
    /// Whether the object was not deleted. It only left the part of the kind that the informer
    /// reads; see [`InformerFactory::resplit`](crate::InformerFactory::resplit).
    pub has_left: bool,
}

/// One of the events that were coalesced into a [`Delta`]; see [`Delta::steps`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Step<'a> {
    /// The object is new to the listener.
    Created {
        /// New object.
        object: &'a Stored,
        /// Whether the object existed before the listener started; see [`Delta::initial`].
        is_initial: bool,
    },
    /// The object changed, or a resync delivers the object again.
    Updated {
        /// State before the change.
        old: &'a Stored,
        /// State after the change.
        new: &'a Stored,
        /// Whether `new` is the version right after `old`. If not, several changes were coalesced.
        is_whole: bool,
    },
    /// The object was deleted.
    Deleted {
        /// Last known state of the object.
        object: &'a Stored,
        /// Whether the object was in this state when it was deleted; see [`LastState::is_certain`].
        is_certain: bool,
    },
    /// The informer no longer reads the part of the kind that the object belongs to. The object
    /// may still exist.
    Left {
        /// Last known state of the object.
        object: &'a Stored,
    },
}

/// Change of one object. If several changes were coalesced, `old` is the state that the listener
/// saw last and `new` is the current state. `old` and `new` can then be equal although the object
/// differed in between.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Delta {
    /// Kind of change.
    pub change: Change,
    /// Key of the object.
    pub key: ObjectKey,
    /// Previous state; `None` if the object is new to the listener.
    pub old: Option<Stored>,
    /// Current state; `None` if the object was deleted.
    pub new: Option<Stored>,
    /// Whether the object is part of the first list, that is, existed before the listener started,
    /// or before the informer began to read its part of the kind.
    pub initial: bool,
    /// Whether several changes were coalesced.
    pub coalesced: bool,
    /// Intermediate versions whose labels or owners differ from those of the other versions; at
    /// most 8.
    pub between: Vec<Stored>,
    /// Last known state of the deleted object. If an object of the same name was created since,
    /// this is still the state of the deleted object.
    pub last: Option<LastState>,
    /// Whether the object was created and deleted again before the listener saw it.
    unseen: bool,
}

impl Delta {
    pub(crate) fn new(change: Change, old: Option<Stored>, new: Option<Stored>) -> Option<Self> {
        Some(Self {
            change,
            key: new.as_ref().or(old.as_ref())?.key(),
            old,
            new,
            initial: false,
            coalesced: false,
            between: Vec::new(),
            last: None,
            unseen: false,
        })
    }

    /// Creates a deletion. `last` is the last known state of the object; `None` means `old`.
    pub(crate) fn deleted(
        old: Option<Stored>,
        last: Option<Stored>,
        is_certain: bool,
    ) -> Option<Self> {
        let object = last.or_else(|| old.clone());
        let mut delta = Self::new(Change::Deleted, old, None)?;
        delta.last = object.map(|object| LastState {
            object,
            is_certain,
            has_left: false,
        });
        Some(delta)
    }

    /// Creates the delta of an object that is no longer in the part that the informer reads.
    pub(crate) fn left(old: Stored) -> Option<Self> {
        let mut delta = Self::deleted(Some(old), None, false)?;
        if let Some(last) = &mut delta.last {
            last.has_left = true;
        }
        Some(delta)
    }

    /// Reports whether the object left the part of the kind that the informer reads, and may still
    /// exist. The change is then [`Change::Deleted`].
    pub fn has_left(&self) -> bool {
        self.new.is_none() && self.last.as_ref().is_some_and(|last| last.has_left)
    }

    /// Merges a later change of the same object into this delta.
    fn merge(&mut self, later: Self) {
        // Created and deleted again before the listener saw it: the last state is kept, so that
        // handlers that map to its owner are still called.
        if self.old.is_none() && later.new.is_none() {
            self.old = later.old;
            self.unseen = true;
        } else if self.unseen && later.new.is_some() {
            self.unseen = false;
            if let Some(version) = self.old.take() {
                keep(&mut self.between, version);
            }
        }
        let replaced = [self.change, later.change].contains(&Change::Replaced);
        self.change = match (&self.old, &later.new) {
            (_, None) => Change::Deleted,
            (None, Some(_)) => Change::Added,
            (Some(_), Some(_)) if replaced => Change::Replaced,
            (Some(_), Some(_)) => Change::Updated,
        };
        self.coalesced = true;
        self.last = later.last.or(self.last.take());
        if let Some(version) = std::mem::replace(&mut self.new, later.new) {
            keep(&mut self.between, version);
        }
        self.initial &= self.new.is_some();
    }

    /// Calls `visit` with each event that this delta contains, in order. A delta of several
    /// coalesced changes has one event for each known intermediate version. An object that was
    /// deleted and created again is reported as a deletion and a creation.
    pub fn steps<'a>(&'a self, mut visit: impl FnMut(Step<'a>)) {
        let is_whole = !self.coalesced;
        let mut before = self.old.as_ref().filter(|_| !self.unseen);
        for object in self.between.iter().chain(&self.new) {
            match before {
                Some(old) if old.meta().uid() == object.meta().uid() => visit(Step::Updated {
                    old,
                    new: object,
                    is_whole,
                }),
                _ => {
                    if let Some(old) = before {
                        visit(self.deletion_of(old));
                    }
                    let is_initial = self.initial;
                    visit(Step::Created { object, is_initial });
                }
            }
            before = Some(object);
        }
        if self.new.is_none()
            && let Some(object) = before.or(self.old.as_ref())
        {
            visit(self.deletion_of(object));
        }
    }

    /// Returns the last event of the object of which `object` is a version.
    fn deletion_of<'a>(&'a self, object: &'a Stored) -> Step<'a> {
        let is_same = |last: &&LastState| last.object.meta().uid() == object.meta().uid();
        match self.last.as_ref().filter(is_same) {
            Some(last) if last.has_left => Step::Left {
                object: &last.object,
            },
            Some(last) => Step::Deleted {
                object: &last.object,
                is_certain: last.is_certain,
            },
            None => Step::Deleted {
                object,
                is_certain: false,
            },
        }
    }

    /// Reports whether the object was deleted and another object with the same name was created.
    pub fn is_recreated(&self) -> bool {
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => old.meta().uid() != new.meta().uid(),
            _ => false,
        }
    }
}

/// Deltas that a listener has not received yet: at most one per object, in the order in which the
/// objects first changed. A second change of an object is merged into the pending delta of the
/// object. So the queue is never full: its length is at most the number of objects that existed
/// since the queue was last empty.
#[derive(Debug, Default)]
pub(crate) struct PendingDeltas {
    deltas: VecDeque<Delta>,
    /// Sequence number of the pending delta of each object. The first delta in the queue has the
    /// number `popped`.
    by_key: HashMap<ObjectKey, u64, RandomState>,
    popped: u64,
}

impl PendingDeltas {
    pub(crate) fn push(&mut self, delta: Delta) {
        let waiting = self.by_key.get(&delta.key).and_then(|number| {
            let place = usize::try_from(number.checked_sub(self.popped)?).ok()?;
            self.deltas.get_mut(place)
        });
        match waiting {
            Some(waiting) => waiting.merge(delta),
            None => {
                let number = self.popped + self.deltas.len() as u64;
                self.by_key.insert(delta.key.clone(), number);
                self.deltas.push_back(delta);
            }
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Delta> {
        let delta = self.deltas.pop_front()?;
        self.popped += 1;
        self.by_key.remove(&delta.key);
        if self.deltas.is_empty() {
            // After a burst, its memory is freed.
            self.deltas.shrink_to(64);
            self.by_key.shrink_to(64);
        }
        Some(delta)
    }

    pub(crate) fn len(&self) -> usize {
        self.deltas.len()
    }

    /// Returns the number of deltas that have left the queue.
    pub(crate) fn popped(&self) -> u64 {
        self.popped
    }

    /// Returns the value that `popped` will have when all deltas that are pending now have left the
    /// queue.
    pub(crate) fn end(&self) -> u64 {
        self.popped + self.deltas.len() as u64
    }
}

/// Adds an intermediate version to `between` if its labels or owners differ from those of all
/// versions in `between`.
fn keep(between: &mut Vec<Stored>, version: Stored) {
    let is_same = |kept: &Stored| {
        let (kept, version) = (kept.meta(), version.meta());
        kept.labels() == version.labels() && kept.owners() == version.owners()
    };
    if between.len() < BETWEEN_MAX && !between.iter().any(is_same) {
        between.push(version);
    }
}

#[cfg(test)]
mod tests;
