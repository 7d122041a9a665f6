//! Model of an API server: its objects, their complete history, and how much of the history is
//! compacted.

use std::collections::{BTreeMap, BTreeSet};

use opkit_random::Random;
use serde_json::{Value, json};

use super::link::Link;

pub(super) const NAMESPACES: [&str; 3] = ["a", "b", "c"];
pub(super) const NAMES: u64 = 5;
/// UIDs of owners: each half of the hashes contains two of them.
pub(super) const OWNERS: [&str; 4] = ["0-owner", "1-owner", "2-owner", "3-owner"];

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Key {
    pub(super) namespace: &'static str,
    pub(super) name: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) key: Key,
    pub(super) uid: String,
    pub(super) version: u64,
    /// Whether the object cannot be decoded as its Rust type.
    pub(super) is_broken: bool,
    /// Whether the object has the label that informers with a selector request.
    pub(super) is_selected: bool,
    pub(super) is_deleting: bool,
    pub(super) finalizers: usize,
    /// UIDs of the owners.
    pub(super) owners: Vec<&'static str>,
}

impl Object {
    pub(super) fn json(&self) -> Value {
        let finalizers = (0..self.finalizers).map(|n| format!("example.com/f{n}"));
        let owners = self.owners.iter();
        let owners = owners.map(
            |uid| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid}),
        );
        let mut meta = json!({
            "ownerReferences": owners.collect::<Vec<_>>(),
            "namespace": self.key.namespace,
            "name": self.key.name,
            "uid": self.uid,
            "resourceVersion": self.version.to_string(),
            "labels": {"app": if self.is_selected { "web" } else { "db" }},
            "finalizers": finalizers.collect::<Vec<_>>(),
        });
        if self.is_deleting {
            meta["deletionTimestamp"] = "2026-11-15T14:33:48Z".into();
            meta["deletionGracePeriodSeconds"] = 0.into();
        }
        let data = match self.is_broken {
            true => json!(5),
            false => json!({"at": self.version.to_string()}),
        };
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": data})
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Added,
    Modified,
    Deleted,
}

#[derive(Debug, Clone)]
pub(super) struct HistoryEntry {
    pub(super) change: Change,
    pub(super) before: Option<Object>,
    /// Object after the change. For a deletion, the last state of the object, with the version of
    /// the deletion.
    pub(super) object: Object,
}

impl HistoryEntry {
    /// Returns the event that a watch reports for this change, if any. `selects` is whether the
    /// watch has a label selector.
    pub(super) fn reported(&self, selects: bool) -> Option<(Change, Object)> {
        let was = self.before.as_ref().filter(|it| !selects || it.is_selected);
        let is_there = self.change != Change::Deleted && (!selects || self.object.is_selected);
        match (was, is_there) {
            (None, true) => Some((Change::Added, self.object.clone())),
            (Some(_), true) => Some((Change::Modified, self.object.clone())),
            // An object that no longer matches the selector is reported as deleted, in its previous
            // state.
            (Some(was), false) => {
                let version = self.object.version;
                let last = Object {
                    version,
                    ..was.clone()
                };
                Some((Change::Deleted, last))
            }
            (None, false) => None,
        }
    }
}

/// Response to a write.
#[derive(Debug, Clone)]
pub(super) enum Response {
    /// The object after the write. If the write removed the object, its last state.
    Object(Object),
    /// The object with this key and UID is deleted. `known` is the last version that the caller had
    /// read.
    Gone {
        key: Key,
        uid: String,
        known: Option<u64>,
    },
}

impl Response {
    /// Returns the namespace and the UID of the object.
    pub(super) fn of(&self) -> (&'static str, &str) {
        match self {
            Self::Object(object) => (object.key.namespace, &object.uid),
            Self::Gone { key, uid, .. } => (key.namespace, uid),
        }
    }
}

/// How the server handles requests for streaming lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Streaming {
    Has,
    Refuses,
    Ignores,
}

#[derive(Debug)]
pub(super) struct Server {
    pub(super) streaming: Streaming,
    /// Number of names in a namespace; with few names, each object changes often.
    names: u64,
    /// Whether the server supports shards.
    pub(super) has_shards: bool,
    /// Whether some objects cannot be decoded as their Rust type.
    pub(super) has_broken: bool,
    pub(super) version: u64,
    /// Lowest version from which a watch can start.
    pub(super) compacted: u64,
    history: Vec<HistoryEntry>,
    /// Versions of writes that restores have undone. These versions are not used again, because two
    /// states of one object with the same version could not be distinguished.
    undone: BTreeSet<u64>,
    uids: u64,
    restored: u64,
    /// Whether writes are paused, because a reflector has not noticed that the server was restored.
    frozen: bool,
}

impl Server {
    pub(super) fn new(random: &mut Random) -> Self {
        let streaming = match random.below(10) {
            0..6 => Streaming::Has,
            6..9 => Streaming::Refuses,
            _ => Streaming::Ignores,
        };
        Self {
            streaming,
            names: 1 + random.below(NAMES),
            has_shards: random.percent(50),
            has_broken: true,
            version: 1 + random.below(100),
            compacted: 0,
            history: Vec::new(),
            undone: BTreeSet::new(),
            uids: 0,
            restored: 0,
            frozen: false,
        }
    }

    /// Returns the number of times the server was restored from a backup.
    pub(super) fn restored(&self) -> u64 {
        self.restored
    }

    /// Reports whether writes are paused. After a restore nothing is written until every reflector
    /// has noticed the restore. Otherwise versions of the new history could be confused with those
    /// of the old history.
    pub(super) fn is_frozen(&mut self, links: &[Link]) -> bool {
        self.frozen &= !links.iter().all(|link| link.knows_restore(self.restored));
        self.frozen
    }

    /// Returns the objects at a version, ordered by name.
    pub(super) fn at(&self, version: u64) -> BTreeMap<Key, Object> {
        let mut objects = BTreeMap::new();
        for entry in &self.history {
            if entry.object.version > version {
                break;
            }
            let object = &entry.object;
            match entry.change {
                Change::Deleted => drop(objects.remove(&object.key)),
                _ => drop(objects.insert(object.key.clone(), object.clone())),
            }
        }
        objects
    }

    pub(super) fn objects(&self) -> Vec<Object> {
        self.at(u64::MAX).into_values().collect()
    }

    /// Returns the changes after a version.
    pub(super) fn after(&self, version: u64) -> impl Iterator<Item = &HistoryEntry> {
        let begin = self
            .history
            .partition_point(|entry| entry.object.version <= version);
        self.history[begin..].iter()
    }

    /// Reports whether the object with this key was absent at the version `since` or at any later
    /// version. An object that is not read by any reflector counts as absent.
    pub(super) fn was_absent(
        &self,
        key: &Key,
        since: u64,
        is_read: impl Fn(&Object) -> bool,
    ) -> bool {
        let is_absent = |object: &Object| !is_read(object);
        self.at(since).get(key).is_none_or(&is_absent)
            || self.after(since).any(|entry| {
                entry.object.key == *key
                    && (entry.change == Change::Deleted || is_absent(&entry.object))
            })
    }

    /// Changes a random object.
    pub(super) fn write(&mut self, random: &mut Random) -> Response {
        let key = Key {
            namespace: NAMESPACES[random.below(NAMESPACES.len() as u64) as usize],
            name: format!("o{}", random.below(self.names)),
        };
        // Writes to other kinds use versions as well.
        self.version += 1 + random.below(3);
        while self.undone.contains(&self.version) {
            self.version += 1;
        }
        let is_broken = self.has_broken && random.percent(5);
        let Some(before) = self.at(u64::MAX).remove(&key) else {
            self.uids += 1;
            let object = Object {
                key,
                uid: format!("u{}", self.uids),
                version: self.version,
                is_broken,
                is_selected: random.percent(70),
                is_deleting: false,
                finalizers: random.below(4).saturating_sub(2) as usize,
                owners: owners(random),
            };
            return self.record(Change::Added, None, object);
        };
        let mut object = Object {
            version: self.version,
            is_broken,
            ..before.clone()
        };
        match random.below(100) {
            0..40 if before.finalizers == 0 => self.delete(before, random),
            // The object is already being deleted: nothing changes.
            0..40 if before.is_deleting => Response::Object(before),
            0..40 => {
                object.is_deleting = true;
                self.record(Change::Modified, Some(before), object)
            }
            40..60 if before.finalizers > 0 => {
                object.finalizers -= 1;
                if before.is_deleting && object.finalizers == 0 {
                    // The response is the requested state, at the previous version.
                    object.version = before.version;
                    self.delete(before, random);
                    return Response::Object(object);
                }
                self.record(Change::Modified, Some(before), object)
            }
            60..75 => {
                object.is_selected = !object.is_selected;
                self.record(Change::Modified, Some(before), object)
            }
            75..80 if !before.is_deleting => {
                object.finalizers += 1;
                self.record(Change::Modified, Some(before), object)
            }
            80..92 => {
                object.owners = owners(random);
                self.record(Change::Modified, Some(before), object)
            }
            _ => self.record(Change::Modified, Some(before), object),
        }
    }

    fn record(&mut self, change: Change, before: Option<Object>, object: Object) -> Response {
        self.history.push(HistoryEntry {
            change,
            before,
            object: object.clone(),
        });
        Response::Object(object)
    }

    /// Deletes an object. The caller may have read an older version of the object, or none.
    fn delete(&mut self, before: Object, random: &mut Random) -> Response {
        let (key, uid) = (before.key.clone(), before.uid.clone());
        let lives = self.history.iter().map(|entry| &entry.object);
        let versions: Vec<u64> = lives
            .filter(|object| object.uid == uid)
            .map(|object| object.version)
            .collect();
        let known = versions.get(random.below(versions.len() as u64 + 1) as usize);
        let known = known.copied();
        let last = Object {
            version: self.version,
            ..before.clone()
        };
        self.record(Change::Deleted, Some(before), last);
        Response::Gone { key, uid, known }
    }

    /// Compacts the history up to a random version.
    pub(super) fn compact(&mut self, random: &mut Random) {
        let span = self.version.saturating_sub(self.compacted);
        self.compacted += random.below(span + 1);
    }

    /// Restores the server to a random earlier version. Chooses a version that no reflector has
    /// reached, since a reflector at exactly that version would not notice the restore.
    pub(super) fn restore(&mut self, links: &[Link], random: &mut Random) {
        let back = random.below(30);
        let mut version = self.version.saturating_sub(back).max(1);
        while links.iter().any(|link| link.version() == version) {
            version -= 1;
        }
        self.version = version;
        let undone = self.after(version).map(|entry| entry.object.version);
        self.undone.extend(undone.collect::<Vec<_>>());
        self.history.retain(|entry| entry.object.version <= version);
        self.compacted = self.version;
        self.restored += 1;
        self.frozen = true;
    }
}

/// Returns the UIDs of up to two random owners.
fn owners(random: &mut Random) -> Vec<&'static str> {
    let count = random.below(3);
    let owners = (0..count).map(|_| OWNERS[random.below(OWNERS.len() as u64) as usize]);
    owners.collect()
}
