//! Overlay of *own* writes and deletions, that is, writes and deletions by this process, that the
//! watch has not reported yet. Older versions of the written or deleted objects are refused.
//!
//! A key has at most one entry. The *floor* of the entry is a version: objects of any UID at or
//! below the floor are from before the own write or deletion, and are refused. The floor of a write
//! is just below the version of the write. The floor of a deletion is the highest known version of
//! the object: from the cache, from own writes or from the caller. (The response to a deletion that
//! takes effect at once has no version.) Versions of the deleted UID above the floor are refused
//! too: they are from between the last known version and the deletion.
//!
//! An entry is removed when the watch of its object reports something later, or by a complete list.
//! The entry of a write is also removed when a bookmark shows that the watch has passed the write.
//! A list that starts while there are entries is a quorum read (see [`Sink::begin_list`]), so the
//! list is authoritative for every earlier entry. An entry created during a list is compared by
//! version. If the watch of an informer never catches up, at most [`ABSENT_MAX`] entries of objects
//! that are not stored are kept. The oldest entries are dropped, and reads show the objects of
//! dropped entries as the watch reports them.
//!
//! [`Sink::begin_list`]: crate::sink::Sink::begin_list

mod fault;

use std::collections::HashMap;

use opkit_client::ObjectKey;

pub(crate) use self::fault::Fault;
use crate::shard::Part;

/// Largest number of entries for objects that are not in the store. That many entries take about 2
/// MB.
pub(crate) const ABSENT_MAX: usize = 8_192;

#[derive(Debug, Default)]
pub(crate) struct Overlay {
    entries: HashMap<ObjectKey, Entry>,
    /// Number of entries created so far.
    sequence: u64,
    /// Highest version that this process has written.
    highest: u64,
    #[cfg(test)]
    pub(crate) fault: Fault,
}

#[derive(Debug)]
struct Entry {
    action: OwnAction,
    /// Highest version that is refused. A deletion also refuses later versions of the deleted UID.
    floor: u64,
    /// Sequence number of the entry: the value of `Overlay::sequence` when the entry was created.
    sequence: u64,
    /// Whether the list in progress contains the object.
    listed: bool,
    /// Whether this entry follows a deletion of an object with the same key. Watches of other
    /// shards may still report the state before the deletion.
    after_deletion: bool,
    /// Whether the watch of the object has reported the write or deletion, or something later.
    settled: bool,
}

/// Last write or deletion of an object by this process.
#[derive(Debug, PartialEq, Eq)]
enum OwnAction {
    /// The object with this UID was written.
    Written(Option<String>),
    /// The object with this UID was deleted.
    Deleted(String),
}

/// UID and version of an object, as reported by a watch, a list or the response to a write.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ObjectVersion<'a> {
    pub(crate) uid: Option<&'a str>,
    /// resourceVersion; `None` if the server's versions are not numbers.
    pub(crate) version: Option<u64>,
}

/// Complete list that is compared with the writes and deletions of this process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Listed<'a> {
    pub(crate) part: &'a Part,
    /// Whether the list has a selector.
    pub(crate) selects: bool,
    /// Sequence number of the overlay when the list started.
    pub(crate) start: u64,
    /// Version of the list; `None` if the version is not a number.
    pub(crate) version: Option<u64>,
    /// Lowest version that the list can have, unless the cluster was restored from a backup: the
    /// version that the watch had reached. For a quorum read, the list also cannot be older than
    /// the last write by this process.
    pub(crate) before: Option<u64>,
}

impl OwnAction {
    fn uid(&self) -> Option<&str> {
        match self {
            Self::Written(uid) => uid.as_deref(),
            Self::Deleted(uid) => Some(uid),
        }
    }
}

impl Entry {
    fn uid(&self) -> Option<&str> {
        self.action.uid()
    }

    /// Reports whether the entry belongs to the object (UID) of `action`.
    fn is_of(&self, action: &OwnAction) -> bool {
        self.uid() == action.uid()
    }

    fn is_of_deleted(&self, uid: Option<&str>) -> bool {
        matches!(&self.action, OwnAction::Deleted(deleted) if uid == Some(deleted))
    }

    /// Reports whether the entry can be removed. `passed` reports whether all watches of the
    /// object's namespace have reached a version.
    fn is_over(&self, passed: impl Fn(u64) -> bool) -> bool {
        self.settled && (!self.after_deletion || passed(self.floor))
    }
}

impl Overlay {
    /// Reports whether there are no entries.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Records that a list of `part` starts. Returns the current sequence number: entries with a
    /// higher number are created after this call.
    pub(crate) fn begin_list(&mut self, part: &Part) -> u64 {
        for (key, entry) in &mut self.entries {
            if part.covers(key.namespace.as_deref(), entry.uid()) {
                entry.listed = false;
            }
        }
        self.sequence
    }

    /// Reports whether a list that starts now has to be a quorum read.
    pub(crate) fn needs_quorum(&self) -> bool {
        !self.is_empty() && !self.has(Fault::StaleLists)
    }

    /// Returns the highest version that this process has written. No later quorum read returns a
    /// lower version.
    pub(crate) fn highest(&self) -> u64 {
        self.highest
    }

    /// Records a write by this process, which reads show from now on.
    pub(crate) fn write(&mut self, key: &ObjectKey, uid: Option<&str>, version: u64) {
        if self.has(Fault::WritesNotHeld) {
            return;
        }
        let action = OwnAction::Written(uid.map(str::to_owned));
        self.insert(key, action, version.saturating_sub(1), false);
        self.highest = self.highest.max(version);
    }

    /// Records a deletion by this process. `version` is the highest known version of the object.
    /// `listed` is whether a list in progress contains the object.
    pub(crate) fn delete(&mut self, key: &ObjectKey, uid: &str, version: u64, listed: bool) {
        let action = OwnAction::Deleted(uid.to_owned());
        self.insert(key, action, version, listed);
    }

    fn insert(&mut self, key: &ObjectKey, action: OwnAction, floor: u64, listed: bool) {
        self.sequence = self.sequence.saturating_add(1);
        let previous = self.entries.get(key).filter(|_| !self.has(Fault::NoFloor));
        let entry = Entry {
            after_deletion: matches!(action, OwnAction::Deleted(_))
                || previous.is_some_and(|previous| previous.after_deletion),
            floor: floor.max(previous.map_or(0, |previous| previous.floor)),
            sequence: self.sequence,
            listed: listed
                || previous.is_some_and(|previous| previous.listed && previous.is_of(&action)),
            settled: false,
            action,
        };
        self.entries.insert(key.clone(), entry);
    }

    /// Records that the list in progress has reported a deletion. Until the end of the list,
    /// responses to earlier writes of the object are refused.
    pub(crate) fn deleted_in_list(&mut self, key: &ObjectKey, observed: ObjectVersion<'_>) {
        let Some(version) = observed.version.filter(|_| !self.has(Fault::OldResponses)) else {
            return;
        };
        let action = OwnAction::Written(observed.uid.map(str::to_owned));
        self.insert(key, action, version, false);
        if let Some(entry) = self.entries.get_mut(key) {
            entry.settled = true;
            // Until the end of the list, its watch has not passed the version.
            entry.after_deletion = true;
        }
    }

    /// Returns the highest version of the object that is known from writes and deletions by this
    /// process.
    pub(crate) fn known(&self, key: &ObjectKey, uid: &str) -> Option<u64> {
        let entry = self.entries.get(key).filter(|it| it.uid() == Some(uid))?;
        match &entry.action {
            // The floor of a write is just below its version, until a later version is reported.
            OwnAction::Written(_) if !entry.settled => Some(entry.floor.saturating_add(1)),
            OwnAction::Written(_) | OwnAction::Deleted(_) => Some(entry.floor),
        }
    }

    /// Reports whether a deletion is older than the last write or deletion of the key by this
    /// process. If so, the entry of the key is kept until all watches have passed its floor.
    /// `known` is the highest known version of the deleted object.
    pub(crate) fn absorb_deletion(
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
            // The object existed again because the cluster was restored. A list in progress may be
            // from before this second deletion.
            self.sequence = self.sequence.saturating_add(1);
            entry.sequence = self.sequence;
        }
        true
    }

    /// Reports whether an observed version is older than the last write or deletion by this
    /// process. Such a version must not be stored.
    pub(crate) fn refuses(&self, key: &ObjectKey, observed: ObjectVersion<'_>) -> bool {
        let Some(entry) = self.entries.get(key) else {
            return false;
        };
        if entry.is_of_deleted(observed.uid) && !self.has(Fault::NoUid) {
            return true;
        }
        let older = observed
            .version
            .is_some_and(|version| version <= entry.floor);
        older && !(self.has(Fault::NoFloor) && matches!(entry.action, OwnAction::Deleted(_)))
    }

    /// Updates the entry of an object for which the watch has reported a version, and returns
    /// whether to store that version. `is_end` is whether the event proves that the object is
    /// deleted. `passed` reports whether all watches of the namespace have reached a version.
    pub(crate) fn admit(
        &mut self,
        key: &ObjectKey,
        observed: ObjectVersion<'_>,
        is_end: bool,
        passed: impl Fn(u64) -> bool,
    ) -> bool {
        let refused = self.refuses(key, observed);
        let Some(entry) = self.entries.get_mut(key) else {
            return true;
        };
        let is_ended = entry.is_of_deleted(observed.uid) && is_end;
        // Later versions do not raise the floor: all own actions are below it.
        if (is_ended || !refused) && !entry.settled {
            entry.settled = true;
            entry.floor = observed.version.unwrap_or(entry.floor);
        }
        if entry.is_over(passed) {
            self.entries.remove(key);
        }
        !refused
    }

    /// Records that the list in progress contains an object, and returns whether the object can be
    /// stored at once. If not, the object has to wait for the end of the list, when the version of
    /// the list is known.
    pub(crate) fn admit_listed(&mut self, key: &ObjectKey, observed: ObjectVersion<'_>) -> bool {
        if let Some(entry) = self.entries.get_mut(key)
            && entry.uid() == observed.uid
        {
            entry.listed = true;
        }
        !self.refuses(key, observed)
    }

    /// Removes or updates the entries that a complete list has settled.
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
            let is_restored = list.before.is_some_and(|before| version < before);
            if entry.sequence <= list.start {
                if never_wins && entry.listed {
                    return true;
                }
                // A quorum read below the version of an own action shows a cluster that was
                // restored.
                entry.settled = true;
                return !is_restored && entry.floor < version;
            }
            match &entry.action {
                OwnAction::Written(_) => entry.settled |= entry.floor < version,
                // Deleted after the list was read on the server. A list with a selector may not
                // contain the object although it exists.
                OwnAction::Deleted(_) if entry.listed || list.selects => match is_restored {
                    true => entry.floor = version,
                    false if entry.listed => entry.floor = entry.floor.max(version),
                    false => {}
                },
                OwnAction::Deleted(_) => {
                    entry.settled |= entry.floor <= version;
                    return !is_restored;
                }
            }
            true
        });
    }

    /// Records that the watch of `part` has reported everything up to a version. The watch will not
    /// report earlier writes by this process any more, for instance writes of objects that do not
    /// match the selector of the watch.
    pub(crate) fn reported(&mut self, part: &Part, version: Option<u64>) {
        for (key, entry) in &mut self.entries {
            let is_write = matches!(entry.action, OwnAction::Written(_));
            if is_write
                && Some(entry.floor) < version
                && part.covers(key.namespace.as_deref(), entry.uid())
            {
                entry.settled = true;
            }
        }
    }

    /// Removes the entries whose floor all watches have passed. `passed` reports whether the
    /// watches of a namespace have reached a version.
    pub(crate) fn forget_passed(&mut self, passed: impl Fn(Option<&str>, u64) -> bool) {
        self.entries.retain(|key, entry| {
            !entry.is_over(|version| passed(key.namespace.as_deref(), version))
        });
    }

    /// Removes the entries of objects that belong to none of `parts`.
    pub(crate) fn keep(&mut self, parts: &[Part]) {
        if self.has(Fault::SplitForgets) {
            self.entries.clear();
        }
        self.entries.retain(|key, entry| {
            let namespace = key.namespace.as_deref();
            parts.iter().any(|part| part.covers(namespace, entry.uid()))
        });
    }

    /// Drops the oldest entries of objects that are not stored if there are too many. `is_stored`
    /// reports whether the object of a key is stored; `stored` is the number of stored objects.
    pub(crate) fn limit(&mut self, stored: usize, is_stored: impl Fn(&ObjectKey) -> bool) {
        if self.entries.len() <= stored.saturating_add(ABSENT_MAX) {
            return;
        }
        let absent = self.entries.iter().filter(|(key, _)| !is_stored(key));
        let mut sequence: Vec<u64> = absent.map(|(_, entry)| entry.sequence).collect();
        let middle = sequence.len() / 2;
        if middle >= sequence.len() {
            return;
        }
        // Half of them at once, so that this happens rarely.
        let (_, middle, _) = sequence.select_nth_unstable(middle);
        let middle = *middle;
        self.entries
            .retain(|key, entry| entry.sequence >= middle || is_stored(key));
    }

    /// Reports whether the list just completed does not contain the last write of the object with
    /// this UID by this process.
    pub(crate) fn is_written(&self, key: &ObjectKey, uid: Option<&str>) -> bool {
        let entry = self.entries.get(key).filter(|entry| !entry.settled);
        entry.is_some_and(
            |entry| matches!(&entry.action, OwnAction::Written(written) if written.as_deref() == uid),
        ) && !self.has(Fault::ListsSweepWrites)
    }

    /// Reports whether the simulation has injected `fault`.
    #[cfg(test)]
    pub(crate) fn has(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    /// Reports whether the simulation has injected a fault, which is never the case outside of
    /// tests.
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
