//! One kind, kept up to date and shared: its store, its listeners, and whether it is synced.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use opkit_client::{Kind, ObjectKey};
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;

use crate::listener::Mailbox;
use crate::object::Codec;
use crate::store::{Entry, Store, number};
use crate::{AnyObject, DecodeError, Delta, Listener};

/// A shared informer: reflectors write it, listers and listeners read it. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Informer {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    codec: Codec,
    state: RwLock<State>,
    synced: watch::Sender<bool>,
    last_error: Mutex<Option<String>>,
}

#[derive(Debug)]
struct State {
    store: Store,
    listeners: Vec<Weak<Mailbox>>,
    /// Reflectors (one per namespace) that have not completed their first list.
    unsynced: usize,
    /// How far the watch of each namespace, or of all, has come.
    seen: HashMap<Option<String>, u64>,
}

impl Informer {
    pub(crate) fn new(codec: Codec, reflectors: usize) -> Self {
        let state = State {
            store: Store::default(),
            listeners: Vec::new(),
            unsynced: reflectors,
            seen: HashMap::new(),
        };
        Informer {
            shared: Arc::new(Shared {
                codec,
                state: RwLock::new(state),
                synced: watch::Sender::new(reflectors == 0),
                last_error: Mutex::new(None),
            }),
        }
    }

    /// The kind.
    pub fn kind(&self) -> &Kind {
        &self.shared.codec.kind
    }

    /// Reads an object of the kind, such as the answer to a write.
    ///
    /// # Errors
    /// When it does not fit its Rust type.
    pub fn decode(&self, json: &[u8]) -> Result<AnyObject, serde_json::Error> {
        (self.shared.codec.decode)(json)
    }

    /// Listens from now on. What is stored already comes first, marked as initial.
    pub fn listen(&self) -> Listener {
        let mailbox = Arc::new(Mailbox::default());
        // Under the lock, so that nothing is missed and nothing told twice.
        let mut state = self.shared.state.write();
        mailbox.push(state.store.snapshot());
        if state.unsynced == 0 {
            mailbox.synced();
        }
        state.listeners.push(Arc::downgrade(&mailbox));
        Listener::new(mailbox)
    }

    /// The object, if it is stored.
    ///
    /// # Errors
    /// When the object is there but does not fit its Rust type.
    pub fn get(&self, key: &ObjectKey) -> Result<Option<AnyObject>, Arc<DecodeError>> {
        match self.shared.state.read().store.get(key) {
            None => Ok(None),
            Some(Entry::Object(object)) => Ok(Some(object.clone())),
            Some(Entry::Unreadable { error, .. }) => Err(error.clone()),
        }
    }

    /// The readable objects that `select` takes, of those that `owner` owns if one is given.
    pub fn select(
        &self,
        owner: Option<&str>,
        select: impl Fn(&AnyObject) -> bool,
    ) -> Vec<AnyObject> {
        let state = self.shared.state.read();
        match owner {
            Some(uid) => state
                .store
                .owned_by(uid)
                .filter(|o| select(o))
                .cloned()
                .collect(),
            None => state
                .store
                .objects()
                .filter(|o| select(o))
                .cloned()
                .collect(),
        }
    }

    /// How many objects are stored.
    pub fn len(&self) -> usize {
        self.shared.state.read().store.len()
    }

    /// Whether no object is stored.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the first list is complete.
    pub fn is_synced(&self) -> bool {
        *self.shared.synced.borrow()
    }

    /// Waits until the first list is complete.
    ///
    /// # Cancel safety
    /// May be dropped and called again at any time.
    pub async fn wait_for_sync(&self) {
        // The sender lives in `self`, so the channel cannot close.
        let _ = self
            .shared
            .synced
            .subscribe()
            .wait_for(|synced| *synced)
            .await;
    }

    /// What went wrong last, if the reflector is in trouble.
    pub fn last_error(&self) -> Option<String> {
        self.shared.last_error.lock().clone()
    }

    pub(crate) fn codec(&self) -> &Codec {
        &self.shared.codec
    }

    pub(crate) fn set_last_error(&self, error: Option<String>) {
        *self.shared.last_error.lock() = error;
    }

    /// Takes in the answer to a write of our own, so that reads see it before the watch tells it. An
    /// answer that the watch has passed already is ignored, so that nothing comes back from the dead.
    pub fn observe(&self, object: AnyObject) {
        let key = ObjectKey::of(object.object_meta());
        let version = number(object.object_meta().resource_version.as_deref());
        let mut state = self.shared.state.write();
        let seen = state
            .seen
            .get(&key.namespace)
            .or_else(|| state.seen.get(&None));
        if version
            .zip(seen.copied())
            .is_some_and(|(version, seen)| version > seen)
            && let Some(delta) = state.store.write(key, object)
        {
            state.tell(&[delta]);
        }
    }

    /// Takes in that we deleted an object, so that reads do not see it before the watch tells it.
    pub fn observe_deletion(&self, key: &ObjectKey, uid: &str) {
        let mut state = self.shared.state.write();
        if let Some(delta) = state.store.delete(key, uid) {
            state.tell(&[delta]);
        }
    }

    /// Takes in a complete list of one reflector, and the version it is of.
    pub(crate) fn replace(
        &self,
        namespace: Option<&str>,
        list: Vec<(ObjectKey, Entry)>,
        version: &str,
        first: bool,
    ) {
        let mut state = self.shared.state.write();
        let before = state.seen.remove(&namespace.map(str::to_owned));
        state.saw(namespace, Some(version));
        // Versions that went backwards are those of a cluster that was restored.
        let version = number(Some(version)).filter(|version| before.is_some_and(|b| b <= *version));
        let mut deltas = state.store.replace(namespace, list, version);
        for delta in &mut deltas {
            delta.initial = first;
        }
        state.tell(&deltas);
        if first {
            state.unsynced = state.unsynced.saturating_sub(1);
            if state.unsynced == 0 {
                state.mailboxes().for_each(|mailbox| mailbox.synced());
                self.shared.synced.send_replace(true);
            }
        }
    }

    /// Takes in what the watch of `namespace`, or of all, tells at `version`: of one object, or
    /// only the version.
    pub(crate) fn take(&self, namespace: Option<&str>, change: Change, version: Option<&str>) {
        let mut state = self.shared.state.write();
        state.saw(namespace, version);
        let delta = match change {
            Change::Upsert(key, entry) => {
                let uid = entry.version().uid;
                match state.store.catches_up(&key, uid.as_deref(), version, false) {
                    true => state.store.upsert(key, entry),
                    false => None,
                }
            }
            Change::Remove(key, uid) => {
                match state.store.catches_up(&key, uid.as_deref(), version, true) {
                    true => state.store.remove(&key),
                    false => None,
                }
            }
            Change::None => None,
        };
        if let Some(delta) = delta {
            state.tell(&[delta]);
        }
    }
}

/// What a watch tells of one object.
#[derive(Debug)]
pub(crate) enum Change {
    Upsert(ObjectKey, Entry),
    /// With the UID of what is gone.
    Remove(ObjectKey, Option<String>),
    None,
}

impl State {
    fn saw(&mut self, namespace: Option<&str>, version: Option<&str>) {
        if let Some(version) = number(version) {
            self.seen.insert(namespace.map(str::to_owned), version);
        }
    }

    fn mailboxes(&self) -> impl Iterator<Item = Arc<Mailbox>> {
        self.listeners.iter().filter_map(Weak::upgrade)
    }

    fn tell(&mut self, deltas: &[Delta]) {
        self.listeners
            .retain(|listener| listener.strong_count() > 0);
        for mailbox in self.mailboxes() {
            mailbox.push(deltas.iter().cloned());
        }
    }
}

#[cfg(test)]
mod tests;
