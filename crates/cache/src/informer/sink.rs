//! Sink of a reflector that writes to an informer. Objects are stored as they are listed. A
//! complete list removes the stored objects that the list did not contain, so a relist needs no
//! additional memory.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use opkit_client::{Kind, ObjectKey};
use parking_lot::RwLockWriteGuard;

use super::{InformerCore, State};
use crate::metrics::WatchStats;
use crate::reflector::Counters;
use crate::shard::Part;
use crate::sink::{HeadError, Raw, Sink};
use crate::store::{Fault, Listed, ObjectVersion, number};
use crate::tape::head::Head;
use crate::writer::Wire;
use crate::{Change, Delta, Stored};

#[derive(Debug)]
pub(crate) struct InformerSink {
    core: Arc<InformerCore>,
    part: Part,
    /// Number of the split of the kind over watches to which this sink belongs.
    generation: u64,
    /// Index, within the split, of the part that the reflector reads.
    place: usize,
    stats: Arc<WatchStats>,
    /// Number of the current or last list.
    list: u32,
    /// Whether a list is in progress.
    in_list: bool,
    /// Whether a list was completed.
    listed: bool,
    /// Sequence number of the overlay of this process's writes when the list started.
    start: u64,
    /// Highest resourceVersion that this process had written when the list started; `None` unless
    /// the list is a quorum read.
    written: Option<u64>,
    /// Listed objects that this process has also written or deleted. These objects are stored at
    /// the end of the list, when the version of the list is known.
    deferred: HashMap<ObjectKey, Stored>,
}

impl InformerSink {
    pub(super) fn new(
        core: Arc<InformerCore>,
        part: Part,
        (generation, place): (u64, usize),
        stats: Arc<WatchStats>,
    ) -> Self {
        Self {
            core,
            part,
            generation,
            place,
            stats,
            list: 0,
            in_list: false,
            listed: false,
            start: 0,
            written: None,
            deferred: HashMap::new(),
        }
    }

    fn store(&self, wire: &Wire<'_>) -> Option<Stored> {
        let mut writer = self.core.writer.lock();
        let stored = writer.store(wire, &self.core.options)?;
        let renewed = writer.renew();
        if renewed || writer.is_renewing() {
            let mut state = self.core.state.write();
            if renewed {
                state.store.begin_move();
            }
            let (origin, interner) = writer.parts();
            if !state.store.move_some(origin, interner) {
                writer.renewed();
            }
        }
        Some(stored)
    }

    /// Reports whether exactly this version of the object is stored, and if so marks the object as
    /// listed.
    fn mark_if_known(&self, key: &ObjectKey, head: &Head<'_>) -> bool {
        let Some(mut state) = self.state() else {
            return true;
        };
        let known = state.store.get(key).is_some_and(|stored| {
            let meta = stored.meta();
            meta.resource_version() == head.resource_version && meta.uid() == head.uid
        });
        if known {
            state.store.mark(key, self.list);
        }
        known
    }

    /// Returns the state of the informer, or `None` if other reflectors have replaced the reflector
    /// of this sink, because the informer reads another part of the objects now.
    fn state(&self) -> Option<RwLockWriteGuard<'_, State>> {
        let state = self.core.state.write();
        (state.generation == self.generation).then_some(state)
    }

    /// Reports whether an object is one that this reflector reports. A server without support for
    /// shards sends objects of all parts.
    fn covers(&self, head: &Head<'_>) -> bool {
        self.part
            .covers(head.namespace.as_deref(), head.uid.as_deref())
    }

    /// Reports whether an object belongs to the part of the kind that this reflector reads.
    fn keeps(&self, wire: &Wire<'_>) -> Result<bool, HeadError> {
        if !self.covers(&wire.head) || !self.part.by_owner {
            return Ok(self.covers(&wire.head));
        }
        let owners = wire.owners(self.core.message)?;
        Ok(self.part.has_owner(owners.iter()))
    }

    /// Removes an object whose owners are all in other parts, if it is stored. The object may have
    /// had other owners in an earlier version, even in the list in progress.
    fn drop_listed(&self, key: &ObjectKey, observed: ObjectVersion<'_>) {
        if let Some(mut state) = self.state()
            && state.overlay.admit_listed(key, observed)
        {
            state.remove(key, None);
        }
    }

    /// Reports whether the watch of another shard has reported a later object of the same name. The
    /// events of two watches have no common order, so the earlier object can arrive last.
    fn is_superseded(&self, state: &State, key: &ObjectKey, version: Option<u64>) -> bool {
        self.part.is_shared()
            && state.store.get(key).is_some_and(|stored| {
                Some(stored.version()) > version && !self.part.covers_stored(stored)
            })
    }

    fn evict(&self) {
        if let Some(budget) = self.core.options.memory_budget {
            let mut state = self.core.state.write();
            let evicted = state.store.evict(budget);
            state.evicted = state.evicted.saturating_add(evicted as u64);
        }
    }
}

impl Sink for InformerSink {
    fn kind(&self) -> &Kind {
        &self.core.codec.kind
    }

    fn begin_list(&mut self) -> bool {
        let Some(mut state) = self.state() else {
            return false;
        };
        state.lists = state.lists.wrapping_add(1).max(1);
        let (list, start) = (state.lists, state.overlay.begin_list(&self.part));
        if let Some(progress) = state.parts.get_mut(self.place) {
            progress.list = Some(list);
        }
        let needs_quorum = state.overlay.needs_quorum();
        let written = needs_quorum.then(|| state.overlay.highest());
        drop(state);
        self.list = list;
        self.in_list = true;
        self.start = start;
        self.written = written;
        self.deferred.clear();
        needs_quorum
    }

    fn listed(&mut self, object: Raw<'_>) -> Result<(), HeadError> {
        let wire = Wire::read(object, self.core.message)?;
        let head = &wire.head;
        if !self.covers(head) {
            return Ok(());
        }
        let key = key_of(head);
        // A streaming list may contain an object again, in a later version.
        self.deferred.remove(&key);
        if !self.keeps(&wire)? {
            self.drop_listed(&key, object_version(head));
            return Ok(());
        }
        if self.mark_if_known(&key, head) {
            return Ok(());
        }
        let Some(stored) = self.store(&wire) else {
            return Ok(());
        };
        let Some(mut state) = self.state() else {
            return Ok(());
        };
        if !state.overlay.admit_listed(&key, object_version(head)) {
            drop(state);
            self.deferred.insert(key, stored);
            return Ok(());
        }
        if self.is_superseded(&state, &key, object_version(head).version) {
            return Ok(());
        }
        state.upsert(stored, Change::Replaced, !self.listed);
        state.store.mark(&key, self.list);
        drop(state);
        self.evict();
        Ok(())
    }

    fn end_list(&mut self, resource_version: &str) {
        self.in_list = false;
        let deferred = std::mem::take(&mut self.deferred);
        let Some(mut state) = self.state() else {
            return;
        };
        let mut before = None;
        if let Some(progress) = state.parts.get_mut(self.place) {
            before = progress.seen.take();
            progress.list = None;
        }
        let version = number(Some(resource_version));
        state.advance(self.place, version);
        // A stored object may have been listed with owners in other parts.
        let selects = state.selects || self.part.by_owner;
        state.overlay.end_list(Listed {
            part: &self.part,
            selects,
            start: self.start,
            version,
            before: before.max(self.written),
        });
        state.forget_passed();
        if state.parts.iter().all(|progress| progress.seen.is_some()) {
            state.previous.clear();
        }
        for (key, stored) in deferred {
            let uid = stored.meta().uid();
            let observed = ObjectVersion {
                uid: uid.as_deref(),
                version: Some(stored.version()).filter(|version| *version > 0),
            };
            if !state.overlay.refuses(&key, observed)
                && !self.is_superseded(&state, &key, observed.version)
            {
                state.upsert(stored.clone(), Change::Replaced, !self.listed);
                state.store.mark(&key, self.list);
            }
        }
        let all = &mut *state;
        let overlay = &all.overlay;
        let removed = all.store.sweep(self.list, |stored| {
            let is_written = || {
                let uid = stored.meta().uid();
                overlay.is_written(&stored.key(), uid.as_deref())
            };
            self.part.covers_stored(stored) && (overlay.is_empty() || !is_written())
        });
        for stored in removed {
            all.notify(Delta::deleted(Some(stored), None, false));
        }
        if !self.listed {
            state.unlisted = state.unlisted.saturating_sub(1);
            if state.unlisted == 0 {
                self.core.all_listed(&state);
            }
        }
        drop(state);
        self.listed = true;
    }

    fn changed(&mut self, object: Raw<'_>) -> Result<Option<String>, HeadError> {
        let wire = Wire::read(object, self.core.message)?;
        let head = &wire.head;
        let keeps = self.keeps(&wire)?;
        let stored = match keeps {
            true => self.store(&wire),
            false => None,
        };
        let Some(mut state) = self.state() else {
            return Ok(None);
        };
        state.advance(self.place, number(head.resource_version.as_deref()));
        // All owners are in other parts. Earlier versions may have had other owners.
        let is_foreign = !keeps && self.covers(head);
        if (stored.is_some() || is_foreign)
            && (state.overlay.is_empty() || state.admit(&key_of(head), object_version(head), false))
            && (!self.part.is_shared()
                || !self.is_superseded(&state, &key_of(head), object_version(head).version))
        {
            match stored {
                Some(stored) => state.upsert(stored, Change::Updated, false),
                None => state.remove(&key_of(head), None),
            }
        }
        drop(state);
        self.evict();
        Ok(wire.head.resource_version.map(Cow::into_owned))
    }

    fn deleted(&mut self, object: Raw<'_>) -> Result<Option<String>, HeadError> {
        let wire = Wire::read(object, self.core.message)?;
        let head = &wire.head;
        let key = key_of(head);
        self.deferred.remove(&key);
        // The event contains the last state of the object. If its owners are all in other parts,
        // the stored state is delivered, which has the previous owners.
        let last = match self.keeps(&wire) {
            Ok(true) => self.store(&wire),
            Ok(false) | Err(_) => None,
        };
        let Some(mut state) = self.state() else {
            return Ok(None);
        };
        let observed = object_version(head);
        // During a list, other objects may not have reached this version yet.
        if !self.in_list {
            state.advance(self.place, observed.version);
        }
        let is_end = !state.selects || state.overlay.has(Fault::UnselectedIsGone);
        if self.covers(head)
            && state.admit(&key, observed, is_end)
            && !self.is_superseded(&state, &key, observed.version)
        {
            state.remove(&key, last);
            if self.in_list {
                state.overlay.deleted_in_list(&key, observed);
            }
        }
        Ok(wire.head.resource_version.map(Cow::into_owned))
    }

    fn bookmark(&mut self, resource_version: &str) {
        if let Some(mut state) = self.state() {
            state.advance(self.place, number(Some(resource_version)));
            state.forget_passed();
        }
    }

    fn set_last_error(&mut self, error: Option<String>) {
        if self.state().is_some() {
            *self.core.last_error.lock() = error;
        }
    }

    fn set_counters(&mut self, now: Duration, counters: &Counters) {
        self.stats.set(now, counters);
    }
}

fn object_version<'a>(head: &'a Head<'_>) -> ObjectVersion<'a> {
    ObjectVersion {
        uid: head.uid.as_deref(),
        version: number(head.resource_version.as_deref()),
    }
}

fn key_of(head: &Head<'_>) -> ObjectKey {
    ObjectKey {
        namespace: head.namespace.as_deref().map(str::to_owned),
        name: head.name.clone().into_owned(),
    }
}
