//! What changed, and the queue of it: per key, compressed, never longer than there are objects.

use std::collections::{HashMap, VecDeque};

use foldhash::fast::RandomState;
use opkit_client::ObjectKey;

use crate::Stored;

/// How many versions in between a delta keeps.
const BETWEEN: usize = 8;

/// What kind of change a [`Delta`] is; client-go's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Change {
    /// The object is new to the listener.
    Added,
    /// The object changed.
    Updated,
    /// The object is gone.
    Deleted,
    /// The object is not what it was after a gap in the watch: a list told so.
    Replaced,
    /// Nothing changed: the listener asked to see everything now and then.
    Sync,
}

/// The last known state of an object that is gone.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LastState {
    /// The object.
    pub object: Stored,
    /// Whether the object was in this state when it was deleted: the watch reported the deletion,
    /// or it was our own. False if a list did not have the object any more, so it may have changed
    /// before; client-go's `DeletedFinalStateUnknown`.
    pub is_certain: bool,
}

/// One of the events that were coalesced into a [`Delta`]; see [`Delta::steps`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Step<'a> {
    /// The object is new to the listener.
    Created {
        /// The object.
        object: &'a Stored,
        /// Whether it was there before the listener began.
        is_initial: bool,
    },
    /// The object changed, or is reported again by a resync.
    Updated {
        /// The object before.
        old: &'a Stored,
        /// The object after.
        new: &'a Stored,
        /// Whether `new` is the version right after `old`. If not, several changes were coalesced.
        is_whole: bool,
    },
    /// The object is gone.
    Deleted {
        /// Its last known state.
        object: &'a Stored,
        /// See [`LastState::is_certain`].
        is_certain: bool,
    },
}

/// What happened to one object. Where several changes of it were coalesced, `old` is what the
/// listener saw last and `new` is what there is now: they may be alike though it was something else
/// in between.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Delta {
    /// What happened.
    pub change: Change,
    /// The object.
    pub key: ObjectKey,
    /// What it was; none if it is new to the listener.
    pub old: Option<Stored>,
    /// What it is; none if it is gone.
    pub new: Option<Stored>,
    /// Whether it was there before the listener began: part of the first list.
    pub initial: bool,
    /// Whether several changes were coalesced.
    pub coalesced: bool,
    /// Of the versions in between, those with other labels or owners; a few at most.
    pub between: Vec<Stored>,
    /// The last known state of the object that is gone; where it was created again meanwhile, of
    /// the one before.
    pub last: Option<LastState>,
    /// Whether the listener never saw `old`, only that it is gone.
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

    /// A deletion; `last` is what is known of the object last, by default what was stored.
    pub(crate) fn deleted(
        old: Option<Stored>,
        last: Option<Stored>,
        is_certain: bool,
    ) -> Option<Self> {
        let object = last.or_else(|| old.clone());
        let mut delta = Self::new(Change::Deleted, old, None)?;
        delta.last = object.map(|object| LastState { object, is_certain });
        Some(delta)
    }

    /// Takes in a later change of the same object.
    fn merge(&mut self, later: Self) {
        if later.change == Change::Sync {
            return;
        }
        // Made and deleted again unseen: the last state is kept, so that its owner still hears.
        if self.old.is_none() && later.new.is_none() {
            self.old = later.old;
            self.unseen = true;
        } else if self.unseen && later.new.is_some() {
            self.unseen = false;
            if let Some(passed) = self.old.take() {
                keep(&mut self.between, passed);
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
        if let Some(passed) = std::mem::replace(&mut self.new, later.new) {
            keep(&mut self.between, passed);
        }
        self.initial &= self.new.is_some();
    }

    /// Calls `visit` with each event that this delta stands for, in order: one, or, if several
    /// changes were coalesced, those that are known. An object that was deleted and created again
    /// is reported as that.
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

    /// The deletion of an object of which this version is known.
    fn deletion_of<'a>(&'a self, object: &'a Stored) -> Step<'a> {
        let is_same = |last: &&LastState| last.object.meta().uid() == object.meta().uid();
        match self.last.as_ref().filter(is_same) {
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

    /// Whether the object was deleted and another of its name was made.
    pub fn is_recreated(&self) -> bool {
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => old.meta().uid() != new.meta().uid(),
            _ => false,
        }
    }
}

/// Deltas that a listener has not seen yet: one per object, in the order in which the objects
/// first changed. A second change of an object that waits is merged into the first, so the queue is
/// never full: it holds at most one delta per object that there is or was since it was last empty.
#[derive(Debug, Default)]
pub(crate) struct DeltaQueue {
    deltas: VecDeque<Delta>,
    /// The number of each object's delta; the first in the queue has the number `popped`.
    by_key: HashMap<ObjectKey, u64, RandomState>,
    popped: u64,
}

impl DeltaQueue {
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
            // A burst has passed: its memory is given back.
            self.deltas.shrink_to(64);
            self.by_key.shrink_to(64);
        }
        Some(delta)
    }

    pub(crate) fn len(&self) -> usize {
        self.deltas.len()
    }

    /// How many deltas have left the queue.
    pub(crate) fn popped(&self) -> u64 {
        self.popped
    }

    /// How many will have left it when all that wait now are gone.
    pub(crate) fn end(&self) -> u64 {
        self.popped + self.deltas.len() as u64
    }
}

/// Keeps a version that nobody saw, if it leads elsewhere than those that are kept: to other
/// owners, or by other labels.
fn keep(between: &mut Vec<Stored>, passed: Stored) {
    let alike = |kept: &Stored| {
        let (kept, passed) = (kept.meta(), passed.meta());
        kept.labels() == passed.labels() && kept.owners() == passed.owners()
    };
    if between.len() < BETWEEN && !between.iter().any(alike) {
        between.push(passed);
    }
}

#[cfg(test)]
mod tests;
