//! The objects, their history and one revision over all: what etcd is to a real server.
//!
//! Everything happens under one short lock, so every reader sees one order. A write names the
//! revision it was made from and fails when the object has moved on. Watching is a cursor into a
//! ring of past events, never a queue per watcher: a cursor that falls off the ring is told so.

use std::{
    collections::{BTreeMap, HashMap, HashSet, VecDeque},
    sync::Arc,
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::object;

#[cfg(test)]
mod tests;

/// Namespace (empty for cluster-scoped objects) and name.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct Key {
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

    pub(crate) fn of(object: &Value) -> Self {
        Self::new(object::namespace(object), object::name(object))
    }
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Change {
    Added,
    Modified,
    Deleted,
}

/// One change, with the object after it and before it.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) revision: u64,
    pub(crate) change: Change,
    /// The object as it is now; of a deleted one, its last state at the revision of the deletion.
    pub(crate) object: Arc<Value>,
    pub(crate) previous: Option<Arc<Value>>,
}

/// What a write expects to find.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Expected {
    Absent,
    Revision(u64),
}

/// A write that found something else than it expected.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum CommitError {
    Exists,
    Missing,
    Moved,
}

/// A cursor that points before what the ring still holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct TooOld {
    /// The oldest revision one can still watch from.
    pub(crate) oldest: u64,
}

/// The store. `resource` in its methods is the name objects are filed under: `deployments.apps`.
#[derive(Debug)]
pub(crate) struct Store {
    state: Mutex<State>,
    changed: watch::Sender<u64>,
}

#[derive(Debug)]
struct State {
    revision: u64,
    history: usize,
    tables: HashMap<String, Table>,
    by_uid: HashMap<String, (String, Key)>,
    by_owner: HashMap<String, HashSet<(String, Key)>>,
}

#[derive(Debug, Default)]
struct Table {
    objects: BTreeMap<Key, Arc<Value>>,
    events: VecDeque<Event>,
    /// Events up to this revision have left the ring.
    forgotten: u64,
}

impl Store {
    /// An empty store that remembers `history` events of each resource.
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

    pub(crate) fn revision(&self) -> u64 {
        self.state.lock().revision
    }

    /// Follows the revision: wakes after every write.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    pub(crate) fn get(&self, resource: &str, key: &Key) -> Option<Arc<Value>> {
        self.state
            .lock()
            .tables
            .get(resource)?
            .objects
            .get(key)
            .cloned()
    }

    /// The objects of a namespace, or of all, by key, and the revision they were read at.
    pub(crate) fn list(&self, resource: &str, namespace: Option<&str>) -> (Vec<Arc<Value>>, u64) {
        let state = self.state.lock();
        let Some(table) = state.tables.get(resource) else {
            return (Vec::new(), state.revision);
        };
        let objects = match namespace {
            None => table.objects.values().cloned().collect(),
            Some(namespace) => table
                .objects
                .range(Key::new(namespace, "")..)
                .take_while(|(key, _)| key.namespace == namespace)
                .map(|(_, object)| object.clone())
                .collect(),
        };
        (objects, state.revision)
    }

    /// The objects from `start` on as they were at `revision`, by key: the present ones, with what
    /// has happened since undone. Without a revision it is the present one. Also the revision they
    /// were read at.
    pub(crate) fn list_at(
        &self,
        resource: &str,
        namespace: Option<&str>,
        start: &Key,
        revision: Option<u64>,
    ) -> Result<(Vec<Arc<Value>>, u64), TooOld> {
        let state = self.state.lock();
        let revision = revision.unwrap_or(state.revision);
        let Some(table) = state.tables.get(resource) else {
            return Ok((Vec::new(), revision));
        };
        // What the objects that have changed since were then; the earliest change tells.
        let mut then: BTreeMap<Key, Option<Arc<Value>>> = BTreeMap::new();
        for event in table.after(revision)?.rev() {
            then.insert(Key::of(&event.object), event.previous.clone());
        }
        let is_asked = |key: &Key| namespace.is_none_or(|namespace| key.namespace == namespace);
        let unchanged = table
            .objects
            .range(start..)
            .take_while(|(key, _)| is_asked(key))
            .filter(|(key, _)| !then.contains_key(key))
            .map(|(_, object)| object.clone());
        let mut objects: Vec<Arc<Value>> = unchanged.collect();
        if !then.is_empty() {
            let changed = then.range(start..).take_while(|(key, _)| is_asked(key));
            objects.extend(changed.filter_map(|(_, object)| object.clone()));
            objects.sort_by_cached_key(|object| Key::of(object));
        }
        Ok((objects, revision))
    }

    /// The object with that uid, with where it is filed.
    pub(crate) fn by_uid(&self, uid: &str) -> Option<(String, Arc<Value>)> {
        let state = self.state.lock();
        let (resource, key) = state.by_uid.get(uid)?;
        let object = state.tables.get(resource)?.objects.get(key)?;
        Some((resource.clone(), object.clone()))
    }

    /// The objects that name `uid` as an owner, with where they are filed.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<(String, Arc<Value>)> {
        let state = self.state.lock();
        let Some(places) = state.by_owner.get(uid) else {
            return Vec::new();
        };
        let mut found: Vec<_> = places
            .iter()
            .filter_map(|(resource, key)| {
                let object = state.tables.get(resource)?.objects.get(key)?;
                Some((resource.clone(), key.clone(), object.clone()))
            })
            .collect();
        found.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
        found
            .into_iter()
            .map(|(resource, _, object)| (resource, object))
            .collect()
    }

    /// Resources that have objects in `namespace`.
    pub(crate) fn resources_in(&self, namespace: &str) -> Vec<String> {
        let state = self.state.lock();
        let holds = |table: &Table| table.objects.keys().any(|key| key.namespace == namespace);
        let mut names: Vec<_> = state
            .tables
            .iter()
            .filter(|(_, t)| holds(t))
            .map(|(name, _)| name.clone())
            .collect();
        names.sort();
        names
    }

    /// Stores `object` if the present one is as expected, and stamps it with the new revision.
    pub(crate) fn put(
        &self,
        resource: &str,
        expected: Expected,
        object: Value,
    ) -> Result<Arc<Value>, CommitError> {
        self.commit(resource, &Key::of(&object), expected, Some(object))
    }

    /// Removes the object if it is as expected; returns its last state.
    pub(crate) fn remove(
        &self,
        resource: &str,
        key: &Key,
        revision: u64,
    ) -> Result<Arc<Value>, CommitError> {
        self.commit(resource, key, Expected::Revision(revision), None)
    }

    fn commit(
        &self,
        resource: &str,
        key: &Key,
        expected: Expected,
        object: Option<Value>,
    ) -> Result<Arc<Value>, CommitError> {
        let mut state = self.state.lock();
        let present = state
            .tables
            .get(resource)
            .and_then(|t| t.objects.get(key))
            .cloned();
        match (expected, &present) {
            (Expected::Absent, None) => {}
            (Expected::Absent, Some(_)) => return Err(CommitError::Exists),
            (Expected::Revision(_), None) => return Err(CommitError::Missing),
            (Expected::Revision(revision), Some(object)) => {
                if object::revision(object) != revision {
                    return Err(CommitError::Moved);
                }
            }
        }
        state.revision += 1;
        let revision = state.revision;
        let change = match (&present, &object) {
            (_, None) => Change::Deleted,
            (None, Some(_)) => Change::Added,
            (Some(_), Some(_)) => Change::Modified,
        };
        let mut object = match (object, &present) {
            (Some(object), _) => object,
            (None, Some(present)) => Value::clone(present),
            (None, None) => return Err(CommitError::Missing),
        };
        object::set_meta(&mut object, "resourceVersion", json!(revision.to_string()));
        let object = Arc::new(object);

        if let Some(present) = &present {
            state.unindex(resource, key, present);
        }
        if change != Change::Deleted {
            state.index(resource, key, &object);
        }
        let history = state.history;
        let table = state.tables.entry(resource.to_owned()).or_default();
        match change {
            Change::Deleted => table.objects.remove(key),
            _ => table.objects.insert(key.clone(), object.clone()),
        };
        table.events.push_back(Event {
            revision,
            change,
            object: object.clone(),
            previous: present,
        });
        while table.events.len() > history {
            if let Some(event) = table.events.pop_front() {
                table.forgotten = event.revision;
            }
        }
        // Under the lock, so that what is told never falls.
        self.changed.send_replace(revision);
        Ok(object)
    }

    /// The events of a resource after `revision`, oldest first, and the revision read up to.
    pub(crate) fn events_after(
        &self,
        resource: &str,
        revision: u64,
    ) -> Result<(Vec<Event>, u64), TooOld> {
        let state = self.state.lock();
        let events = match state.tables.get(resource) {
            Some(table) => table.after(revision)?.cloned().collect(),
            None => Vec::new(),
        };
        Ok((events, state.revision.max(revision)))
    }

    /// The events of all resources after `revision`, oldest first, each with its resource.
    pub(crate) fn all_events_after(
        &self,
        revision: u64,
    ) -> Result<(Vec<(String, Event)>, u64), TooOld> {
        let state = self.state.lock();
        let mut events = Vec::new();
        for (resource, table) in &state.tables {
            let after = table.after(revision)?;
            events.extend(after.map(|event| (resource.clone(), event.clone())));
        }
        events.sort_by_key(|(_, event)| event.revision);
        Ok((events, state.revision))
    }

    /// Every object as if it had just been added: for who has lost the thread.
    pub(crate) fn everything(&self) -> (Vec<(String, Event)>, u64) {
        let state = self.state.lock();
        let mut events = Vec::new();
        for (resource, table) in &state.tables {
            events.extend(table.objects.values().map(|object| {
                let event = Event {
                    revision: object::revision(object),
                    change: Change::Added,
                    object: object.clone(),
                    previous: None,
                };
                (resource.clone(), event)
            }));
        }
        events.sort_by_key(|(_, event)| event.revision);
        (events, state.revision)
    }
}

impl Table {
    /// The events after `revision`, if they are all still here.
    fn after(&self, revision: u64) -> Result<impl DoubleEndedIterator<Item = &Event>, TooOld> {
        if revision < self.forgotten {
            return Err(TooOld {
                oldest: self.forgotten,
            });
        }
        let start = self
            .events
            .partition_point(|event| event.revision <= revision);
        Ok(self.events.range(start..))
    }
}

impl State {
    fn index(&mut self, resource: &str, key: &Key, object: &Value) {
        let place = (resource.to_owned(), key.clone());
        for owner in owner_uids(object) {
            self.by_owner
                .entry(owner.to_owned())
                .or_default()
                .insert(place.clone());
        }
        self.by_uid.insert(object::uid(object).to_owned(), place);
    }

    fn unindex(&mut self, resource: &str, key: &Key, object: &Value) {
        let place = (resource.to_owned(), key.clone());
        for owner in owner_uids(object) {
            if let Some(places) = self.by_owner.get_mut(owner) {
                places.remove(&place);
                if places.is_empty() {
                    self.by_owner.remove(owner);
                }
            }
        }
        self.by_uid.remove(object::uid(object));
    }
}

fn owner_uids(object: &Value) -> impl Iterator<Item = &str> {
    object::items(object, &["metadata", "ownerReferences"])
        .iter()
        .map(|owner| object::text(owner, &["uid"]))
}
