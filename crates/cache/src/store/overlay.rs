//! Own writes and deletions that the watch has not reported yet. Older news are refused.
//!
//! A key has one entry at most, whose *floor* is a version: news of any UID at or below it are from
//! before our write or deletion, and are refused. The floor of a write is just below its version.
//! That of a deletion is the highest version known of the object, from the cache, from own writes
//! or from the caller, since the response to a deletion that takes effect at once has no version.
//! News of the deleted UID above the floor are refused too: from between what was known and the
//! deletion.
//!
//! An entry ends when the watch of its object reports something later, or with a complete list;
//! that of a write also when the watch is known to have passed it, by a bookmark. A list that
//! begins while there are entries is a quorum read (see [`Sink::begin_list`]), so it is the truth
//! about every entry from before. An entry made while a list is in progress is compared by version.
//! An informer whose watch never catches up keeps no more than [`ABSENT_MAX`] entries of objects
//! that it does not store: the oldest are dropped, and reads show those objects as the watch
//! reports them.
//!
//! [`Sink::begin_list`]: crate::sink::Sink::begin_list

mod fault;

use std::collections::HashMap;

use opkit_client::ObjectKey;

pub(crate) use self::fault::Fault;
use crate::shard::Part;

/// Largest number of entries of objects that are not in the store, about 2 MB.
pub(crate) const ABSENT_MAX: usize = 8_192;

#[derive(Debug, Default)]
pub(crate) struct Overlay {
    entries: HashMap<ObjectKey, Entry>,
    /// Number of entries made so far.
    made: u64,
    /// The highest version of an own write.
    highest: u64,
    #[cfg(test)]
    pub(crate) fault: Fault,
}

#[derive(Debug)]
struct Entry {
    life: Life,
    /// News at or below this version are refused.
    floor: u64,
    /// When the entry was made, counted in entries.
    made: u64,
    /// Whether the list in progress contains the object.
    listed: bool,
    /// Whether a deletion led to this entry. Watches of other shards may still report what was
    /// before.
    after_deletion: bool,
    /// Whether the watch of the object has caught up.
    settled: bool,
}

/// What we did last.
#[derive(Debug, PartialEq, Eq)]
enum Life {
    /// Wrote the object of this UID.
    Written(Option<String>),
    /// Deleted the object of this UID.
    Deleted(String),
}

/// News of the object of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct News<'a> {
    pub(crate) uid: Option<&'a str>,
    /// None if the versions of the server are not numbers.
    pub(crate) version: Option<u64>,
}

/// A list that is complete.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listed<'a> {
    pub(crate) part: &'a Part,
    /// Whether the list has a selector.
    pub(crate) selects: bool,
    /// The mark when the list began.
    pub(crate) began: u64,
    /// The version of the list; none if it cannot be compared.
    pub(crate) version: Option<u64>,
    /// The highest version that the list cannot be below: the one that the watch had come to and,
    /// of a quorum read, that of our last write before it.
    pub(crate) before: Option<u64>,
}

impl Life {
    fn uid(&self) -> Option<&str> {
        match self {
            Self::Written(uid) => uid.as_deref(),
            Self::Deleted(uid) => Some(uid),
        }
    }
}

impl Entry {
    fn uid(&self) -> Option<&str> {
        self.life.uid()
    }

    /// Whether it is of the same object.
    fn is_of(&self, life: &Life) -> bool {
        self.uid() == life.uid()
    }

    fn is_of_deleted(&self, uid: Option<&str>) -> bool {
        matches!(&self.life, Life::Deleted(deleted) if uid == Some(deleted))
    }

    /// Whether nothing is waited for any more, if all watches of the namespace have passed the
    /// floor.
    fn is_over(&self, passed: impl Fn(u64) -> bool) -> bool {
        self.settled && (!self.after_deletion || passed(self.floor))
    }
}

impl Overlay {
    /// Whether nothing is waited for.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Notes that a list of `part` begins. Returns a mark: entries with a higher number were made
    /// after this call.
    pub(crate) fn begin_list(&mut self, part: &Part) -> u64 {
        for (key, entry) in &mut self.entries {
            if part.covers(key.namespace.as_deref(), entry.uid()) {
                entry.listed = false;
            }
        }
        self.made
    }

    /// Whether a list that begins now has to be a quorum read.
    pub(crate) fn needs_quorum(&self) -> bool {
        !self.is_empty() && !self.has(Fault::StaleLists)
    }

    /// Returns the highest version of an own write, which no quorum read from now on is below.
    pub(crate) fn highest(&self) -> u64 {
        self.highest
    }

    /// Notes a write, which reads see from now on.
    pub(crate) fn write(&mut self, key: &ObjectKey, uid: Option<&str>, version: u64) {
        if self.has(Fault::WritesNotHeld) {
            return;
        }
        let life = Life::Written(uid.map(str::to_owned));
        self.insert(key, life, version.saturating_sub(1), false);
        self.highest = self.highest.max(version);
    }

    /// Notes a deletion. `version` is the highest that is known of the object; `listed` is whether
    /// the list in progress, if there is one, contains it.
    pub(crate) fn delete(&mut self, key: &ObjectKey, uid: &str, version: u64, listed: bool) {
        let life = Life::Deleted(uid.to_owned());
        self.insert(key, life, version, listed);
    }

    fn insert(&mut self, key: &ObjectKey, life: Life, floor: u64, listed: bool) {
        self.made = self.made.saturating_add(1);
        let former = self.entries.get(key).filter(|_| !self.has(Fault::NoFloor));
        let entry = Entry {
            after_deletion: matches!(life, Life::Deleted(_))
                || former.is_some_and(|former| former.after_deletion),
            floor: floor.max(former.map_or(0, |former| former.floor)),
            made: self.made,
            listed: listed || former.is_some_and(|former| former.listed && former.is_of(&life)),
            settled: false,
            life,
        };
        self.entries.insert(key.clone(), entry);
    }

    /// Notes that the list in progress has reported a deletion. Until its end, responses to writes
    /// from before are old.
    pub(crate) fn gone_in_list(&mut self, key: &ObjectKey, news: News<'_>) {
        let Some(version) = news.version.filter(|_| !self.has(Fault::OldResponses)) else {
            return;
        };
        let life = Life::Written(news.uid.map(str::to_owned));
        self.insert(key, life, version, false);
        if let Some(entry) = self.entries.get_mut(key) {
            entry.settled = true;
            // Until the end of the list, its watch has not passed the version.
            entry.after_deletion = true;
        }
    }

    /// Returns the highest version known from own writes and deletions of the object.
    pub(crate) fn known(&self, key: &ObjectKey, uid: &str) -> Option<u64> {
        let entry = self.entries.get(key).filter(|it| it.uid() == Some(uid))?;
        match &entry.life {
            // The floor of a write is just below it, until something later is reported.
            Life::Written(_) if !entry.settled => Some(entry.floor.saturating_add(1)),
            Life::Written(_) | Life::Deleted(_) => Some(entry.floor),
        }
    }

    /// Whether a deletion of an object that was known at a version, if at any, is of before what we
    /// did last to the key: then all news of the object are below the floor, which is kept until
    /// all watches have passed it.
    pub(crate) fn covers_deletion(
        &mut self,
        key: &ObjectKey,
        uid: &str,
        known: Option<u64>,
    ) -> bool {
        let Some(entry) = self.entries.get_mut(key) else {
            return false;
        };
        let is_write_of = entry.uid() == Some(uid) && !entry.is_of_deleted(Some(uid));
        if is_write_of || known.is_some_and(|known| known > entry.floor) {
            return false;
        }
        entry.after_deletion = true;
        if entry.is_of_deleted(Some(uid)) {
            // A list in progress may be of before this deletion: a restore had undone the one
            // before.
            self.made = self.made.saturating_add(1);
            entry.made = self.made;
        }
        true
    }

    /// Whether news are older than what we did: they are not to be stored.
    pub(crate) fn refuses(&self, key: &ObjectKey, news: News<'_>) -> bool {
        let Some(entry) = self.entries.get(key) else {
            return false;
        };
        if entry.is_of_deleted(news.uid) && !self.has(Fault::NoUid) {
            return true;
        }
        let older = news.version.is_some_and(|version| version <= entry.floor);
        older && !(self.has(Fault::NoFloor) && matches!(entry.life, Life::Deleted(_)))
    }

    /// Takes in news of the watch, and returns whether they are to be stored. `is_end` is whether
    /// they prove that the object is gone. `passed` is whether all watches of the namespace have
    /// come to a version.
    pub(crate) fn accepts(
        &mut self,
        key: &ObjectKey,
        news: News<'_>,
        is_end: bool,
        passed: impl Fn(u64) -> bool,
    ) -> bool {
        let refused = self.refuses(key, news);
        let Some(entry) = self.entries.get_mut(key) else {
            return true;
        };
        let is_ended = entry.is_of_deleted(news.uid) && is_end;
        // Later news do not raise the floor: all that we did is below it.
        if (is_ended || !refused) && !entry.settled {
            entry.settled = true;
            entry.floor = news.version.unwrap_or(entry.floor);
        }
        if entry.is_over(passed) {
            self.entries.remove(key);
        }
        !refused
    }

    /// Takes in an object of a list in progress, and returns whether it may be stored at once. If
    /// not, it has to wait for the end of the list, which shows how old the list is.
    pub(crate) fn is_listable(&mut self, key: &ObjectKey, news: News<'_>) -> bool {
        if let Some(entry) = self.entries.get_mut(key)
            && entry.uid() == news.uid
        {
            entry.listed = true;
        }
        !self.refuses(key, news)
    }

    /// Takes in that a list is complete.
    pub(crate) fn end_list(&mut self, list: Listed<'_>) {
        if list.version < list.before {
            self.highest = list.version.unwrap_or_default();
        }
        let (stale_wins, never_wins) = (self.has(Fault::AnyListWins), self.has(Fault::NoListWins));
        self.entries.retain(|key, entry| {
            let namespace = key.namespace.as_deref();
            if !list.part.covers(namespace, entry.uid()) {
                return true;
            }
            let Some(version) = list.version.filter(|_| !stale_wins) else {
                return false;
            };
            let went_back = list.before.is_some_and(|before| version < before);
            if entry.made <= list.began {
                if never_wins && entry.listed {
                    return true;
                }
                // A quorum read that is older than what we did is of a cluster that was restored.
                entry.settled = true;
                return !went_back && entry.floor < version;
            }
            match &entry.life {
                Life::Written(_) => entry.settled |= entry.floor < version,
                // Deleted after the list was taken. A list with a selector may lack the object
                // although it is there.
                Life::Deleted(_) if entry.listed || list.selects => match went_back {
                    true => entry.floor = version,
                    false if entry.listed => entry.floor = entry.floor.max(version),
                    false => {}
                },
                Life::Deleted(_) => {
                    entry.settled |= entry.floor <= version;
                    return !went_back;
                }
            }
            true
        });
    }

    /// Takes in that the watch of `part` has reported everything up to a version: of a write up to
    /// there it reports no more, such as of an object that its selector does not match.
    pub(crate) fn reported(&mut self, part: &Part, version: Option<u64>) {
        for (key, entry) in &mut self.entries {
            let is_write = matches!(entry.life, Life::Written(_));
            if is_write
                && Some(entry.floor) < version
                && part.covers(key.namespace.as_deref(), entry.uid())
            {
                entry.settled = true;
            }
        }
    }

    /// Forgets what all watches have passed. `passed` is whether those of a namespace have come to
    /// a version.
    pub(crate) fn forget_passed(&mut self, passed: impl Fn(Option<&str>, u64) -> bool) {
        self.entries.retain(|key, entry| {
            !entry.is_over(|version| passed(key.namespace.as_deref(), version))
        });
    }

    /// Forgets what is in none of `parts`.
    pub(crate) fn keep(&mut self, parts: &[Part]) {
        if self.has(Fault::SplitForgets) {
            self.entries.clear();
        }
        self.entries.retain(|key, entry| {
            let namespace = key.namespace.as_deref();
            parts.iter().any(|part| part.covers(namespace, entry.uid()))
        });
    }

    /// Drops the oldest entries of absent objects if there are too many. `is_stored` is whether the
    /// object of a key is stored, `stored` how many are.
    pub(crate) fn limit(&mut self, stored: usize, is_stored: impl Fn(&ObjectKey) -> bool) {
        if self.entries.len() <= stored.saturating_add(ABSENT_MAX) {
            return;
        }
        let absent = self.entries.iter().filter(|(key, _)| !is_stored(key));
        let mut made: Vec<u64> = absent.map(|(_, entry)| entry.made).collect();
        let middle = made.len() / 2;
        if middle >= made.len() {
            return;
        }
        // Half of them at once, so that this is rare.
        let (_, middle, _) = made.select_nth_unstable(middle);
        let middle = *middle;
        self.entries
            .retain(|key, entry| entry.made >= middle || is_stored(key));
    }

    /// Whether the object of this UID is as a write of ours left it, and the list just completed
    /// does not know that write.
    pub(crate) fn is_written(&self, key: &ObjectKey, uid: Option<&str>) -> bool {
        let entry = self.entries.get(key).filter(|entry| !entry.settled);
        entry.is_some_and(
            |entry| matches!(&entry.life, Life::Written(written) if written.as_deref() == uid),
        ) && !self.has(Fault::ListsSweepWrites)
    }

    /// Whether the simulation has built in this fault.
    #[cfg(test)]
    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    /// Whether the simulation has built in this fault.
    #[cfg(not(test))]
    #[allow(clippy::unused_self, reason = "only the simulation has faults")]
    pub(crate) const fn has(&self, _: Fault) -> bool {
        false
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}
