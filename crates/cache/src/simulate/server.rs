//! The model of an API server: objects, their whole history, and what of it was compacted.

use std::collections::{BTreeMap, BTreeSet};

use opkit_apimachinery::random::Random;
use serde_json::{Value, json};

use super::link::Link;

pub(super) const NAMESPACES: [&str; 3] = ["a", "b", "c"];
pub(super) const NAMES: u64 = 5;

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
    /// Whether it does not fit its type.
    pub(super) is_broken: bool,
    /// Whether it has the label that informers with a selector ask for.
    pub(super) is_selected: bool,
    pub(super) is_deleting: bool,
    pub(super) finalizers: usize,
}

impl Object {
    pub(super) fn json(&self) -> Value {
        let finalizers = (0..self.finalizers).map(|n| format!("example.com/f{n}"));
        let mut meta = json!({
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
pub(super) struct Happened {
    pub(super) change: Change,
    pub(super) before: Option<Object>,
    /// The object after it; of a deletion the last state, with the deletion's version.
    pub(super) object: Object,
}

impl Happened {
    /// What a watch reports of it, if anything.
    pub(super) fn reported(&self, selects: bool) -> Option<(Change, Object)> {
        let was = self.before.as_ref().filter(|it| !selects || it.is_selected);
        let is_there = self.change != Change::Deleted && (!selects || self.object.is_selected);
        match (was, is_there) {
            (None, true) => Some((Change::Added, self.object.clone())),
            (Some(_), true) => Some((Change::Modified, self.object.clone())),
            // What the selector no longer matches is reported as deleted, as it was.
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

/// The response to a write.
#[derive(Debug, Clone)]
pub(super) enum Response {
    /// The object as it is now, or as it ended.
    Object(Object),
    /// The object of this key and UID is gone. The caller knew it at `known`.
    Gone {
        key: Key,
        uid: String,
        known: Option<u64>,
    },
}

impl Response {
    /// Namespace and UID of the object.
    pub(super) fn of(&self) -> (&'static str, &str) {
        match self {
            Self::Object(object) => (object.key.namespace, &object.uid),
            Self::Gone { key, uid, .. } => (key.namespace, uid),
        }
    }
}

/// Whether the server has streaming lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Streaming {
    Has,
    Refuses,
    Ignores,
}

#[derive(Debug)]
pub(super) struct Server {
    pub(super) streaming: Streaming,
    /// How many names there are in a namespace; with few, much happens to each object.
    names: u64,
    /// Whether it knows shards.
    pub(super) has_shards: bool,
    /// Whether some objects do not fit their type.
    pub(super) has_broken: bool,
    pub(super) version: u64,
    /// The first version that a watch can no longer begin at.
    pub(super) compacted: u64,
    history: Vec<Happened>,
    /// Versions of writes that restores have undone. They are not used again, because two states of
    /// one object with the same version could not be distinguished.
    undone: BTreeSet<u64>,
    uids: u64,
    restored: u64,
    /// Whether nothing is written, since a reflector has not noticed that the server was restored.
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

    /// How often the server was restored from a backup.
    pub(super) fn restored(&self) -> u64 {
        self.restored
    }

    /// After a restore nothing is written until every reflector has noticed: versions of the new
    /// history that pass those of the old cannot be told apart from them by anybody.
    pub(super) fn is_frozen(&mut self, links: &[Link]) -> bool {
        self.frozen &= !links.iter().all(|link| link.knows_restore(self.restored));
        self.frozen
    }

    /// What there was at a version, in the order of names.
    pub(super) fn at(&self, version: u64) -> BTreeMap<Key, Object> {
        let mut objects = BTreeMap::new();
        for happened in &self.history {
            if happened.object.version > version {
                break;
            }
            let object = &happened.object;
            match happened.change {
                Change::Deleted => drop(objects.remove(&object.key)),
                _ => drop(objects.insert(object.key.clone(), object.clone())),
            }
        }
        objects
    }

    pub(super) fn objects(&self) -> Vec<Object> {
        self.at(u64::MAX).into_values().collect()
    }

    /// What happened after a version.
    pub(super) fn after(&self, version: u64) -> impl Iterator<Item = &Happened> {
        let begin = self
            .history
            .partition_point(|happened| happened.object.version <= version);
        self.history[begin..].iter()
    }

    /// Whether a reader that has seen a version may find nothing under a key.
    pub(super) fn was_absent(&self, key: &Key, since: u64, selects: bool) -> bool {
        let is_absent = |object: &Object| selects && !object.is_selected;
        self.at(since).get(key).is_none_or(is_absent)
            || self.after(since).any(|happened| {
                happened.object.key == *key
                    && (happened.change == Change::Deleted || is_absent(&happened.object))
            })
    }

    /// Changes some object as somebody asks for.
    pub(super) fn write(&mut self, random: &mut Random) -> Response {
        let key = Key {
            namespace: NAMESPACES[random.below(NAMESPACES.len() as u64) as usize],
            name: format!("o{}", random.below(self.names)),
        };
        // Writes to other kinds use up versions as well.
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
            // It is being deleted already: nothing changes.
            0..40 if before.is_deleting => Response::Object(before),
            0..40 => {
                object.is_deleting = true;
                self.record(Change::Modified, Some(before), object)
            }
            40..60 if before.finalizers > 0 => {
                object.finalizers -= 1;
                if before.is_deleting && object.finalizers == 0 {
                    // The response is what was asked for, in the version of before.
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
            _ => self.record(Change::Modified, Some(before), object),
        }
    }

    fn record(&mut self, change: Change, before: Option<Object>, object: Object) -> Response {
        self.history.push(Happened {
            change,
            before,
            object: object.clone(),
        });
        Response::Object(object)
    }

    /// Deletes an object by somebody who may have read an older version of it, or none.
    fn delete(&mut self, before: Object, random: &mut Random) -> Response {
        let (key, uid) = (before.key.clone(), before.uid.clone());
        let lives = self.history.iter().map(|happened| &happened.object);
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

    /// Forgets the history up to some version.
    pub(super) fn compact(&mut self, random: &mut Random) {
        let span = self.version.saturating_sub(self.compacted);
        self.compacted += random.below(span + 1);
    }

    /// Goes back to some version that a backup has, and that no reflector is at: one that is would
    /// go on as if nothing had happened.
    pub(super) fn restore(&mut self, links: &[Link], random: &mut Random) {
        let back = random.below(30);
        let mut version = self.version.saturating_sub(back).max(1);
        while links.iter().any(|link| link.version() == version) {
            version -= 1;
        }
        self.version = version;
        let undone = self.after(version).map(|happened| happened.object.version);
        self.undone.extend(undone.collect::<Vec<_>>());
        self.history
            .retain(|happened| happened.object.version <= version);
        self.compacted = self.version;
        self.restored += 1;
        self.frozen = true;
    }
}
