//! The store of objects, past events and the revision, in place of the etcd of a real server.
//!
//! All reads and writes take one lock for a short time, so every reader sees the writes in the same
//! order. A write states the revision that the object is expected to have, and fails if the object
//! has another revision. A watch has no queue of its own: it reads past events from a ring buffer,
//! starting at a revision. The read fails if events after the revision have been dropped from the
//! ring.

mod commit;
mod history;
mod read;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;

use crate::object;

/// The key of an object among the objects of one resource.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct Key {
    /// Namespace of the object; empty for cluster-scoped objects.
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

    /// Returns the key of an object, from name and namespace in its metadata.
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
    /// The object after the change. After a deletion, the last state of the object, with the
    /// revision of the deletion.
    pub(crate) object: Arc<Value>,
    /// The object before the change; `None` if the change is the creation of the object.
    pub(crate) previous: Option<Arc<Value>>,
}

/// The state that an object must have for a write to be committed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Expected {
    Absent,
    Revision(u64),
}

/// The reason why a write was not committed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CommitError {
    /// The object exists, but was expected to be absent.
    Exists,
    /// The object does not exist, but was expected to.
    Missing,
    /// The object has another revision than expected: another client has written the object.
    Moved,
}

/// The error for a read of events after a revision, if some of the events have been dropped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct TooOld {
    /// The oldest revision from which a watch can start.
    pub(crate) oldest: u64,
}

/// The store. The parameter `resource` of the methods is the plural name and the group of a
/// resource, such as `deployments.apps`.
#[derive(Debug)]
pub(crate) struct Store {
    state: Mutex<State>,
    /// Sends the new revision after each write.
    changed: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    revision: u64,
    /// Maximum number of past events that are kept for each resource.
    history: usize,
    tables: HashMap<String, Table>,
    /// Resource and key of each object, by the UID of the object.
    by_uid: HashMap<String, (String, Key)>,
    /// Resources and keys of the dependents of an owner, by the owner's UID in `ownerReferences`.
    by_owner: HashMap<String, HashSet<(String, Key)>>,
}

/// The objects and events of one resource.
#[derive(Debug, Default)]
struct Table {
    objects: BTreeMap<Key, Arc<Value>>,
    events: VecDeque<Event>,
    /// Revision up to which events have been dropped from the ring of past events.
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
