//! Reads of the store: current objects, and lists of the objects as they were at a past revision.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::{Key, Store, Table, TooOld};

impl Store {
    /// Returns the current object with this key, if there is one.
    pub(crate) fn get(&self, resource: &str, key: &Key) -> Option<Arc<Value>> {
        self.state
            .lock()
            .tables
            .get(resource)?
            .objects
            .get(key)
            .cloned()
    }

    /// Returns the objects of a resource, sorted by key, and the revision at which they were read.
    /// `None` as the namespace means all namespaces.
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

    /// Returns the objects from the key `start` on, sorted by key, as they were at `revision`. Also
    /// returns the revision. If `revision` is `None`, the current objects are returned. A past
    /// state is computed from the current objects by undoing the events after `revision`.
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
        // The state at `revision` of the objects that changed since: the one before their first
        // event.
        let mut then: BTreeMap<Key, Option<Arc<Value>>> = BTreeMap::new();
        for event in table.after(revision)?.rev() {
            then.insert(Key::of(&event.object), event.previous.clone());
        }
        let is_wanted = |key: &Key| namespace.is_none_or(|namespace| key.namespace == namespace);
        let unchanged = table
            .objects
            .range(start..)
            .take_while(|(key, _)| is_wanted(key))
            .filter(|(key, _)| !then.contains_key(key))
            .map(|(_, object)| object.clone());
        let mut objects: Vec<Arc<Value>> = unchanged.collect();
        if !then.is_empty() {
            let changed = then.range(start..).take_while(|(key, _)| is_wanted(key));
            objects.extend(changed.filter_map(|(_, object)| object.clone()));
            objects.sort_by_cached_key(|object| Key::of(object));
        }
        Ok((objects, revision))
    }

    /// Returns the object with this UID, and the name of its resource.
    pub(crate) fn by_uid(&self, uid: &str) -> Option<(String, Arc<Value>)> {
        let state = self.state.lock();
        let (resource, key) = state.by_uid.get(uid)?;
        let object = state.tables.get(resource)?.objects.get(key)?;
        Some((resource.clone(), object.clone()))
    }

    /// Returns the objects that have `uid` in their owner references, each with the name of its
    /// resource.
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

    /// Returns the resources that have objects in `namespace`.
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
}
