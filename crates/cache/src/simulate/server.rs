//! The model of an API server: objects, their whole history, and what of it was compacted.

use std::collections::BTreeMap;

use super::link::Link;
use opkit_apimachinery::random::Random;

pub(super) const NAMESPACES: [&str; 3] = ["a", "b", "c"];
const NAMES: u64 = 5;

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
}

impl Object {
    pub(super) fn json(&self) -> String {
        let data = match self.is_broken {
            true => "5".to_owned(),
            false => format!(r#"{{"at":"{}"}}"#, self.version),
        };
        let (Key { namespace, name }, uid, version) = (&self.key, &self.uid, self.version);
        format!(
            r#"{{"metadata":{{"namespace":"{namespace}","name":"{name}","uid":"{uid}","resourceVersion":"{version}"}},"data":{data}}}"#
        )
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
    /// The object after it; of a deletion the last state, with the deletion's version.
    pub(super) object: Object,
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
    /// Whether it knows shards.
    pub(super) has_shards: bool,
    pub(super) version: u64,
    /// The first version that a watch can no longer begin at.
    pub(super) compacted: u64,
    history: Vec<Happened>,
    uids: u64,
    restored: u64,
    /// How often each reflector had listed when the server was restored.
    frozen: bool,
}

impl Server {
    pub(super) fn new(random: &mut Random) -> Self {
        let streaming = match random.below(10) {
            0..6 => Streaming::Has,
            6..9 => Streaming::Refuses,
            _ => Streaming::Ignores,
        };
        Server {
            streaming,
            has_shards: random.percent(50),
            version: 1 + random.below(100),
            compacted: 0,
            history: Vec::new(),
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

    /// Whether this object is deleted.
    pub(super) fn is_gone(&self, object: &Object) -> bool {
        let now = self.at(u64::MAX);
        now.get(&object.key).is_none_or(|now| now.uid != object.uid)
    }

    /// Changes some object; answers it, and whether it is gone.
    pub(super) fn write(&mut self, random: &mut Random) -> (Object, bool) {
        let key = Key {
            namespace: NAMESPACES[random.below(NAMESPACES.len() as u64) as usize],
            name: format!("o{}", random.below(NAMES)),
        };
        // Writes to other kinds use up versions as well.
        self.version += 1 + random.below(3);
        let now = self.at(u64::MAX).remove(&key);
        let (change, uid) = match now {
            None => {
                self.uids += 1;
                (Change::Added, format!("u{}", self.uids))
            }
            Some(now) if random.percent(40) => (Change::Deleted, now.uid),
            Some(now) => (Change::Modified, now.uid),
        };
        let object = Object {
            key,
            uid,
            version: self.version,
            is_broken: random.percent(5),
        };
        self.history.push(Happened {
            change,
            object: object.clone(),
        });
        (object, change == Change::Deleted)
    }

    /// Forgets the history up to some version.
    pub(super) fn compact(&mut self, random: &mut Random) {
        let span = self.version.saturating_sub(self.compacted);
        self.compacted += random.below(span + 1);
    }

    /// Goes back to some version that a backup has.
    pub(super) fn restore(&mut self, random: &mut Random) {
        let back = random.below(30);
        self.version = self.version.saturating_sub(back).max(1);
        let version = self.version;
        self.history
            .retain(|happened| happened.object.version <= version);
        self.compacted = self.version;
        self.restored += 1;
        self.frozen = true;
    }
}
