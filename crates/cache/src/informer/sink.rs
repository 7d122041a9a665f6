//! Where a reflector writes into an informer: objects are stored as they are listed, and a complete
//! list takes away what it did not tell. So a list, also a second one, needs no memory of its own.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use opkit_client::{Kind, ObjectKey};
use parking_lot::RwLockWriteGuard;

use super::{Shared, State};
use crate::metrics::WatchStats;
use crate::reflector::Counters;
use crate::shard::Part;
use crate::sink::{Raw, ReadError, Sink};
use crate::store::number;
use crate::tape::head::Head;
use crate::writer::Wire;
use crate::{Change, Delta, Stored};

#[derive(Debug)]
pub(crate) struct InformerSink {
    shared: Arc<Shared>,
    part: Part,
    /// The split that it is of, and which of its parts.
    generation: u32,
    place: usize,
    stats: Arc<WatchStats>,
    /// The number of the list that is on its way.
    list: u32,
    /// Whether it is.
    in_list: bool,
    /// Whether a list was completed.
    synced: bool,
    /// What the list told and may not be stored before its age is known: it is of objects that we
    /// wrote or deleted ourselves.
    held: Vec<Stored>,
}

impl InformerSink {
    pub(super) fn new(
        shared: Arc<Shared>,
        part: Part,
        (generation, place): (u32, usize),
        stats: Arc<WatchStats>,
        synced: bool,
    ) -> Self {
        InformerSink {
            shared,
            part,
            generation,
            place,
            stats,
            list: 0,
            in_list: false,
            synced,
            held: Vec::new(),
        }
    }

    fn store(&self, wire: &Wire<'_>) -> Option<Stored> {
        let mut writer = self.shared.writer.lock();
        let stored = writer.store(wire, &self.shared.options)?;
        let renewed = writer.renew();
        if renewed || writer.is_renewing() {
            let mut state = self.shared.state.write();
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

    /// Whether the object is stored in this very version; notes then that the list told it.
    fn is_known(&self, key: &ObjectKey, head: &Head<'_>) -> bool {
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

    /// The state, unless other reflectors have taken over.
    fn state(&self) -> Option<RwLockWriteGuard<'_, State>> {
        let state = self.shared.state.write();
        (state.generation == self.generation).then_some(state)
    }

    /// Whether an object belongs to this part. A server that knows no shards sends them all.
    fn is_ours(&self, head: &Head<'_>) -> bool {
        self.part
            .covers(head.namespace.as_deref(), head.uid.as_deref())
    }

    /// Whether another shard has told a later life of this object: two watches have no order.
    fn is_outlived(&self, state: &State, key: &ObjectKey, head: &Head<'_>) -> bool {
        let version = number(head.resource_version.as_deref());
        self.part.shard.is_some()
            && state.store.get(key).is_some_and(|stored| {
                Some(stored.version()) > version && !self.part.covers_stored(stored)
            })
    }

    fn evict(&self) {
        if let Some(budget) = self.shared.options.memory_budget {
            let mut state = self.shared.state.write();
            let evicted = state.store.evict(budget);
            state.evicted = state.evicted.saturating_add(evicted as u64);
        }
    }
}

impl Sink for InformerSink {
    fn kind(&self) -> &Kind {
        &self.shared.codec.kind
    }

    fn begin_list(&mut self) {
        let Some(mut state) = self.state() else {
            return;
        };
        state.lists = state.lists.wrapping_add(1).max(1);
        let list = state.lists;
        state.ours.begin_list(&self.part);
        drop(state);
        self.list = list;
        self.in_list = true;
        self.held.clear();
    }

    fn listed(&mut self, object: Raw<'_>) -> Result<(), ReadError> {
        let wire = Wire::read(object, self.shared.message)?;
        let head = &wire.head;
        if !self.is_ours(head) {
            return Ok(());
        }
        let key = key_of(head);
        // A streaming list may tell an object again, in a later version.
        self.held.retain(|held| held.key() != key);
        if self.is_known(&key, head) {
            return Ok(());
        }
        let Some(stored) = self.store(&wire) else {
            return Ok(());
        };
        let Some(mut state) = self.state() else {
            return Ok(());
        };
        if self.is_outlived(&state, &key, head) {
            return Ok(());
        }
        let version = number(head.resource_version.as_deref());
        state.lives_on(&stored);
        if !state.ours.is_listable(&key, head.uid.as_deref(), version) {
            drop(state);
            self.held.push(stored);
            return Ok(());
        }
        state.upsert(stored, Change::Replaced, !self.synced);
        state.store.mark(&key, self.list);
        drop(state);
        self.evict();
        Ok(())
    }

    fn end_list(&mut self, resource_version: &str) {
        self.in_list = false;
        let held = std::mem::take(&mut self.held);
        let Some(mut state) = self.state() else {
            return;
        };
        let place = state.parts.get_mut(self.place);
        let before = place.and_then(|progress| progress.seen.take());
        let version = number(Some(resource_version));
        state.saw(self.place, version);
        // Versions that went backwards are those of a cluster that was restored.
        let comparable = version.filter(|version| before.is_some_and(|before| before <= *version));
        state.ours.end_list(&self.part, comparable);
        for stored in held {
            let key = stored.key();
            let uid = stored.meta().uid();
            let version = Some(stored.version()).filter(|version| *version > 0);
            if state.ours.is_listable(&key, uid.as_deref(), version) {
                state.upsert(stored.clone(), Change::Replaced, !self.synced);
                state.store.mark(&key, self.list);
            }
        }
        let all = &mut *state;
        let ours = &all.ours;
        let gone = all.store.sweep(self.list, |stored| {
            let is_written = || {
                let uid = stored.meta().uid();
                ours.is_written(&stored.key(), uid.as_deref())
            };
            self.part.covers_stored(stored) && (ours.is_empty() || !is_written())
        });
        for stored in gone {
            all.tell(Delta::new(Change::Deleted, Some(stored), None));
        }
        if !self.synced {
            state.unsynced = state.unsynced.saturating_sub(1);
            if state.unsynced == 0 {
                state.mailboxes().for_each(|mailbox| mailbox.synced());
                self.shared.synced.send_replace(true);
            }
        }
        drop(state);
        self.synced = true;
    }

    fn changed(&mut self, object: Raw<'_>) -> Result<Option<String>, ReadError> {
        let wire = Wire::read(object, self.shared.message)?;
        let head = &wire.head;
        let stored = match self.is_ours(head) {
            true => self.store(&wire),
            false => None,
        };
        let Some(mut state) = self.state() else {
            return Ok(None);
        };
        let version = number(head.resource_version.as_deref());
        state.saw(self.place, version);
        if let Some(stored) = &stored {
            state.lives_on(stored);
        }
        if let Some(stored) = stored
            && !self.is_outlived(&state, &key_of(head), head)
            && (state.ours.is_empty()
                || state
                    .ours
                    .catches_up(&key_of(head), head.uid.as_deref(), version, false))
        {
            state.upsert(stored, Change::Updated, false);
        }
        drop(state);
        self.evict();
        Ok(wire.head.resource_version.map(Cow::into_owned))
    }

    fn deleted(&mut self, object: Raw<'_>) -> Result<Option<String>, ReadError> {
        let wire = Wire::read(object, self.shared.message)?;
        let head = &wire.head;
        let key = key_of(head);
        self.held.retain(|held| held.key() != key);
        let Some(mut state) = self.state() else {
            return Ok(None);
        };
        let version = number(head.resource_version.as_deref());
        // Within a list other objects have not come as far.
        if !self.in_list {
            state.saw(self.place, version);
        }
        if self.is_ours(head)
            && !self.is_outlived(&state, &key, head)
            && state
                .ours
                .catches_up(&key, head.uid.as_deref(), version, true)
        {
            let gone = state.store.remove(&key);
            state.tell(Delta::new(Change::Deleted, gone, None));
        }
        if self.in_list
            && self.is_ours(head)
            && let Some(uid) = &head.uid
        {
            state.ours.gone_in_list(&key, uid);
        }
        Ok(wire.head.resource_version.map(Cow::into_owned))
    }

    fn bookmark(&mut self, resource_version: &str) {
        if let Some(mut state) = self.state() {
            state.saw(self.place, number(Some(resource_version)));
        }
    }

    fn set_last_error(&mut self, error: Option<String>) {
        if self.state().is_some() {
            *self.shared.last_error.lock() = error;
        }
    }

    fn set_counters(&mut self, now: Duration, counters: &Counters) {
        self.stats.set(now, counters);
    }
}

fn key_of(head: &Head<'_>) -> ObjectKey {
    ObjectKey {
        namespace: head.namespace.as_deref().map(str::to_owned),
        name: head.name.clone().into_owned(),
    }
}
