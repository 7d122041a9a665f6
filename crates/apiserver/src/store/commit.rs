//! Writes of the store: stores or removes one object, adds the event, and updates the indexes by
//! UID and by owner.

use std::ops::Deref;
use std::sync::Arc;

use serde_json::{Value, json};

use super::draft::Draft;
use super::entry::{ByKey, ByPlace, ByUid, Named};
use super::{Change, CommitError, Event, Expected, Key, State, Store, Stored};
use crate::object;

/// An object after a write. Dereferences to the decoded object.
#[derive(Clone, Debug)]
pub(crate) struct Committed {
    object: Value,
    /// The stored object; `None` if the object was not stored, as in a dry run.
    stored: Option<Arc<Stored>>,
    /// Warnings about the write, for the client.
    pub(crate) warnings: Vec<String>,
}

impl Committed {
    /// Returns an object that was not stored.
    pub(crate) fn unstored(object: Value) -> Self {
        Self {
            object,
            stored: None,
            warnings: Vec::new(),
        }
    }

    /// Returns a stored object that the write has not changed, and its decoded form.
    pub(crate) fn unchanged(object: Value, stored: Arc<Stored>) -> Self {
        Self {
            object,
            stored: Some(stored),
            warnings: Vec::new(),
        }
    }

    /// Adds warnings about the write.
    pub(crate) fn with_warnings(mut self, warnings: Vec<String>) -> Self {
        self.warnings.extend(warnings);
        self
    }

    pub(crate) fn stored(&self) -> Option<&Arc<Stored>> {
        self.stored.as_ref()
    }

    pub(crate) fn into_object(self) -> Value {
        self.object
    }
}

impl Deref for Committed {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.object
    }
}

impl Store {
    /// Stores `object` with a new revision, if the currently stored object is as expected.
    pub(crate) fn put(
        &self,
        resource: &str,
        expected: Expected,
        mut object: Value,
    ) -> Result<Committed, CommitError> {
        let draft = Draft::new(&object);
        let stored = self.commit(resource, &Key::of(&object), expected, Some(&draft))?;
        let version = json!(stored.revision().to_string());
        object::set_meta(&mut object, "resourceVersion", version);
        Ok(Committed {
            object,
            stored: Some(stored),
            warnings: Vec::new(),
        })
    }

    /// Removes an object if the object has this revision, and returns its last state, which has the
    /// revision of the deletion.
    pub(crate) fn remove(
        &self,
        resource: &str,
        key: &Key,
        revision: u64,
    ) -> Result<Arc<Stored>, CommitError> {
        self.commit(resource, key, Expected::Revision(revision), None)
    }

    fn commit(
        &self,
        resource: &str,
        key: &Key,
        expected: Expected,
        draft: Option<&Draft>,
    ) -> Result<Arc<Stored>, CommitError> {
        let mut state = self.state.lock();
        let table = state.tables.get(resource);
        let present = table.and_then(|table| table.get(key)).cloned();
        match (expected, &present) {
            (Expected::Absent, None) => {}
            (Expected::Absent, Some(_)) => return Err(CommitError::Exists),
            (Expected::Revision(_), None) => return Err(CommitError::Missing),
            (Expected::Revision(revision), Some(object)) => {
                if object.revision() != revision {
                    return Err(CommitError::Moved);
                }
            }
        }
        let revision = state.revision + 1;
        let (name, table) = state.table(resource);
        let (change, object) = match (&present, draft) {
            (None, Some(draft)) => (Change::Added, draft.commit(name, revision)),
            (Some(_), Some(draft)) => (Change::Modified, draft.commit(name, revision)),
            (Some(present), None) => (Change::Deleted, present.at_revision(revision)),
            (None, None) => return Err(CommitError::Missing),
        };
        let object = Arc::new(object);
        match change {
            Change::Deleted => drop(table.objects.take(key as &dyn Named)),
            _ => drop(table.objects.replace(ByKey(object.clone()))),
        }
        table.events.push_back(Event {
            revision,
            change,
            object: object.clone(),
            previous: present.clone(),
        });
        table.revision = revision;
        table.changed.send_replace(revision);
        state.revision = revision;
        if let Some(present) = &present {
            state.unindex(present);
        }
        if change != Change::Deleted {
            state.index(&object);
        }
        let forgotten = state.forget(resource);
        // Under the lock, so that receivers never see the revision go back.
        self.changed.send_replace(revision);
        drop(state);
        // The memory of objects that only the history had is freed without the lock.
        drop(forgotten);
        Ok(object)
    }
}

impl State {
    #[expect(
        clippy::mutable_key_type,
        reason = "only the kept encoding of an object changes, not its place"
    )]
    fn index(&mut self, object: &Arc<Stored>) {
        for owner in owner_uids(object) {
            let dependents = self.by_owner.entry(owner.into()).or_default();
            dependents.insert(ByPlace(object.clone()));
        }
        self.by_uid.replace(ByUid(object.clone()));
    }

    fn unindex(&mut self, object: &Arc<Stored>) {
        let place = ByPlace(object.clone());
        for owner in owner_uids(object) {
            if let Some(dependents) = self.by_owner.get_mut(owner.as_str()) {
                dependents.remove(&place);
                if dependents.is_empty() {
                    self.by_owner.remove(owner.as_str());
                }
            }
        }
        self.by_uid.remove(object.uid());
    }

    /// Removes the oldest events of a resource that exceed the maximum number, and returns them.
    fn forget(&mut self, resource: &str) -> Vec<Event> {
        let history = self.history;
        let Some(table) = self.tables.get_mut(resource) else {
            return Vec::new();
        };
        let count = table.events.len().saturating_sub(history);
        let forgotten: Vec<Event> = table.events.drain(..count).collect();
        if let Some(last) = forgotten.last() {
            table.forgotten = last.revision;
        }
        forgotten
    }
}

fn owner_uids(object: &Stored) -> Vec<String> {
    let owners = object.owners();
    let uids = owners.iter().map(|owner| object::text(owner, &["uid"]));
    uids.map(str::to_owned).collect()
}
