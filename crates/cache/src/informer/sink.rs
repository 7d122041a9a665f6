//! Where a reflector writes into an informer: objects are stored as they are listed, and a complete
//! list takes away what it did not tell. So a list, also a second one, needs no memory of its own.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use opkit_client::{Kind, ObjectKey};
use parking_lot::RwLockWriteGuard;

use super::{Shared, State};
use crate::metrics::WatchStats;
use crate::reflector::Counters;
use crate::shard::Part;
use crate::sink::{Raw, ReadError, Sink};
use crate::store::{Fault, Listed, News, number};
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
    /// The mark of own writes and deletions when it began.
    began: u64,
    /// The highest version of an own write when it began, if it is a quorum read.
    written: Option<u64>,
    /// Objects of the list that may not be stored before its age is known: we wrote or deleted them
    /// ourselves.
    held: HashMap<ObjectKey, Stored>,
}

impl InformerSink {
    pub(super) fn new(
        shared: Arc<Shared>,
        part: Part,
        (generation, place): (u32, usize),
        stats: Arc<WatchStats>,
        synced: bool,
    ) -> Self {
        Self {
            shared,
            part,
            generation,
            place,
            stats,
            list: 0,
            in_list: false,
            synced,
            began: 0,
            written: None,
            held: HashMap::new(),
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

    /// Whether another shard has reported a later life of this object: two watches have no order.
    fn is_outlived(&self, state: &State, key: &ObjectKey, version: Option<u64>) -> bool {
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

    fn begin_list(&mut self) -> bool {
        let Some(mut state) = self.state() else {
            return false;
        };
        state.lists = state.lists.wrapping_add(1).max(1);
        let (list, began) = (state.lists, state.ours.begin_list(&self.part));
        if let Some(progress) = state.parts.get_mut(self.place) {
            progress.list = Some(list);
        }
        let needs_quorum = state.ours.needs_quorum();
        let written = needs_quorum.then(|| state.ours.highest());
        drop(state);
        self.list = list;
        self.in_list = true;
        self.began = began;
        self.written = written;
        self.held.clear();
        needs_quorum
    }

    fn listed(&mut self, object: Raw<'_>) -> Result<(), ReadError> {
        let wire = Wire::read(object, self.shared.message)?;
        let head = &wire.head;
        if !self.is_ours(head) {
            return Ok(());
        }
        let key = key_of(head);
        // A streaming list may tell an object again, in a later version.
        self.held.remove(&key);
        if self.is_known(&key, head) {
            return Ok(());
        }
        let Some(stored) = self.store(&wire) else {
            return Ok(());
        };
        let Some(mut state) = self.state() else {
            return Ok(());
        };
        if !state.ours.is_listable(&key, news_of(head)) {
            drop(state);
            self.held.insert(key, stored);
            return Ok(());
        }
        if self.is_outlived(&state, &key, news_of(head).version) {
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
        let mut before = None;
        if let Some(progress) = state.parts.get_mut(self.place) {
            before = progress.seen.take();
            progress.list = None;
        }
        let version = number(Some(resource_version));
        state.saw(self.place, version);
        let selects = state.selects;
        state.ours.end_list(Listed {
            part: &self.part,
            selects,
            began: self.began,
            version,
            before: before.max(self.written),
        });
        state.forget_passed();
        if state.parts.iter().all(|progress| progress.seen.is_some()) {
            state.former.clear();
        }
        for (key, stored) in held {
            let uid = stored.meta().uid();
            let news = News {
                uid: uid.as_deref(),
                version: Some(stored.version()).filter(|version| *version > 0),
            };
            if !state.ours.refuses(&key, news) && !self.is_outlived(&state, &key, news.version) {
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
            all.tell(Delta::deleted(Some(stored), None, false));
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
        state.saw(self.place, number(head.resource_version.as_deref()));
        if let Some(stored) = stored
            && (state.ours.is_empty() || state.accepts(&key_of(head), news_of(head), false))
            && (self.part.shard.is_none()
                || !self.is_outlived(&state, &key_of(head), news_of(head).version))
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
        self.held.remove(&key);
        // The event shows the object as it was at the end.
        let last = match self.is_ours(head) {
            true => self.store(&wire),
            false => None,
        };
        let Some(mut state) = self.state() else {
            return Ok(None);
        };
        let news = news_of(head);
        // Within a list other objects have not come as far.
        if !self.in_list {
            state.saw(self.place, news.version);
        }
        let is_end = !state.selects || state.ours.has(Fault::UnselectedIsGone);
        if self.is_ours(head)
            && state.accepts(&key, news, is_end)
            && !self.is_outlived(&state, &key, news.version)
        {
            state.remove(&key, last);
            if self.in_list {
                state.ours.gone_in_list(&key, news);
            }
        }
        Ok(wire.head.resource_version.map(Cow::into_owned))
    }

    fn bookmark(&mut self, resource_version: &str) {
        if let Some(mut state) = self.state() {
            state.saw(self.place, number(Some(resource_version)));
            state.forget_passed();
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

fn news_of<'a>(head: &'a Head<'_>) -> News<'a> {
    News {
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
