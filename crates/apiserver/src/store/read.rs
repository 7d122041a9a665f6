//! Reads of the store: current objects, and lists of the objects as they were at a past revision.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use serde_json::Value;

use super::entry::{ByKey, ByPlace, Named};
use super::{Key, Store, Stored, Table, TooOld};

/// The objects of a list, and the objects that a limit left out.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) objects: Vec<Arc<Stored>>,
    /// The revision at which the objects were read.
    pub(crate) revision: u64,
    /// Number of objects after the last object of `objects`.
    pub(crate) remaining: usize,
}

impl Store {
    /// Returns the current object with this key, if there is one.
    pub(crate) fn stored(&self, resource: &str, key: &Key) -> Option<Arc<Stored>> {
        self.state.lock().tables.get(resource)?.get(key).cloned()
    }

    /// Returns the current object with this key, decoded, if there is one.
    pub(crate) fn get(&self, resource: &str, key: &Key) -> Option<Arc<Value>> {
        self.stored(resource, key).map(decoded)
    }

    /// Returns the objects of a resource, sorted by key, and the revision at which they were read.
    /// `None` as the namespace means all namespaces.
    pub(crate) fn list_stored(
        &self,
        resource: &str,
        namespace: Option<&str>,
    ) -> (Vec<Arc<Stored>>, u64) {
        let state = self.state.lock();
        let Some(table) = state.tables.get(resource) else {
            return (Vec::new(), state.revision);
        };
        let start = Key::new(namespace.unwrap_or_default(), "");
        let objects = table.from(&start, namespace).cloned().collect();
        (objects, state.revision)
    }

    /// Returns the decoded objects of a resource like [`Self::list_stored`].
    pub(crate) fn list(&self, resource: &str, namespace: Option<&str>) -> (Vec<Arc<Value>>, u64) {
        let (objects, revision) = self.list_stored(resource, namespace);
        (objects.into_iter().map(decoded).collect(), revision)
    }

    /// Returns the objects from the key `start` on, sorted by key, as they were at `revision`. If
    /// `revision` is `None`, the current objects are returned. At most `limit` objects are
    /// returned. A past state is computed from the current objects by undoing the events after
    /// `revision`.
    #[expect(
        clippy::mutable_key_type,
        reason = "only the kept encoding of an object changes, not its key"
    )]
    pub(crate) fn list_at(
        &self,
        resource: &str,
        namespace: Option<&str>,
        start: &Key,
        revision: Option<u64>,
        limit: usize,
    ) -> Result<Listed, TooOld> {
        let state = self.state.lock();
        let revision = revision.unwrap_or(state.revision);
        let mut listed = Listed {
            objects: Vec::new(),
            revision,
            remaining: 0,
        };
        let Some(table) = state.tables.get(resource) else {
            return Ok(listed);
        };
        // The state at `revision` of the objects that changed since: the one before their first
        // event.
        let mut then: BTreeMap<ByKey, Option<&Arc<Stored>>> = BTreeMap::new();
        for event in table.after(revision)?.rev() {
            then.insert(ByKey(event.object.clone()), event.previous.as_ref());
        }
        let is_wanted = |object: &ByKey| namespace.is_none_or(|n| object.0.namespace() == n);
        let mut changed = then
            .range::<dyn Named, _>((Bound::Included(start as &dyn Named), Bound::Unbounded))
            .take_while(|(object, _)| is_wanted(object))
            .peekable();
        let mut current = table
            .from(start, namespace)
            .filter(|object| then.is_empty() || !then.contains_key(object.as_ref() as &dyn Named))
            .peekable();
        // Both are sorted: merged, they are the list of that time.
        loop {
            let is_changed_next = match (changed.peek(), current.peek()) {
                (None, None) => break,
                (Some((changed, _)), Some(current)) => changed.named() < current.named(),
                (changed, _) => changed.is_some(),
            };
            let next = match is_changed_next {
                true => changed.next().and_then(|(_, object)| *object),
                false => current.next(),
            };
            match next {
                Some(object) if listed.objects.len() < limit => {
                    listed.objects.push(object.clone());
                }
                Some(_) => listed.remaining += 1,
                None => {}
            }
        }
        Ok(listed)
    }

    /// Returns the object with this UID.
    pub(crate) fn stored_by_uid(&self, uid: &str) -> Option<Arc<Stored>> {
        Some(self.state.lock().by_uid.get(uid)?.0.clone())
    }

    /// Returns the decoded object with this UID, and the name of its resource.
    pub(crate) fn by_uid(&self, uid: &str) -> Option<(String, Arc<Value>)> {
        let object = self.stored_by_uid(uid)?;
        Some((object.resource().to_string(), decoded(object)))
    }

    /// Returns the objects that have `uid` in their owner references, sorted by resource and key.
    pub(crate) fn stored_dependents(&self, uid: &str) -> Vec<Arc<Stored>> {
        let mut found: Vec<ByPlace> = match self.state.lock().by_owner.get(uid) {
            Some(dependents) => dependents.iter().cloned().collect(),
            None => return Vec::new(),
        };
        found.sort_by(|a, b| a.place().cmp(&b.place()));
        found.into_iter().map(|ByPlace(object)| object).collect()
    }

    /// Returns the decoded objects that have `uid` in their owner references, each with the name of
    /// its resource.
    pub(crate) fn dependents(&self, uid: &str) -> Vec<(String, Arc<Value>)> {
        let found = self.stored_dependents(uid).into_iter();
        found
            .map(|object| (object.resource().to_string(), decoded(object)))
            .collect()
    }

    /// Returns the resources that have objects in `namespace`.
    pub(crate) fn resources_in(&self, namespace: &str) -> Vec<String> {
        let state = self.state.lock();
        let start = Key::new(namespace, "");
        let holds = |table: &Table| table.from(&start, Some(namespace)).next().is_some();
        let mut names: Vec<_> = state
            .tables
            .iter()
            .filter(|(_, t)| holds(t))
            .map(|(name, _)| name.to_string())
            .collect();
        names.sort();
        names
    }
}

impl Table {
    pub(super) fn get(&self, key: &Key) -> Option<&Arc<Stored>> {
        self.objects
            .get(key as &dyn Named)
            .map(|ByKey(object)| object)
    }

    /// Returns the objects from the key `start` on, in this namespace or, if it is `None`, in all
    /// namespaces.
    fn from<'a>(
        &'a self,
        start: &Key,
        namespace: Option<&'a str>,
    ) -> impl Iterator<Item = &'a Arc<Stored>> + use<'a> {
        let range = (Bound::Included(start as &dyn Named), Bound::Unbounded);
        self.objects
            .range::<dyn Named, _>(range)
            .map(|ByKey(object)| object)
            .take_while(move |object| namespace.is_none_or(|n| object.namespace() == n))
    }
}

fn decoded(object: Arc<Stored>) -> Arc<Value> {
    Arc::new(object.decode())
}
