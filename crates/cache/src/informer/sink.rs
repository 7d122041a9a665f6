//! Where a reflector writes into an informer: objects are stored as they are listed, and a complete
//! list takes away what it did not tell. So a list, also a second one, needs no memory of its own.

use std::borrow::Cow;
use std::sync::Arc;

use opkit_client::{Kind, ObjectKey};

use super::Shared;
use crate::sink::{Raw, ReadError, Sink};
use crate::store::number;
use crate::tape::head::Head;
use crate::writer::Wire;
use crate::{Change, Delta, Stored};

#[derive(Debug)]
pub(crate) struct InformerSink {
    shared: Arc<Shared>,
    namespace: Option<String>,
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
    pub(super) fn new(shared: Arc<Shared>, namespace: Option<String>) -> Self {
        InformerSink {
            shared,
            namespace,
            list: 0,
            in_list: false,
            synced: false,
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
        let mut state = self.shared.state.write();
        let known = state.store.get(key).is_some_and(|stored| {
            let meta = stored.meta();
            meta.resource_version() == head.resource_version && meta.uid() == head.uid
        });
        if known {
            state.store.mark(key, self.list);
        }
        known
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
        let mut state = self.shared.state.write();
        state.lists = state.lists.wrapping_add(1).max(1);
        self.list = state.lists;
        self.in_list = true;
        state.ours.begin_list();
        self.held.clear();
    }

    fn listed(&mut self, object: Raw<'_>) -> Result<(), ReadError> {
        let wire = Wire::read(object, self.shared.message)?;
        let head = &wire.head;
        let key = key_of(head);
        // A streaming list may tell an object again, in a later version.
        self.held.retain(|held| held.key() != key);
        if self.is_known(&key, head) {
            return Ok(());
        }
        let Some(stored) = self.store(&wire) else {
            return Ok(());
        };
        let mut state = self.shared.state.write();
        let version = number(head.resource_version.as_deref());
        if !state.ours.is_listable(&key, head.uid.as_deref(), version) {
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
        let namespace = self.namespace.as_deref();
        self.in_list = false;
        let mut state = self.shared.state.write();
        let before = state.seen.remove(&self.namespace);
        let version = number(Some(resource_version));
        state.saw(namespace, version);
        // Versions that went backwards are those of a cluster that was restored.
        let comparable = version.filter(|version| before.is_some_and(|before| before <= *version));
        state.ours.end_list(namespace, comparable);
        for stored in self.held.drain(..) {
            let key = stored.key();
            let uid = stored.meta().uid();
            let version = Some(stored.version()).filter(|version| *version > 0);
            if state.ours.is_listable(&key, uid.as_deref(), version) {
                state.upsert(stored.clone(), Change::Replaced, !self.synced);
                state.store.mark(&key, self.list);
            }
        }
        let state = &mut *state;
        let ours = &state.ours;
        let gone = state.store.sweep(self.list, |stored| {
            (namespace.is_none() || stored.namespace().as_deref() == namespace)
                && (ours.is_empty() || !ours.is_written(&stored.key()))
        });
        for stored in gone {
            state.tell(Delta::new(Change::Deleted, Some(stored), None));
        }
        if !self.synced {
            self.synced = true;
            state.unsynced = state.unsynced.saturating_sub(1);
            if state.unsynced == 0 {
                state.mailboxes().for_each(|mailbox| mailbox.synced());
                self.shared.synced.send_replace(true);
            }
        }
    }

    fn changed(&mut self, object: Raw<'_>) -> Result<Option<String>, ReadError> {
        let wire = Wire::read(object, self.shared.message)?;
        let head = &wire.head;
        let stored = self.store(&wire);
        let mut state = self.shared.state.write();
        let version = number(head.resource_version.as_deref());
        state.saw(self.namespace.as_deref(), version);
        if let Some(stored) = stored
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
        let mut state = self.shared.state.write();
        let version = number(head.resource_version.as_deref());
        // Within a list other objects have not come as far.
        if !self.in_list {
            state.saw(self.namespace.as_deref(), version);
        }
        if state
            .ours
            .catches_up(&key, head.uid.as_deref(), version, true)
        {
            let gone = state.store.remove(&key);
            state.tell(Delta::new(Change::Deleted, gone, None));
        }
        Ok(wire.head.resource_version.map(Cow::into_owned))
    }

    fn bookmark(&mut self, resource_version: &str) {
        let mut state = self.shared.state.write();
        state.saw(self.namespace.as_deref(), number(Some(resource_version)));
    }

    fn set_last_error(&mut self, error: Option<String>) {
        *self.shared.last_error.lock() = error;
    }
}

fn key_of(head: &Head<'_>) -> ObjectKey {
    ObjectKey {
        namespace: head.namespace.as_deref().map(str::to_owned),
        name: head.name.clone().into_owned(),
    }
}
