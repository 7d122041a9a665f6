//! The store of objects, past events and the revision, in place of the etcd of a real server.
//!
//! An object is stored as its JSON text ([`Stored`]), which responses contain as it is. Lists,
//! events and indexes share the stored objects. Controllers get decoded objects.
//!
//! All reads and writes take one lock for a short time, so every reader sees the writes in the same
//! order. A write states the revision that the object is expected to have, and fails if the object
//! has another revision. A watch has no queue of its own: it reads past events from a ring buffer,
//! starting at a revision. The read fails if events after the revision have been dropped from the
//! ring.

mod budget;
mod commit;
mod draft;
mod entry;
mod history;
mod read;
mod stored;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;

use crate::object;
pub(crate) use budget::Budget;
pub(crate) use commit::Committed;
use entry::{ByKey, ByPlace, ByUid};
pub(crate) use stored::Stored;

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
    pub(crate) object: Arc<Stored>,
    /// The object before the change; `None` if the change is the creation of the object.
    pub(crate) previous: Option<Arc<Stored>>,
}

impl Event {
    /// Returns the object after the change and, if it existed, before the change.
    pub(crate) fn versions(&self) -> Vec<Value> {
        let versions = [Some(&self.object), self.previous.as_ref()].into_iter();
        versions.flatten().map(|stored| stored.decode()).collect()
    }
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
    /// The memory for encodings of objects other than JSON.
    budget: Arc<Budget>,
}

#[derive(Debug)]
struct State {
    revision: u64,
    /// Maximum number of past events that are kept for each resource.
    history: usize,
    tables: HashMap<Arc<str>, Table>,
    by_uid: HashSet<ByUid>,
    /// The dependents of an owner, by the owner's UID in `ownerReferences`.
    by_owner: HashMap<Box<str>, HashSet<ByPlace>>,
}

/// The objects and events of one resource.
#[derive(Debug)]
struct Table {
    objects: BTreeSet<ByKey>,
    events: VecDeque<Event>,
    /// Revision up to which events have been dropped from the ring of past events.
    forgotten: u64,
    /// Revision of the last write to the resource.
    revision: u64,
    /// Sends the revision of each write to the resource.
    changed: watch::Sender<u64>,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            objects: BTreeSet::new(),
            events: VecDeque::new(),
            forgotten: 0,
            revision: 0,
            changed: watch::Sender::new(0),
        }
    }
}

impl Store {
    /// Creates an empty store that keeps `history` events of each resource.
    pub(crate) fn new(history: usize) -> Self {
        let state = State {
            revision: 0,
            history,
            tables: HashMap::new(),
            by_uid: HashSet::new(),
            by_owner: HashMap::new(),
        };
        Self {
            state: Mutex::new(state),
            changed: watch::Sender::new(0),
            budget: Arc::default(),
        }
    }

    /// Returns the revision of the last write.
    pub(crate) fn revision(&self) -> u64 {
        self.state.lock().revision
    }

    /// Returns the revision of the last write to a resource, or 0 if there was none. A parsed copy
    /// of the objects of the resource is current as long as this revision does not change.
    pub(crate) fn resource_revision(&self, resource: &str) -> u64 {
        let state = self.state.lock();
        let table = state.tables.get(resource);
        table.map_or(0, |table| table.revision)
    }

    /// Returns a receiver of the revision, which changes after every write.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// Returns a receiver that changes after every write to one resource.
    pub(crate) fn subscribe_to(&self, resource: &str) -> watch::Receiver<u64> {
        let mut state = self.state.lock();
        state.table(resource).1.changed.subscribe()
    }

    /// Returns the memory for encodings of objects other than JSON.
    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }
}

impl State {
    /// Returns the name and the table of a resource. Creates the table if the resource has none.
    fn table(&mut self, resource: &str) -> (Arc<str>, &mut Table) {
        let name = match self.tables.get_key_value(resource) {
            Some((name, _)) => name.clone(),
            None => Arc::from(resource),
        };
        let table = self.tables.entry(name.clone()).or_default();
        (name, table)
    }
}

#[cfg(test)]
mod tests;
