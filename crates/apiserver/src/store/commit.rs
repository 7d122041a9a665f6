//! Writes of the store: stores or removes one object, adds the event, and updates the indexes by
//! UID and by owner.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{Change, CommitError, Event, Expected, Key, State, Store};
use crate::object;

impl Store {
    /// Stores `object` with a new revision, if the currently stored object is as expected.
    pub(crate) fn put(
        &self,
        resource: &str,
        expected: Expected,
        object: Value,
    ) -> Result<Arc<Value>, CommitError> {
        self.commit(resource, &Key::of(&object), expected, Some(object))
    }

    /// Removes an object if the object has this revision, and returns its last state.
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
        // Under the lock, so that receivers never see the revision go back.
        self.changed.send_replace(revision);
        Ok(object)
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
