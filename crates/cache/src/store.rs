//! The store: objects of one kind by key, with an index by owner. Synchronous, no I/O; every change
//! answers what was there before.

mod overlay;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use opkit_client::ObjectKey;

use self::overlay::Overlay;
use crate::{AnyObject, DecodeError};

/// What happened to one object. Where several changes of it were coalesced, `old` is what the
/// listener saw last and `new` is what there is now: they may be alike though it was something else
/// in between.
#[derive(Debug, Clone)]
pub struct Delta {
    /// The object.
    pub key: ObjectKey,
    /// What it was; none if it is new to the listener.
    pub old: Option<AnyObject>,
    /// What it is; none if it is gone or unreadable.
    pub new: Option<AnyObject>,
    /// Why it is unreadable.
    pub unreadable: Option<Arc<DecodeError>>,
    /// Whether it was there before the listener began: part of the first list.
    pub initial: bool,
    /// Whether several changes were coalesced.
    pub coalesced: bool,
    /// Of the versions in between, those with other labels or owners; a few at most.
    pub between: Vec<AnyObject>,
}

/// What is stored of one object.
#[derive(Debug, Clone)]
pub(crate) enum Entry {
    Object(AnyObject),
    Unreadable {
        error: Arc<DecodeError>,
        version: Version,
        /// What it was when it could be read last, so that its owner hears of its end.
        last: Option<AnyObject>,
    },
}

/// Identity and version of an object: equal versions are equal objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
}

impl Entry {
    pub(crate) fn version(&self) -> Version {
        match self {
            Entry::Object(object) => Version {
                uid: object.object_meta().uid.clone(),
                resource_version: object.object_meta().resource_version.clone(),
            },
            Entry::Unreadable { version, .. } => version.clone(),
        }
    }

    fn object(&self) -> Option<&AnyObject> {
        match self {
            Entry::Object(object) => Some(object),
            Entry::Unreadable { .. } => None,
        }
    }

    /// The object, or what it was when it could be read last.
    fn last_readable(&self) -> Option<&AnyObject> {
        match self {
            Entry::Object(object) => Some(object),
            Entry::Unreadable { last, .. } => last.as_ref(),
        }
    }

    fn unreadable(&self) -> Option<Arc<DecodeError>> {
        match self {
            Entry::Object(_) => None,
            Entry::Unreadable { error, .. } => Some(error.clone()),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Store {
    entries: HashMap<ObjectKey, Entry>,
    by_owner: HashMap<String, HashSet<ObjectKey>>,
    ours: Overlay,
}

impl Store {
    pub(crate) fn get(&self, key: &ObjectKey) -> Option<&Entry> {
        self.entries.get(key)
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The readable objects.
    pub(crate) fn objects(&self) -> impl Iterator<Item = &AnyObject> {
        self.entries.values().filter_map(Entry::object)
    }

    /// The readable objects that have an owner reference to `uid`.
    pub(crate) fn owned_by(&self, uid: &str) -> impl Iterator<Item = &AnyObject> {
        let keys = self.by_owner.get(uid).into_iter().flatten();
        keys.filter_map(|key| self.entries.get(key))
            .filter_map(Entry::object)
    }

    /// Everything, as a listener that begins now sees it.
    pub(crate) fn snapshot(&self) -> impl Iterator<Item = Delta> {
        self.entries.iter().map(|(key, entry)| Delta {
            key: key.clone(),
            old: None,
            new: entry.object().cloned(),
            unreadable: entry.unreadable(),
            initial: true,
            coalesced: false,
            between: Vec::new(),
        })
    }

    /// Stores the answer to a write of our own that the watch has not told yet.
    pub(crate) fn write(&mut self, key: ObjectKey, object: AnyObject) -> Option<Delta> {
        let version = number(object.object_meta().resource_version.as_deref())?;
        match self.ours.write(&key, version) {
            true => self.upsert(key, Entry::Object(object)),
            false => None,
        }
    }

    /// Forgets an object that we deleted, before the watch tells it.
    pub(crate) fn delete(&mut self, key: &ObjectKey, uid: &str) -> Option<Delta> {
        if self.entries.get(key)?.version().uid.as_deref() != Some(uid) {
            return None;
        }
        self.ours.delete(key, uid);
        self.remove(key)
    }

    /// Whether what the watch tells of the object `key` with this UID at `version` is news, and not
    /// older than our own write or deletion, which are then forgotten.
    pub(crate) fn catches_up(
        &mut self,
        key: &ObjectKey,
        uid: Option<&str>,
        version: Option<&str>,
        gone: bool,
    ) -> bool {
        self.ours.catches_up(key, uid, version, gone)
    }

    /// Stores an object. `None` if it was there in this version already.
    pub(crate) fn upsert(&mut self, key: ObjectKey, mut entry: Entry) -> Option<Delta> {
        let old = self.entries.get(&key);
        if old.is_some_and(|old| old.version() == entry.version()) {
            return None;
        }
        if let Entry::Unreadable { last, .. } = &mut entry {
            *last = old.and_then(Entry::last_readable).cloned();
        }
        if let Some(object) = entry.object() {
            self.index(&key, &object.clone());
        }
        let new = entry.object().cloned();
        let unreadable = entry.unreadable();
        let old = self.entries.insert(key.clone(), entry);
        let old = old.and_then(|old| old.object().cloned());
        if let Some(old) = &old {
            self.unindex(
                &key,
                old.object_meta(),
                new.as_ref().map(|new| new.object_meta()),
            );
        }
        Some(Delta {
            key,
            old,
            new,
            unreadable,
            initial: false,
            coalesced: false,
            between: Vec::new(),
        })
    }

    /// Forgets an object. `None` if it was not there.
    pub(crate) fn remove(&mut self, key: &ObjectKey) -> Option<Delta> {
        let old = self.entries.remove(key)?;
        if let Some(old) = old.object() {
            self.unindex(key, old.object_meta(), None);
        }
        Some(Delta {
            key: key.clone(),
            old: old.last_readable().cloned(),
            new: None,
            unreadable: None,
            initial: false,
            coalesced: false,
            between: Vec::new(),
        })
    }

    /// Makes `list` all there is in `namespace`, or everywhere, and answers what changed: deletions
    /// first, as client-go has it. An object that was deleted and made again meanwhile is a
    /// deletion and an addition. What we wrote after `version`, that of the list, stays; without
    /// one the list is the truth.
    pub(crate) fn replace(
        &mut self,
        namespace: Option<&str>,
        mut list: Vec<(ObjectKey, Entry)>,
        version: Option<u64>,
    ) -> Vec<Delta> {
        self.ours.outlast(namespace, &mut list, version);
        let listed: HashMap<_, _> = list
            .iter()
            .map(|(key, entry)| (key, entry.version().uid))
            .collect();
        let gone: Vec<_> = self
            .entries
            .iter()
            .filter(|(key, _)| namespace.is_none() || key.namespace.as_deref() == namespace)
            .filter(|(key, _)| !self.ours.is_written(key))
            .filter(|(key, old)| listed.get(key).is_none_or(|uid| *uid != old.version().uid))
            .map(|(key, _)| key.clone())
            .collect();
        let mut deltas: Vec<_> = gone.iter().filter_map(|key| self.remove(key)).collect();
        deltas.extend(
            list.into_iter()
                .filter_map(|(key, entry)| self.upsert(key, entry)),
        );
        deltas
    }

    fn index(&mut self, key: &ObjectKey, object: &AnyObject) {
        for uid in owner_uids(object.object_meta()) {
            self.by_owner
                .entry(uid.to_owned())
                .or_default()
                .insert(key.clone());
        }
    }

    fn unindex(&mut self, key: &ObjectKey, old: &ObjectMeta, new: Option<&ObjectMeta>) {
        for uid in owner_uids(old) {
            if new.is_some_and(|new| owner_uids(new).any(|kept| kept == uid)) {
                continue;
            }
            if let Some(keys) = self.by_owner.get_mut(uid) {
                keys.remove(key);
                if keys.is_empty() {
                    self.by_owner.remove(uid);
                }
            }
        }
    }
}

/// Versions are comparable as numbers (KEP-5504).
pub(crate) fn number(version: Option<&str>) -> Option<u64> {
    version?.parse().ok()
}

fn owner_uids(meta: &ObjectMeta) -> impl Iterator<Item = &str> {
    meta.owner_references
        .iter()
        .flatten()
        .map(|owner| owner.uid.as_str())
}

#[cfg(test)]
mod tests;
