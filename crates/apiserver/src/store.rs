//! The objects, their past events and the revision: the part that etcd has for a real server.
//!
//! All reads and writes take one short lock, so every reader sees the same order. A write has the
//! revision that it was prepared for, and fails if the object has changed since. A watch is a
//! cursor into a ring of past events, and not a queue per watcher: the next read of a cursor that
//! is older than the ring fails.

mod commit;
mod history;
mod read;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;

use crate::object;

/// The key of an object among those of its resource.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct Key {
    /// Empty for cluster-scoped objects.
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self {
            namespace: namespace.into(),
            name: name.into(),
        }
    }

    /// Returns the key in the metadata of an object.
    pub(crate) fn of(object: &Value) -> Self {
        Self::new(object::namespace(object), object::name(object))
    }
}

/// The type of an event.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Change {
    Added,
    Modified,
    Deleted,
}

/// One change of an object.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) revision: u64,
    pub(crate) change: Change,
    /// The object after the change. For a deletion: its last state, with the revision of the
    /// deletion.
    pub(crate) object: Arc<Value>,
    /// The object before the change; `None` if it was created.
    pub(crate) previous: Option<Arc<Value>>,
}

/// The state of an object that a write was prepared for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Expected {
    Absent,
    Revision(u64),
}

/// The reason why a write was not committed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CommitError {
    /// The object was expected to be absent.
    Exists,
    /// The object was expected to exist.
    Missing,
    /// The object has another revision than expected.
    Moved,
}

/// The error for a revision whose events are no longer in the ring.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct TooOld {
    /// The oldest revision from which a watch can start.
    pub(crate) oldest: u64,
}

/// The store. The parameter `resource` of its methods is a plural and a group: `deployments.apps`.
#[derive(Debug)]
pub(crate) struct Store {
    state: Mutex<State>,
    /// Sends the revision after each write.
    changed: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    revision: u64,
    /// Maximum number of events in the ring of each resource.
    history: usize,
    tables: HashMap<String, Table>,
    /// Resource and key of the object with a UID.
    by_uid: HashMap<String, (String, Key)>,
    /// Resources and keys of the objects that have a UID in their `ownerReferences`.
    by_owner: HashMap<String, HashSet<(String, Key)>>,
}

/// The objects and events of one resource.
#[derive(Debug, Default)]
struct Table {
    objects: BTreeMap<Key, Arc<Value>>,
    events: VecDeque<Event>,
    /// Revision up to which events have been dropped from the ring.
    forgotten: u64,
}

impl Store {
    /// Creates an empty store that keeps `history` events of each resource.
    pub(crate) fn new(history: usize) -> Self {
        let state = State {
            revision: 0,
            history,
            tables: HashMap::new(),
            by_uid: HashMap::new(),
            by_owner: HashMap::new(),
        };
        Self {
            state: Mutex::new(state),
            changed: watch::Sender::new(0),
        }
    }

    /// Returns the revision of the last write.
    pub(crate) fn revision(&self) -> u64 {
        self.state.lock().revision
    }

    /// Returns a receiver of the revision, which changes after every write.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}

#[cfg(test)]
mod tests;
