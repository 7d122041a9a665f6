//! Shared informer of one kind: its store, its listeners, and whether it is synced.

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
use crate::listener::{Mailbox, Resynced};
use crate::metrics::WatchStats;
use crate::object::Codec;
use crate::options::{InformerOptions, Selected};
use crate::shard::Part;
use crate::sink::{HeadError, Raw};
use crate::store::{Fault, ObjectVersion, Overlay, Store, number};
use crate::writer::{Wire, Writer};
use crate::{AnyObject, Change, Delta, FetchError, Index, Listener, Lister, ObjectError, Stored};

/// Largest number of earlier splits of the kind over watches that are remembered. All earlier
/// splits are forgotten when the lists of the current split are complete.
const PREVIOUS_MAX: usize = 8;

/// Shared informer: reflectors write objects to the informer, listers and listeners read them.
/// Cloning is cheap. The watch stops when the last clone, lister and listener is dropped.
#[derive(Debug, Clone)]
pub struct Informer {
    handle: Arc<InformerHandle>,
}

impl AsRef<Self> for Informer {
    fn as_ref(&self) -> &Self {
        self
    }
}

/// Handle that all users of an informer share. Dropping the last clone of the handle stops the
/// reflectors.
#[derive(Debug)]
pub(crate) struct InformerHandle {
    core: Arc<InformerCore>,
    _stop: DropGuard,
}

/// State and configuration that the handles and the reflectors of an informer share.
#[derive(Debug)]
struct InformerCore {
    codec: Arc<Codec>,
    /// Protobuf message of the objects; `None` if the kind is sent as JSON only.
    message: Option<MessageType>,
    options: InformerOptions,
    client: Option<RestClient>,
    /// Encoder of received objects. Lock order: `writer` is locked before `state`, never while
    /// `state` is locked.
    writer: Mutex<Writer>,
    state: RwLock<State>,
    /// Number of the last split of the kind over watches of which all watches have completed a
    /// list; `None` until the informer is synced.
    listed: watch::Sender<Option<u64>>,
    last_error: Mutex<Option<String>>,
    stop: CancellationToken,
    /// Token that stops the reflectors of the current split of the kind over watches.
    split_token: Mutex<CancellationToken>,
}

#[derive(Debug)]
struct State {
    store: Store,
    overlay: Overlay,
    /// Whether the watch has a selector. Such a watch reports an object as deleted when the object
    /// no longer matches the selector.
    selects: bool,
    listeners: Vec<Weak<Mailbox>>,
    /// Whether the watches together read all objects of their namespaces.
    is_whole: bool,
    /// Number of reflectors that have not completed their first list.
    unlisted: usize,
    /// Part of the kind that each reflector reads, and the resourceVersion that the reflector has
    /// reached.
    parts: Vec<Progress>,
    /// Parts of earlier splits of the kind over watches, the latest split first.
    previous: VecDeque<Vec<Progress>>,
    /// Number of splits of the kind over watches so far. Writes of the reflectors of an earlier
    /// split are ignored.
    generation: u64,
    /// Number of lists started so far.
    lists: u32,
    evicted: u64,
}

#[derive(Debug)]
struct Progress {
    part: Part,
    seen: Option<u64>,
    /// Number of the list in progress; `None` between lists.
    list: Option<u32>,
    stats: Arc<WatchStats>,
}

/// Size and counters of an informer; see [`Informer::stats`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Number of stored objects.
    pub objects: usize,
    /// Approximate memory of the stored objects and their strings, in bytes. Does not include
    /// objects that are stored as Rust objects.
    pub bytes: usize,
    /// Approximate memory of the decoded Rust objects in the pool, in bytes.
    pub pool_bytes: usize,
    /// Number of times a stored object was decoded into a Rust object.
    pub decodes: u64,
    /// Number of decodes that failed.
    pub decode_errors: u64,
    /// Number of lists started, including the first list of each reflector.
    pub lists: u64,
    /// Number of bodies that were evicted by the memory budget.
    pub evictions: u64,
    /// Number of watch events, including bookmarks, since the kind was last split over watches; see
    /// [`InformerFactory::resplit`](crate::InformerFactory::resplit).
    pub events: u64,
    /// Number of complete lists since the kind was last split over watches, without the first list
    /// of each watch.
    pub relists: u64,
    /// Number of failed lists and watches since the kind was last split over watches.
    pub failures: u64,
    /// Age of the youngest open watch.
    pub watch_age: Option<Duration>,
    /// Time since the last event or bookmark, of the watch for which this time is longest.
    pub lag: Option<Duration>,
}

impl Informer {
    /// Creates an informer that counts as synced after the first lists of this number of
    /// reflectors. The reflectors run until `stop` is cancelled, which happens when the last user
    /// of the informer is dropped.
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
            overlay: Overlay::default(),
            selects: options.labels.is_some() || options.fields.is_some(),
            listeners: Vec::new(),
            is_whole: options.shards.range.is_none(),
            unlisted: reflectors,
            parts: Vec::new(),
            previous: VecDeque::new(),
            generation: 0,
            lists: 0,
            evicted: 0,
        };
        let core = InformerCore {
            writer: Mutex::new(Writer::new(codec.clone(), &options)),
            message: codec.message(options.metadata_only),
            codec,
            options,
            client,
            state: RwLock::new(state),
            listed: watch::Sender::new((reflectors == 0).then_some(0)),
            last_error: Mutex::new(None),
            split_token: Mutex::new(stop.child_token()),
            stop: stop.clone(),
        };
        let handle = InformerHandle {
            core: Arc::new(core),
            _stop: stop.drop_guard(),
        };
        Self {
            handle: Arc::new(handle),
        }
    }

    fn core(&self) -> &InformerCore {
        &self.handle.core
    }

    /// Returns a weak handle of the informer. The factory holds weak handles, so that it does not
    /// keep informers alive.
    pub(crate) fn downgrade(&self) -> Weak<InformerHandle> {
        Arc::downgrade(&self.handle)
    }

    pub(crate) fn upgrade(handle: &Weak<InformerHandle>) -> Option<Self> {
        Some(Self {
            handle: handle.upgrade()?,
        })
    }

    /// Returns the sink of a reflector of `part`.
    #[cfg(test)]
    pub(crate) fn sink(&self, part: impl Into<Part>) -> InformerSink {
        let mut state = self.core().state.write();
        state.sink(&self.handle.core, part.into())
    }

    /// Replaces the reflectors by reflectors of other parts of the kind. `is_whole` is whether the
    /// parts together are all objects of their namespaces. The previous reflectors are stopped, and
    /// their writes are ignored. Objects that belong to none of the new parts are removed; all
    /// other objects stay. The new reflectors start with a quorum read, which finds the changes
    /// since then: no change is lost or delivered twice.
    pub(crate) fn split(&self, parts: Vec<Part>, is_whole: bool) -> Split {
        let split_token = self.core().stop.child_token();
        std::mem::replace(&mut *self.core().split_token.lock(), split_token.clone()).cancel();
        let mut state = self.core().state.write();
        let state = &mut *state;
        state.generation = state.generation.saturating_add(1);
        state.is_whole = is_whole;
        state.unlisted = parts.len();
        *self.core().last_error.lock() = None;
        let before = std::mem::take(&mut state.parts);
        state.overlay.keep(&parts);
        let is_kept = |stored: &Stored| parts.iter().any(|part| part.keeps(stored));
        let removed = state.store.take(|stored| !is_kept(stored));
        for stored in removed {
            state.notify(Delta::left(stored));
        }
        let sinks: Vec<_> = parts
            .into_iter()
            .map(|part| state.sink(&self.handle.core, part))
            .collect();
        // Until a new watch has listed, responses to own writes are compared with the previous
        // watches.
        state.previous.push_front(before);
        state.previous.truncate(PREVIOUS_MAX);
        if sinks.is_empty() {
            self.core().all_listed(state);
        }
        Split {
            sinks,
            stop: split_token,
            generation: state.generation,
        }
    }

    /// Returns the number of the current split of the kind over watches.
    pub(crate) fn generation(&self) -> u64 {
        self.core().state.read().generation
    }

    /// Waits until all watches of the split with this number, or of a later one, have completed a
    /// list.
    pub(crate) async fn wait_for_split(&self, generation: u64) {
        let mut listed = self.core().listed.subscribe();
        // The sender lives in `self`, so the channel cannot close.
        let _ = listed.wait_for(|listed| *listed >= Some(generation)).await;
    }

    /// Reports whether all watches of the split with this number, or of a later one, have completed
    /// a list.
    pub(crate) fn has_listed(&self, generation: u64) -> bool {
        *self.core().listed.borrow() >= Some(generation)
    }

    /// Returns a lister of this informer; `None` if the informer was not started for the type `K`.
    pub fn lister<K: Object>(&self) -> Option<Lister<K>> {
        let is_that = self.core().codec.type_id == TypeId::of::<K>();
        is_that.then(|| Lister::new(self.clone()))
    }

    /// Returns the kind of the objects.
    pub fn kind(&self) -> &Kind {
        &self.core().codec.kind
    }

    /// Subscribes to changes. The listener first receives the objects that are already stored,
    /// marked as initial.
    pub fn listen(&self) -> Listener {
        let mailbox = Arc::new(Mailbox::default());
        // Under the lock, so that no change is missed or delivered twice.
        let mut state = self.core().state.write();
        let added = |stored: &Stored| Delta::new(Change::Added, None, Some(stored.clone()));
        mailbox.push(state.store.iter().filter_map(added).map(|mut delta| {
            delta.initial = true;
            delta
        }));
        if self.is_synced() {
            mailbox.synced();
        }
        state.listeners.push(Arc::downgrade(&mailbox));
        drop(state);
        Listener::new(mailbox, self.clone())
    }

    /// Returns the first object at or after the place `cursor` in the store, for the resync of one
    /// listener, unless the listener has changes to receive. So the listener never sees a version
    /// in a resync before the change to it.
    pub(crate) fn resynced(&self, mailbox: &Mailbox, cursor: usize) -> Resynced {
        // Changes are added to the mailbox under the write lock.
        let state = self.core().state.read();
        if !mailbox.is_empty() {
            return Resynced::Later;
        }
        let Some((place, stored)) = state.store.first_from(cursor) else {
            return Resynced::End;
        };
        match Delta::new(Change::Sync, Some(stored.clone()), Some(stored.clone())) {
            Some(delta) => Resynced::Object(delta, place.saturating_add(1)),
            None => Resynced::End,
        }
    }

    /// Returns the object in its stored form.
    pub fn stored(&self, key: &ObjectKey) -> Option<Stored> {
        self.core().state.read().store.get(key).cloned()
    }

    /// Returns the object, if it is stored.
    ///
    /// # Errors
    /// If the object is stored but does not match its Rust type, or was evicted.
    pub fn get(&self, key: &ObjectKey) -> Result<Option<AnyObject>, Arc<ObjectError>> {
        // The lock is not held while the object is decoded.
        match self.stored(key) {
            Some(stored) => stored.any().map(Some),
            None => Ok(None),
        }
    }

    /// Returns the object. If its body was evicted by the memory budget, the object is read from
    /// the API.
    ///
    /// # Errors
    /// Same as [`get`](Informer::get), and if the request to the API fails.
    ///
    /// # Cancel safety
    /// Safe to drop at any time.
    pub async fn fetch(&self, key: &ObjectKey) -> Result<Option<AnyObject>, FetchError> {
        let error = match self.get(key) {
            Ok(object) => return Ok(object),
            Err(error) => error,
        };
        let client = self.core().client.as_ref();
        let (ObjectError::Evicted { .. }, Some(client)) = (&*error, client) else {
            return Err(FetchError::Object(error));
        };
        match client.get(self.kind(), key).await {
            Ok(response) => {
                let read = self.core().read(Raw::Json(&response));
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

    /// Calls `visit` with each stored object among the candidates, without decoding the object. The
    /// informer is locked during the calls.
    pub(crate) fn visit(&self, candidates: Candidates<'_>, mut visit: impl FnMut(&Stored)) {
        let state = self.core().state.read();
        match candidates {
            Candidates::All => state.store.iter().for_each(visit),
            Candidates::Owner(uid) => state.store.owned_by(uid).for_each(visit),
            Candidates::Namespace(namespace) => state.store.in_namespace(namespace).for_each(visit),
            Candidates::Index(index, value) => {
                let found = state.store.by_index(index, value);
                found.into_iter().flatten().for_each(&mut visit);
            }
        }
    }

    /// Adds an index, unless the informer has an index with the same name. Can be called at any
    /// time.
    pub fn add_index(&self, index: Index) {
        let mut state = self.core().state.write();
        if !state.store.has_index(&index.name) {
            state.store.add_index(index);
        }
    }

    /// Reports whether the informer has an index with this name.
    pub fn has_index(&self, name: &str) -> bool {
        self.core().state.read().store.has_index(name)
    }

    /// Returns the values that the objects have in an index, in no particular order.
    pub fn index_values(&self, index: &str) -> Vec<String> {
        let state = self.core().state.read();
        let values = state.store.index_values(index);
        values.into_iter().flatten().map(str::to_owned).collect()
    }

    /// Reports whether the informer stores all objects of the kind in `namespace`, or in all
    /// namespaces if that is `None`: it has no selector, reads all shards of the namespace, and
    /// evicts no bodies.
    pub fn has_all(&self, namespace: Option<&str>) -> bool {
        if self.core().options.memory_budget.is_some() {
            return false;
        }
        let state = self.core().state.read();
        let mut parts = state.parts.iter();
        state.is_whole
            && !state.selects
            && parts.any(|progress| {
                let part = progress.part.namespace.as_deref();
                part.is_none() || part == namespace
            })
    }

    /// Returns the number of stored objects.
    pub fn len(&self) -> usize {
        self.core().state.read().store.len()
    }

    /// Reports whether no object is stored.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the size and the counters of the informer.
    pub fn stats(&self) -> Stats {
        let writer = self.core().writer.lock();
        let state = self.core().state.read();
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

    /// Reports whether the first list is complete.
    pub fn is_synced(&self) -> bool {
        self.core().listed.borrow().is_some()
    }

    /// Reports whether the informer has stopped: its objects stay readable, but do not change any
    /// more.
    pub fn is_stopped(&self) -> bool {
        self.core().stop.is_cancelled()
    }

    /// Waits until the first list is complete, or until the informer has stopped. Returns whether
    /// the first list is complete and the informer is running.
    pub(crate) async fn is_usable(&self) -> bool {
        let stopped = self.core().stop.cancelled();
        tokio::select! {
            biased;
            () = stopped => false,
            () = self.wait_for_sync() => true,
        }
    }

    /// Returns the Rust type of the objects.
    pub(crate) fn type_id(&self) -> TypeId {
        self.core().codec.type_id
    }

    /// Waits until the first list is complete. Any number of tasks can wait.
    ///
    /// # Cancel safety
    /// Safe to drop at any time and to call again.
    pub async fn wait_for_sync(&self) {
        self.wait_for_split(0).await;
    }

    /// Returns the last error of a list or watch; `None` after a later list or watch has succeeded.
    pub fn last_error(&self) -> Option<String> {
        self.core().last_error.lock().clone()
    }

    /// Decodes an object of the kind from JSON, such as the response to a write, without storing
    /// the object.
    ///
    /// # Errors
    /// If not even the name of the object can be read.
    pub fn read(&self, json: &[u8]) -> Result<Stored, serde_json::Error> {
        let read = self.core().read(Raw::Json(json));
        read.map_err(|HeadError::Json(cause)| cause)
    }

    /// Stores the response to a write of this process, so that reads, lists and indexes show the
    /// write before the watch reports it.
    ///
    /// A response at or below the resourceVersion that the watch has reached is ignored. An object
    /// that no longer matches the informer's selector is removed. If the informer does not store a
    /// field that the selector needs, the response is ignored and the watch reports the write. If
    /// the write has [removed](is_removed) the object, for instance by removing the last finalizer,
    /// the object is removed as by [`observe_deletion`](Informer::observe_deletion).
    pub fn observe(&self, written: &Stored) {
        let (key, meta) = (written.key(), written.meta());
        let (uid, version) = (meta.uid(), number(meta.resource_version().as_deref()));
        let mut state = self.core().state.write();
        if meta.is_deleting()
            && is_removed(&meta.to_object_meta())
            && !state.overlay.has(Fault::EndedStays)
        {
            if let Some(uid) = uid {
                state.delete(&key, &uid, version, Some(written));
            }
            return;
        }
        let seen = state.seen(&key, uid.as_deref());
        let is_newer = |version: &u64| {
            let stored = state.store.get(&key).map(Stored::version);
            // A list in progress may have delivered a later version than the watch.
            seen.is_some_and(|seen| *version > seen) && stored < Some(*version)
                || state.overlay.has(Fault::OldResponses)
        };
        let Some(version) = version.filter(is_newer) else {
            return;
        };
        let observed = ObjectVersion {
            uid: uid.as_deref(),
            version: Some(version),
        };
        // Responses can arrive in any order.
        if state.overlay.refuses(&key, observed) {
            return;
        }
        match self.core().options.selects(written) {
            // The write has moved the object to owners in other parts. The removed state has the
            // previous owners.
            Selected::Yes if !state.keeps(written) => {
                state.overlay.write(&key, uid.as_deref(), version);
                state.remove(&key, None);
                state.limit_overlay();
            }
            Selected::Yes => {
                state.overlay.write(&key, uid.as_deref(), version);
                state.upsert(written.clone(), Change::Updated, false);
            }
            Selected::No => {
                state.overlay.write(&key, uid.as_deref(), version);
                state.remove(&key, Some(written.clone()));
                state.limit_overlay();
            }
            Selected::Unknown => {}
        }
    }

    /// Stores the response to a write of this process, given as the JSON that the server sent; see
    /// [`observe`](Informer::observe). JSON that is not an object is ignored: the watch reports the
    /// write.
    pub fn observe_response(&self, json: &[u8]) {
        if let Ok(written) = self.read(json) {
            self.observe(&written);
        }
    }

    /// Removes an object that this process has deleted, given by key and UID. Reads no longer
    /// return the object, even if the watch still delivers older events of the object.
    ///
    /// Call this only if the response to the deletion shows that the object is deleted. If the
    /// object remains because of its finalizers or its grace period
    /// ([`Deleted::Terminating`](opkit_client::Deleted)), pass the object to
    /// [`observe`](Informer::observe) instead. `resource_version` is the last resourceVersion of
    /// the object that the caller knows, if any. The call is ignored if neither the caller nor the
    /// informer knows a version of the object.
    pub fn observe_deletion(&self, key: &ObjectKey, uid: &str, resource_version: Option<&str>) {
        let version = number(resource_version);
        self.core().state.write().delete(key, uid, version, None);
    }
}

#[cfg(test)]
impl Informer {
    /// Injects a fault that the simulation must detect.
    pub(crate) fn inject(&self, fault: Fault) {
        self.core().state.write().overlay.fault = fault;
    }

    /// Returns the writes and deletions of this process that the watch has not reported yet, as
    /// text for test messages.
    pub(crate) fn overlay_text(&self) -> String {
        format!("{:?}", self.core().state.read().overlay)
    }

    /// Returns the number of writes and deletions of this process that the watch has not reported
    /// yet.
    pub(crate) fn overlay_len(&self) -> usize {
        self.core().state.read().overlay.len()
    }
}

/// New split of the kind of an informer over watches; see [`Informer::split`].
#[derive(Debug)]
pub(crate) struct Split {
    /// Sinks of the new reflectors, one for each part.
    pub(crate) sinks: Vec<InformerSink>,
    /// Token that stops the new reflectors.
    pub(crate) stop: CancellationToken,
    /// Number of this split.
    pub(crate) generation: u64,
}

/// Set of stored objects that is searched for the selected ones.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Candidates<'a> {
    All,
    Owner(&'a str),
    Namespace(&'a str),
    /// Objects that have the value (second) in the index with the name (first).
    Index(&'a str, &'a str),
}

impl InformerCore {
    /// Decodes received bytes into a stored object, without adding it to the store.
    fn read(&self, raw: Raw<'_>) -> Result<Stored, HeadError> {
        let wire = Wire::read(raw, self.message)?;
        let stored = self.writer.lock().store(&wire, &self.options);
        stored.ok_or_else(|| HeadError::Json(serde::de::Error::custom("the object has no name")))
    }

    /// Records that all watches of the current split of the kind have completed a list.
    fn all_listed(&self, state: &State) {
        let before = self.listed.send_replace(Some(state.generation));
        if before.is_none() {
            state.mailboxes().for_each(|mailbox| mailbox.synced());
        }
    }
}

impl State {
    fn sink(&mut self, core: &Arc<InformerCore>, part: Part) -> InformerSink {
        let place = self.parts.len();
        let stats = Arc::new(WatchStats::default());
        self.parts.push(Progress {
            part: part.clone(),
            seen: None,
            list: None,
            stats: stats.clone(),
        });
        let place = (self.generation, place);
        InformerSink::new(core.clone(), part, place, stats)
    }

    /// Reports whether an object belongs to one of the parts that the watches read.
    fn keeps(&self, stored: &Stored) -> bool {
        let mut parts = self.parts.iter();
        parts.any(|progress| progress.part.keeps(stored))
    }

    /// Returns the state of the watch that reports an object.
    fn part_of(&self, key: &ObjectKey, uid: Option<&str>) -> Option<&Progress> {
        let namespace = key.namespace.as_deref();
        let mut parts = self.parts.iter();
        parts.find(|progress| progress.part.covers(namespace, uid))
    }

    /// Returns the resourceVersion up to which changes of an object were reported. Until the
    /// object's watch has completed a list, this is the version that the watches of an earlier
    /// split had reached. `None` if one of these splits did not cover the object.
    fn seen(&self, key: &ObjectKey, uid: Option<&str>) -> Option<u64> {
        let namespace = key.namespace.as_deref();
        for parts in std::iter::once(&self.parts).chain(&self.previous) {
            let mut parts = parts.iter();
            let progress = parts.find(|progress| progress.part.covers(namespace, uid))?;
            if progress.seen.is_some() {
                return progress.seen;
            }
        }
        None
    }

    /// Hides an object that this process has deleted. `last` is the last state of the object, if
    /// the response to the deletion contains that state.
    fn delete(&mut self, key: &ObjectKey, uid: &str, version: Option<u64>, last: Option<&Stored>) {
        let part = self.part_of(key, Some(uid));
        let Some((list, stored)) = part.map(|part| (part.list, self.store.get(key))) else {
            return;
        };
        let is_stored = stored.is_some_and(|stored| stored.meta().uid().as_deref() == Some(uid));
        let known = stored.filter(|_| is_stored).map(Stored::version);
        let known = known.max(version).max(self.overlay.known(key, uid));
        // The deletion is older than the last own write or deletion of this key.
        if !is_stored && self.overlay.absorb_deletion(key, uid, known) {
            return;
        }
        let removes = match stored.map(Stored::version) {
            _ if is_stored => true,
            None if known.is_none() => return,
            // A list in progress may still deliver versions that the watch has passed, and a watch
            // with a selector an object that matched only later.
            None if known <= self.seen(key, Some(uid)) && list.is_none() && !self.selects => {
                return;
            }
            None => false,
            // Another object of the same name is stored. If it is older, it was deleted before this
            // one was created. If it is newer, its watch has passed this deletion, unless the
            // deleted object belongs to another watch.
            Some(stored) if Some(stored) < known => true,
            Some(_) if self.is_one_watch(key) => return,
            Some(_) => false,
        };
        let listed = list.is_some_and(|list| is_stored && self.store.is_marked(key, list));
        self.overlay
            .delete(key, uid, known.unwrap_or_default(), listed);
        if removes {
            // A deletion at the stored version: the stored state is the last one.
            let stored = self.store.get(key).filter(|stored| {
                is_stored && version.is_some_and(|version| version == stored.version())
            });
            let last = last.or(stored).cloned();
            self.remove(key, last);
        }
        self.limit_overlay();
    }

    /// Reports whether a single watch reports all objects with this key.
    fn is_one_watch(&self, key: &ObjectKey) -> bool {
        watches(&self.parts, key.namespace.as_deref()).count() == 1
    }

    /// Removes an object and notifies listeners. `last` is the last state of the object, if that
    /// state is certain. Otherwise the stored state is delivered as the last known state.
    fn remove(&mut self, key: &ObjectKey, last: Option<Stored>) {
        let removed = self.store.remove(key);
        let is_certain = last.is_some();
        self.notify(Delta::deleted(removed, last, is_certain));
    }

    fn limit_overlay(&mut self) {
        let store = &self.store;
        let is_stored = |key: &ObjectKey| store.get(key).is_some();
        self.overlay.limit(store.len(), is_stored);
    }

    /// Reports whether an event of the watch should be stored, that is, whether the event is newer
    /// than the writes and deletions of this process.
    fn admit(&mut self, key: &ObjectKey, observed: ObjectVersion<'_>, is_end: bool) -> bool {
        let (overlay, parts) = (&mut self.overlay, &self.parts);
        let namespace = key.namespace.as_deref();
        overlay.admit(key, observed, is_end, |version| {
            has_passed(parts, namespace, version)
        })
    }

    /// Removes the writes and deletions of this process from the overlay once the watches have
    /// reported later versions.
    fn forget_passed(&mut self) {
        let (overlay, parts) = (&mut self.overlay, &self.parts);
        for Progress { part, seen, .. } in parts {
            overlay.reported(part, *seen);
        }
        overlay.forget_passed(|namespace, version| has_passed(parts, namespace, version));
    }

    fn advance(&mut self, place: usize, version: Option<u64>) {
        if let Some(progress) = self.parts.get_mut(place)
            && version.is_some()
        {
            progress.seen = version;
        }
    }

    /// Stores an object, and notifies listeners unless the same version was already stored.
    fn upsert(&mut self, stored: Stored, change: Change, initial: bool) {
        let old = self.store.insert(stored.clone());
        let initial = initial && old.is_none();
        if old.as_ref().is_some_and(|old| same_version(old, &stored)) {
            return;
        }
        let change = if old.is_none() { Change::Added } else { change };
        if let Some(mut delta) = Delta::new(change, old, Some(stored)) {
            delta.initial = initial;
            self.notify(Some(delta));
        }
    }

    fn mailboxes(&self) -> impl Iterator<Item = Arc<Mailbox>> {
        self.listeners.iter().filter_map(Weak::upgrade)
    }

    fn notify(&mut self, delta: Option<Delta>) {
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

/// Returns the watches that report objects of a namespace.
fn watches<'a>(
    parts: &'a [Progress],
    namespace: Option<&'a str>,
) -> impl Iterator<Item = &'a Progress> {
    parts.iter().filter(move |progress| {
        let part = progress.part.namespace.as_deref();
        part.is_none() || part == namespace
    })
}

/// Reports whether all watches of a namespace have reached this resourceVersion.
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
