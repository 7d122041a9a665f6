//! What we wrote and deleted ourselves, until the watch has caught up: older news are held against it.

use std::collections::HashMap;

use opkit_client::ObjectKey;

use crate::shard::Part;

#[derive(Debug, Default)]
pub(crate) struct Overlay {
    /// Objects as our own writes left them.
    written: HashMap<ObjectKey, Written>,
    /// Objects that we deleted, by UID.
    deleted: HashMap<ObjectKey, Deleted>,
    /// UIDs of objects that a list on its way told as deleted. Lists tell the truth of them.
    gone_in_list: HashMap<ObjectKey, String>,
}

#[derive(Debug)]
struct Written {
    version: u64,
    uid: Option<String>,
}

#[derive(Debug)]
struct Deleted {
    uid: String,
    /// Whether the list that is on its way tells the object.
    listed: bool,
    /// Whether it was being deleted already when we deleted it.
    was_deleting: bool,
}

impl Overlay {
    /// Whether nothing is waited for.
    pub(crate) fn is_empty(&self) -> bool {
        self.written.is_empty() && self.deleted.is_empty()
    }

    /// Notes a write of ours; false if a later one is noted already.
    pub(crate) fn write(&mut self, key: &ObjectKey, uid: Option<&str>, version: u64) -> bool {
        if self.is_behind_write(key, version) {
            return false;
        }
        let uid = uid.map(str::to_owned);
        self.written.insert(key.clone(), Written { version, uid });
        true
    }

    /// Notes a deletion of ours.
    pub(crate) fn delete(&mut self, key: &ObjectKey, uid: &str, was_deleting: bool) {
        self.written.remove(key);
        let deleted = Deleted {
            uid: uid.to_owned(),
            // A list on its way may have told it before.
            listed: true,
            was_deleting,
        };
        self.deleted.insert(key.clone(), deleted);
    }

    /// Notes that a list on its way told a deletion: until its end, answers from before are old.
    pub(crate) fn gone_in_list(&mut self, key: &ObjectKey, uid: &str) {
        self.gone_in_list.insert(key.clone(), uid.to_owned());
    }

    /// Takes in that the server tells the object as being deleted: if it was not when we deleted it,
    /// it lives on after our deletion, for a finalizer that we did not know of.
    pub(crate) fn is_deleting(&mut self, key: &ObjectKey, uid: Option<&str>) {
        let deleted = self.deleted.get(key);
        if deleted.is_some_and(|deleted| uid == Some(&deleted.uid) && !deleted.was_deleting) {
            self.deleted.remove(key);
        }
    }

    /// Whether what the watch tells of the object `key` with this UID at `version` is news, and not
    /// older than our own write or deletion, which are then forgotten.
    pub(crate) fn catches_up(
        &mut self,
        key: &ObjectKey,
        uid: Option<&str>,
        version: Option<u64>,
        gone: bool,
    ) -> bool {
        if let Some(deleted) = self.deleted.get(key) {
            let same = uid == Some(&deleted.uid);
            if same && !gone {
                return false;
            }
            if same || !gone {
                self.deleted.remove(key);
            }
        }
        match version {
            Some(version) if self.is_behind_write(key, version) => false,
            _ => {
                self.written.remove(key);
                true
            }
        }
    }

    /// Forgets what is in none of `parts`.
    pub(crate) fn keep(&mut self, parts: &[Part]) {
        let covers = |key: &ObjectKey, uid: Option<&str>| {
            let namespace = key.namespace.as_deref();
            parts.iter().any(|part| part.covers(namespace, uid))
        };
        self.written
            .retain(|key, written| covers(key, written.uid.as_deref()));
        self.deleted
            .retain(|key, deleted| covers(key, Some(&deleted.uid)));
    }

    /// A list of `part` begins.
    pub(crate) fn begin_list(&mut self, part: &Part) {
        for (key, deleted) in &mut self.deleted {
            if part.covers(key.namespace.as_deref(), Some(&deleted.uid)) {
                deleted.listed = false;
            }
        }
    }

    /// Whether what a list tells of an object may be stored already. If not, it has to wait for
    /// the end of the list, which says how old the list is.
    pub(crate) fn is_listable(
        &mut self,
        key: &ObjectKey,
        uid: Option<&str>,
        version: Option<u64>,
    ) -> bool {
        if let Some(deleted) = self.deleted.get_mut(key)
            && uid == Some(&deleted.uid)
        {
            deleted.listed = true;
            return false;
        }
        version.is_none_or(|version| !self.is_behind_write(key, version))
    }

    /// Forgets what a complete list of `part` has caught up with. `version` is the list's own;
    /// without one it cannot be compared, and is the truth.
    pub(crate) fn end_list(&mut self, part: &Part, version: Option<u64>) {
        self.written.retain(|key, written| {
            !part.covers(key.namespace.as_deref(), written.uid.as_deref())
                || version.is_some_and(|version| version < written.version)
        });
        self.deleted.retain(|key, deleted| {
            !part.covers(key.namespace.as_deref(), Some(&deleted.uid))
                || (deleted.listed && version.is_some())
        });
        self.gone_in_list
            .retain(|key, uid| !part.covers(key.namespace.as_deref(), Some(uid)));
    }

    /// Whether the object of this UID is deleted, by us or as a list on its way says.
    pub(crate) fn is_deleted(&self, key: &ObjectKey, uid: Option<&str>) -> bool {
        let deleted = self.deleted.get(key).map(|deleted| &deleted.uid);
        let gone = [deleted, self.gone_in_list.get(key)];
        gone.into_iter().flatten().any(|gone| uid == Some(gone))
    }

    /// Whether the object of this UID is as a write of ours left it, as far as we know.
    pub(crate) fn is_written(&self, key: &ObjectKey, uid: Option<&str>) -> bool {
        let written = self.written.get(key);
        written.is_some_and(|written| written.uid.as_deref() == uid)
    }

    fn is_behind_write(&self, key: &ObjectKey, version: u64) -> bool {
        self.written
            .get(key)
            .is_some_and(|written| version < written.version)
    }
}
