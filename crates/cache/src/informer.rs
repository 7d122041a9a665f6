//! One kind, kept up to date and shared: its store, its listeners, and whether it is synced.

mod sink;

use std::any::TypeId;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use opkit_apimachinery::protobuf::MessageType;
use opkit_client::{Kind, Object, ObjectKey, RestClient, is_removed};
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

pub(crate) use self::sink::InformerSink;
use crate::listener::Mailbox;
use crate::metrics::WatchStats;
use crate::object::Codec;
use crate::options::{InformerOptions, Selected};
use crate::shard::Part;
use crate::sink::{Raw, ReadError};
use crate::store::{Fault, News, Overlay, Store, number};
use crate::writer::{Wire, Writer};
use crate::{AnyObject, Change, Delta, FetchError, Index, Listener, Lister, ObjectError, Stored};

/// How many earlier splits are remembered: more follow each other only if no list completes between
/// them.
const FORMER_MAX: usize = 8;

/// A shared informer: reflectors write it, listers and listeners read it. Cloning is cheap; the
/// watch ends with the last clone, lister and listener.
#[derive(Debug, Clone)]
pub struct Informer {
    user: Arc<User>,
}

/// What all users of an informer hold.
#[derive(Debug)]
pub(crate) struct User {
    shared: Arc<Shared>,
    _stop: DropGuard,
}

#[derive(Debug)]
struct Shared {
    codec: Arc<Codec>,
    /// What objects are in protobuf.
    message: Option<MessageType>,
    options: InformerOptions,
    client: Option<RestClient>,
    /// Taken before `state`, never while holding it.
    writer: Mutex<Writer>,
    state: RwLock<State>,
    synced: watch::Sender<bool>,
    last_error: Mutex<Option<String>>,
    stop: CancellationToken,
    /// Stops the reflectors of the present split.
    running: Mutex<CancellationToken>,
}

#[derive(Debug)]
struct State {
    store: Store,
    ours: Overlay,
    /// Whether the watch reports objects as deleted that only match its selector no longer.
    selects: bool,
    listeners: Vec<Weak<Mailbox>>,
    /// Reflectors (one per namespace) that have not completed their first list.
    unsynced: usize,
    /// What the reflectors read, and how far each has come.
    parts: Vec<Progress>,
    /// The parts of earlier splits, the last one first.
    former: VecDeque<Vec<Progress>>,
    /// How often it was split anew. The reflectors of before have no say any more.
    generation: u32,
    /// How many lists there were.
    lists: u32,
    evicted: u64,
}

#[derive(Debug)]
struct Progress {
    part: Part,
    seen: Option<u64>,
    /// The number of the list in progress.
    list: Option<u32>,
    stats: Arc<WatchStats>,
}

/// What an informer holds and has done; see [`Informer::stats`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Objects.
    pub objects: usize,
    /// Memory of the stored objects and their strings, in bytes, about; without that of Rust
    /// objects where these are what is stored.
    pub bytes: usize,
    /// Memory of the Rust objects that are kept made, in bytes, about.
    pub pool_bytes: usize,
    /// How often a Rust object was made of a stored one.
    pub decodes: u64,
    /// How often that failed.
    pub decode_errors: u64,
    /// How many lists were begun, the first of each reflector included.
    pub lists: u64,
    /// How often a body gave way to the memory budget.
    pub evictions: u64,
    /// Events of watches since the kind was split last, bookmarks included.
    pub events: u64,
    /// Complete lists after the first of each watch since the kind was split last.
    pub relists: u64,
    /// Lists and watches that failed since the kind was split last.
    pub failures: u64,
    /// How long the youngest watch that is open has lasted.
    pub watch_age: Option<Duration>,
    /// How long the quietest watch has told nothing, bookmarks included.
    pub lag: Option<Duration>,
}

impl Informer {
    /// An informer that `reflectors` will write, until `stop`, which it cancels itself when its
    /// last user is gone.
    pub(crate) fn new(
        codec: Codec,
        options: InformerOptions,
        client: Option<RestClient>,
        reflectors: usize,
        stop: CancellationToken,
    ) -> Self {
        let codec = Arc::new(codec);
        let mut store = match options.memory_budget {
            Some(_) => Store::default().evictable(),
            None => Store::default(),
        };
        for index in &options.indexes {
            store.add_index(index.clone());
        }
        let state = State {
            store,
            ours: Overlay::default(),
            selects: options.labels.is_some() || options.fields.is_some(),
            listeners: Vec::new(),
            unsynced: reflectors,
            parts: Vec::new(),
            former: VecDeque::new(),
            generation: 0,
            lists: 0,
            evicted: 0,
        };
        let shared = Shared {
            writer: Mutex::new(Writer::new(codec.clone(), &options)),
            message: codec.message(options.metadata_only),
            codec,
            options,
            client,
            state: RwLock::new(state),
            synced: watch::Sender::new(reflectors == 0),
            last_error: Mutex::new(None),
            running: Mutex::new(stop.child_token()),
            stop: stop.clone(),
        };
        let user = User {
            shared: Arc::new(shared),
            _stop: stop.drop_guard(),
        };
        Self {
            user: Arc::new(user),
        }
    }

    fn shared(&self) -> &Shared {
        &self.user.shared
    }

    /// For a factory, which shares informers and does not keep them.
    pub(crate) fn downgrade(&self) -> Weak<User> {
        Arc::downgrade(&self.user)
    }

    pub(crate) fn upgrade(user: &Weak<User>) -> Option<Self> {
        Some(Self {
            user: user.upgrade()?,
        })
    }

    /// What a reflector of `part` writes into.
    #[cfg(test)]
    pub(crate) fn sink(&self, part: impl Into<Part>) -> InformerSink {
        let mut state = self.shared().state.write();
        state.sink(&self.user.shared, part.into(), false)
    }

    /// Lets other reflectors read other parts, and answers what they write into and what stops
    /// them. The reflectors of before are stopped and have no say from now on. What is in none of
    /// the parts is gone; all else stays, and the first lists, which are quorum reads, tell what
    /// changed meanwhile: nothing is lost and nothing told twice.
    pub(crate) fn split(&self, parts: Vec<Part>) -> (Vec<InformerSink>, CancellationToken) {
        let running = self.shared().stop.child_token();
        std::mem::replace(&mut *self.shared().running.lock(), running.clone()).cancel();
        let mut state = self.shared().state.write();
        let state = &mut *state;
        let is_synced = self.is_synced();
        state.generation = state.generation.wrapping_add(1);
        let before = std::mem::take(&mut state.parts);
        if !is_synced {
            state.unsynced = parts.len();
        }
        state.ours.keep(&parts);
        let covered = |stored: &Stored| parts.iter().any(|part| part.covers_stored(stored));
        let gone = state.store.take(|stored| !covered(stored));
        for stored in gone {
            state.tell(Delta::deleted(Some(stored), None, false));
        }
        let sinks = parts
            .into_iter()
            .map(|part| state.sink(&self.user.shared, part, is_synced))
            .collect();
        // Until a new watch has listed, responses to our own writes are news as they were before.
        state.former.push_front(before);
        state.former.truncate(FORMER_MAX);
        (sinks, running)
    }

    /// A lister of it, if `K` is the type that it was started for.
    pub fn lister<K: Object>(&self) -> Option<Lister<K>> {
        let is_that = self.shared().codec.type_id == TypeId::of::<K>();
        is_that.then(|| Lister::new(self.clone()))
    }

    /// The kind.
    pub fn kind(&self) -> &Kind {
        &self.shared().codec.kind
    }

    /// Listens from now on. What is stored already comes first, marked as initial.
    pub fn listen(&self) -> Listener {
        let mailbox = Arc::new(Mailbox::default());
        // Under the lock, so that nothing is missed and nothing told twice.
        let mut state = self.shared().state.write();
        let added = |stored: &Stored| Delta::new(Change::Added, None, Some(stored.clone()));
        mailbox.push(state.store.iter().filter_map(added).map(|mut delta| {
            delta.initial = true;
            delta
        }));
        if state.unsynced == 0 {
            mailbox.synced();
        }
        state.listeners.push(Arc::downgrade(&mailbox));
        drop(state);
        Listener::new(mailbox, self.clone())
    }

    /// Tells one listener every object again.
    pub(crate) fn resync(&self, mailbox: &Mailbox) {
        let state = self.shared().state.read();
        let sync =
            |stored: &Stored| Delta::new(Change::Sync, Some(stored.clone()), Some(stored.clone()));
        mailbox.push(state.store.iter().filter_map(sync));
    }

    /// The object as it is stored.
    pub fn stored(&self, key: &ObjectKey) -> Option<Stored> {
        self.shared().state.read().store.get(key).cloned()
    }

    /// The object, if it is stored.
    ///
    /// # Errors
    /// When the object is there but does not fit its Rust type, or is not in memory.
    pub fn get(&self, key: &ObjectKey) -> Result<Option<AnyObject>, Arc<ObjectError>> {
        // The lock is not held while the object is made.
        match self.stored(key) {
            Some(stored) => stored.any().map(Some),
            None => Ok(None),
        }
    }

    /// The object, read from the API if its body has given way to the memory budget.
    ///
    /// # Errors
    /// As [`get`](Informer::get), and when the API cannot be asked.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn fetch(&self, key: &ObjectKey) -> Result<Option<AnyObject>, FetchError> {
        let error = match self.get(key) {
            Ok(object) => return Ok(object),
            Err(error) => error,
        };
        let client = self.shared().client.as_ref();
        let (ObjectError::Evicted { .. }, Some(client)) = (&*error, client) else {
            return Err(FetchError::Object(error));
        };
        match client.get(self.kind(), key).await {
            Ok(answer) => {
                let read = self.shared().read(Raw::Json(&answer));
                let object = read.map_err(|cause| FetchError::Read {
                    kind: Box::new(self.kind().clone()),
                    key: key.clone(),
                    cause: cause.into(),
                })?;
                object.any().map(Some).map_err(FetchError::Object)
            }
            Err(error) if error.is_not_found() => Ok(None),
            Err(cause) => Err(FetchError::Request(Box::new(cause))),
        }
    }

    /// Calls `visit` with each stored object of a selection: of an owner, of a value of an index,
    /// of a namespace, or all. Nothing is decoded. The informer is locked meanwhile.
    pub(crate) fn visit(&self, among: Among<'_>, mut visit: impl FnMut(&Stored)) {
        let state = self.shared().state.read();
        match among {
            Among::All => state.store.iter().for_each(visit),
            Among::Owner(uid) => state.store.owned_by(uid).for_each(visit),
            Among::Namespace(namespace) => state.store.in_namespace(namespace).for_each(visit),
            Among::Index(index, value) => {
                let found = state.store.by_index(index, value);
                found.into_iter().flatten().for_each(&mut visit);
            }
        }
    }

    /// Adds an index, unless there is one of its name. May be called at any time.
    pub fn add_index(&self, index: Index) {
        let mut state = self.shared().state.write();
        if !state.store.has_index(&index.name) {
            state.store.add_index(index);
        }
    }

    /// Whether there is an index of this name.
    pub fn has_index(&self, name: &str) -> bool {
        self.shared().state.read().store.has_index(name)
    }

    /// The values that objects have in an index, in no particular order.
    pub fn index_values(&self, index: &str) -> Vec<String> {
        let state = self.shared().state.read();
        let values = state.store.index_values(index);
        values.into_iter().flatten().map(str::to_owned).collect()
    }

    /// How many objects are stored.
    pub fn len(&self) -> usize {
        self.shared().state.read().store.len()
    }

    /// Whether no object is stored.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is stored and was done, in numbers.
    pub fn stats(&self) -> Stats {
        let writer = self.shared().writer.lock();
        let state = self.shared().state.read();
        let (counts, pool) = (&writer.origin().counts, &writer.origin().pool);
        let watches = || state.parts.iter().map(|progress| &*progress.stats);
        let sum = |count: fn(&WatchStats) -> &AtomicU64| -> u64 {
            watches()
                .map(|watch| count(watch).load(Ordering::Relaxed))
                .sum()
        };
        let relists = watches().map(|watch| watch.lists.load(Ordering::Relaxed).saturating_sub(1));
        Stats {
            objects: state.store.len(),
            bytes: state.store.bytes() + writer.bytes(),
            pool_bytes: pool.bytes(),
            decodes: counts.decodes.load(Ordering::Relaxed),
            decode_errors: counts.decode_errors.load(Ordering::Relaxed)
                + sum(|watch| &watch.unreadable),
            lists: u64::from(state.lists),
            evictions: state.evicted,
            events: sum(|watch| &watch.events),
            relists: relists.sum(),
            failures: sum(|watch| &watch.failures),
            watch_age: watches().filter_map(WatchStats::age).min(),
            lag: watches().filter_map(WatchStats::silence).max(),
        }
    }

    /// Whether the first list is complete.
    pub fn is_synced(&self) -> bool {
        *self.shared().synced.borrow()
    }

    /// Waits until the first list is complete. Any number of tasks may wait.
    ///
    /// # Cancel safety
    /// May be dropped and called again at any time.
    pub async fn wait_for_sync(&self) {
        // The sender lives in `self`, so the channel cannot close.
        let _ = self
            .shared()
            .synced
            .subscribe()
            .wait_for(|synced| *synced)
            .await;
    }

    /// What went wrong last, if a reflector is in trouble.
    pub fn last_error(&self) -> Option<String> {
        self.shared().last_error.lock().clone()
    }

    /// Reads an object of the kind, such as the answer to a write, without storing it.
    ///
    /// # Errors
    /// When not even its name can be read.
    pub fn read(&self, json: &[u8]) -> Result<Stored, serde_json::Error> {
        let read = self.shared().read(Raw::Json(json));
        read.map_err(|ReadError::Json(cause)| cause)
    }

    /// Takes in the response to a write of our own, so that reads, lists and indexes see it before
    /// the watch reports it. A response that the watch has passed already is ignored. An object
    /// that the informer's selector no longer matches is removed; if the informer does not store a
    /// field of its selector, the watch decides. An object that the write has [removed](is_removed),
    /// such as by taking its last finalizer, is removed as by
    /// [`observe_deletion`](Informer::observe_deletion).
    pub fn observe(&self, written: &Stored) {
        let (key, meta) = (written.key(), written.meta());
        let (uid, version) = (meta.uid(), number(meta.resource_version().as_deref()));
        let mut state = self.shared().state.write();
        if meta.is_deleting()
            && is_removed(&meta.to_object_meta())
            && !state.ours.has(Fault::EndedStays)
        {
            if let Some(uid) = uid {
                state.delete(&key, &uid, version, Some(written));
            }
            return;
        }
        let seen = state.seen(&key, uid.as_deref());
        let is_news = |version: &u64| {
            let stored = state.store.get(&key).map(Stored::version);
            // A list in progress may have reported more than the watch.
            seen.is_some_and(|seen| *version > seen) && stored < Some(*version)
                || state.ours.has(Fault::OldResponses)
        };
        let Some(version) = version.filter(is_news) else {
            return;
        };
        let news = News {
            uid: uid.as_deref(),
            version: Some(version),
        };
        // Responses arrive in any order.
        if state.ours.refuses(&key, news) {
            return;
        }
        match self.shared().options.selects(written) {
            Selected::Yes => {
                state.ours.write(&key, uid.as_deref(), version);
                state.upsert(written.clone(), Change::Updated, false);
            }
            Selected::No => {
                state.ours.write(&key, uid.as_deref(), version);
                state.remove(&key, Some(written.clone()));
                state.limit_ours();
            }
            Selected::Unknown => {}
        }
    }

    /// Takes in the response to a write of our own, as it came; see [`observe`](Informer::observe).
    /// What is not an object is ignored: the watch reports the write.
    pub fn observe_answer(&self, json: &[u8]) {
        if let Ok(written) = self.read(json) {
            self.observe(&written);
        }
    }

    /// Takes in that the object of a key and UID is gone by a deletion of our own, so that reads do
    /// not see it from now on, whatever older news the watch still delivers.
    ///
    /// Only the response to the deletion shows that it is: an object that stays for its finalizers
    /// or its grace period ([`Deleted::Terminating`](opkit_client::Deleted)) goes to
    /// [`observe`](Informer::observe). `resource_version` is the last version of the object that
    /// the caller knows, if it does; an object that neither the caller nor the informer knows is
    /// ignored.
    pub fn observe_deletion(&self, key: &ObjectKey, uid: &str, resource_version: Option<&str>) {
        let version = number(resource_version);
        self.shared().state.write().delete(key, uid, version, None);
    }
}

#[cfg(test)]
impl Informer {
    /// Builds in a fault, which the simulation has to find.
    pub(crate) fn build_in(&self, fault: Fault) {
        self.shared().state.write().ours.fault = fault;
    }

    /// Own writes and deletions that are waited for.
    pub(crate) fn own_writes(&self) -> String {
        format!("{:?}", self.shared().state.read().ours)
    }

    /// How many own writes and deletions are waited for.
    pub(crate) fn waits_for(&self) -> usize {
        self.shared().state.read().ours.len()
    }
}

/// Which stored objects to look at.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Among<'a> {
    All,
    Owner(&'a str),
    Namespace(&'a str),
    /// Name and value of an index.
    Index(&'a str, &'a str),
}

impl Shared {
    /// Makes a stored object of what came, without storing it.
    fn read(&self, raw: Raw<'_>) -> Result<Stored, ReadError> {
        let wire = Wire::read(raw, self.message)?;
        let stored = self.writer.lock().store(&wire, &self.options);
        stored.ok_or_else(|| ReadError::Json(serde::de::Error::custom("it has no name")))
    }
}

impl State {
    fn sink(&mut self, shared: &Arc<Shared>, part: Part, synced: bool) -> InformerSink {
        let place = self.parts.len();
        let stats = Arc::new(WatchStats::default());
        self.parts.push(Progress {
            part: part.clone(),
            seen: None,
            list: None,
            stats: stats.clone(),
        });
        let place = (self.generation, place);
        InformerSink::new(shared.clone(), part, place, stats, synced)
    }

    /// The watch that reports an object.
    fn part_of(&self, key: &ObjectKey, uid: Option<&str>) -> Option<&Progress> {
        let namespace = key.namespace.as_deref();
        let mut parts = self.parts.iter();
        parts.find(|progress| progress.part.covers(namespace, uid))
    }

    /// The version up to which an object was reported: by its watch or, until that has completed a
    /// list, by those of earlier splits. None if it was in none of the parts since.
    fn seen(&self, key: &ObjectKey, uid: Option<&str>) -> Option<u64> {
        let namespace = key.namespace.as_deref();
        for parts in std::iter::once(&self.parts).chain(&self.former) {
            let mut parts = parts.iter();
            let progress = parts.find(|progress| progress.part.covers(namespace, uid))?;
            if progress.seen.is_some() {
                return progress.seen;
            }
        }
        None
    }

    /// Hides an object that is gone by a deletion of our own; `last` is its last state, if the
    /// response shows it.
    fn delete(&mut self, key: &ObjectKey, uid: &str, version: Option<u64>, last: Option<&Stored>) {
        let part = self.part_of(key, Some(uid));
        let Some((list, stored)) = part.map(|part| (part.list, self.store.get(key))) else {
            return;
        };
        let is_stored = stored.is_some_and(|stored| stored.meta().uid().as_deref() == Some(uid));
        let known = stored.filter(|_| is_stored).map(Stored::version);
        let known = known.max(version).max(self.ours.known(key, uid));
        // From before our last write or deletion of this key.
        if !is_stored && self.ours.covers_deletion(key, uid, known) {
            return;
        }
        let removes = match stored.map(Stored::version) {
            _ if is_stored => true,
            None if known.is_none() => return,
            // A list in progress may still report what the watch has passed, and a watch with a
            // selector what matched only after that.
            None if known <= self.seen(key, Some(uid)) && list.is_none() && !self.selects => {
                return;
            }
            None => false,
            // An earlier life, or a later one: whose watch has passed the deletion, unless it is
            // another.
            Some(stored) if Some(stored) < known => true,
            Some(_) if self.is_one_watch(key) => return,
            Some(_) => false,
        };
        let listed = list.is_some_and(|list| is_stored && self.store.is_marked(key, list));
        self.ours
            .delete(key, uid, known.unwrap_or_default(), listed);
        if removes {
            // A deletion at the stored version ended that version.
            let stored = self.store.get(key).filter(|stored| {
                is_stored && version.is_some_and(|version| version == stored.version())
            });
            let last = last.or(stored).cloned();
            self.remove(key, last);
        }
        self.limit_ours();
    }

    /// Whether one watch reports all objects of a key.
    fn is_one_watch(&self, key: &ObjectKey) -> bool {
        watches(&self.parts, key.namespace.as_deref()).count() == 1
    }

    /// Removes an object. `last` is its last state, if that is known to be it; otherwise what was
    /// stored is the last known one.
    fn remove(&mut self, key: &ObjectKey, last: Option<Stored>) {
        let gone = self.store.remove(key);
        let is_certain = last.is_some();
        self.tell(Delta::deleted(gone, last, is_certain));
    }

    fn limit_ours(&mut self) {
        let store = &self.store;
        let is_stored = |key: &ObjectKey| store.get(key).is_some();
        self.ours.limit(store.len(), is_stored);
    }

    /// Whether news of the watch are to be stored, and not older than what we did ourselves.
    fn accepts(&mut self, key: &ObjectKey, news: News<'_>, is_end: bool) -> bool {
        let (ours, parts) = (&mut self.ours, &self.parts);
        let namespace = key.namespace.as_deref();
        ours.accepts(key, news, is_end, |version| {
            has_passed(parts, namespace, version)
        })
    }

    /// Forgets of our own writes and deletions what the watches have passed.
    fn forget_passed(&mut self) {
        let (ours, parts) = (&mut self.ours, &self.parts);
        for Progress { part, seen, .. } in parts {
            ours.reported(part, *seen);
        }
        ours.forget_passed(|namespace, version| has_passed(parts, namespace, version));
    }

    fn saw(&mut self, place: usize, version: Option<u64>) {
        if let Some(progress) = self.parts.get_mut(place)
            && version.is_some()
        {
            progress.seen = version;
        }
    }

    /// Stores an object and tells it, unless it was there in this version already.
    fn upsert(&mut self, stored: Stored, change: Change, initial: bool) {
        let old = self.store.insert(stored.clone());
        if old.as_ref().is_some_and(|old| same_version(old, &stored)) {
            return;
        }
        let change = if old.is_none() { Change::Added } else { change };
        if let Some(mut delta) = Delta::new(change, old, Some(stored)) {
            delta.initial = initial;
            self.tell(Some(delta));
        }
    }

    fn mailboxes(&self) -> impl Iterator<Item = Arc<Mailbox>> {
        self.listeners.iter().filter_map(Weak::upgrade)
    }

    fn tell(&mut self, delta: Option<Delta>) {
        let Some(delta) = delta.filter(|_| !self.listeners.is_empty()) else {
            return;
        };
        self.listeners
            .retain(|listener| listener.strong_count() > 0);
        for mailbox in self.mailboxes() {
            mailbox.push([delta.clone()]);
        }
    }
}

/// The watches that report objects of a namespace.
fn watches<'a>(
    parts: &'a [Progress],
    namespace: Option<&'a str>,
) -> impl Iterator<Item = &'a Progress> {
    parts.iter().filter(move |progress| {
        let part = progress.part.namespace.as_deref();
        part.is_none() || part == namespace
    })
}

/// Whether all watches of a namespace have come to a version.
fn has_passed(parts: &[Progress], namespace: Option<&str>, version: u64) -> bool {
    watches(parts, namespace).all(|progress| progress.seen >= Some(version))
}

fn same_version(a: &Stored, b: &Stored) -> bool {
    a.version() == b.version()
        && a.meta().uid() == b.meta().uid()
        && (a.version() != 0 || a.meta().resource_version() == b.meta().resource_version())
}

#[cfg(test)]
mod tests;
