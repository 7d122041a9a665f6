//! What we wrote and deleted ourselves, until the watch has caught up: older news are held against it.

use std::collections::{HashMap, HashSet};

use opkit_client::ObjectKey;

use super::{Entry, number};

#[derive(Debug, Default)]
pub(super) struct Overlay {
    /// Objects as our own writes left them, by version.
    written: HashMap<ObjectKey, u64>,
    /// Objects that we deleted, by UID.
    deleted: HashMap<ObjectKey, String>,
}

impl Overlay {
    /// Notes a write of ours; false if a later one is noted already.
    pub(super) fn write(&mut self, key: &ObjectKey, version: u64) -> bool {
        if self.is_behind_write(key, version) {
            return false;
        }
        self.written.insert(key.clone(), version);
        true
    }

    /// Notes a deletion of ours.
    pub(super) fn delete(&mut self, key: &ObjectKey, uid: &str) {
        self.written.remove(key);
        self.deleted.insert(key.clone(), uid.to_owned());
    }

    /// Whether what the watch tells of the object `key` with this UID at `version` is news, and not
    /// older than our own write or deletion, which are then forgotten.
    pub(super) fn catches_up(
        &mut self,
        key: &ObjectKey,
        uid: Option<&str>,
        version: Option<&str>,
        gone: bool,
    ) -> bool {
        if let Some(deleted) = self.deleted.get(key) {
            let same = uid == Some(deleted);
            if same && !gone {
                return false;
            }
            if same || !gone {
                self.deleted.remove(key);
            }
        }
        match number(version) {
            Some(version) if self.is_behind_write(key, version) => false,
            _ => {
                self.written.remove(key);
                true
            }
        }
    }

    /// Takes out of a list of `namespace`, or of all, what we wrote and deleted while it was on its
    /// way, and forgets what it has caught up with. `version` is the list's own; without one it
    /// cannot be compared, and is the truth.
    pub(super) fn outlast(
        &mut self,
        namespace: Option<&str>,
        list: &mut Vec<(ObjectKey, Entry)>,
        version: Option<u64>,
    ) {
        let elsewhere =
            |key: &ObjectKey| namespace.is_some() && key.namespace.as_deref() != namespace;
        self.written.retain(|key, written| {
            elsewhere(key) || version.is_some_and(|version| version < *written)
        });
        let mut undone = HashSet::new();
        list.retain(|(key, entry)| {
            let uid = entry.version().uid;
            let deleted = self.deleted.get(key);
            if version.is_some() && uid.is_some() && uid.as_ref() == deleted {
                undone.insert(key.clone());
                return false;
            }
            !self.is_written(key)
        });
        self.deleted
            .retain(|key, _| elsewhere(key) || undone.contains(key));
    }

    /// Whether the object is as a write of ours left it, as far as we know.
    pub(super) fn is_written(&self, key: &ObjectKey) -> bool {
        self.written.contains_key(key)
    }

    fn is_behind_write(&self, key: &ObjectKey, version: u64) -> bool {
        self.written
            .get(key)
            .is_some_and(|written| version < *written)
    }
}
