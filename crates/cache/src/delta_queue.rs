//! Queue of changes to objects, compressed per key.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt;
use std::hash::Hash;
use std::pin::pin;
use std::sync::Arc;

use foldhash::fast::RandomState;
use opkit_client::{Object, ObjectKey};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::{Indexer, ReflectorStore};

/// Largest number of deltas of one key. A consumer that is so far behind needs the last states
/// only, and the memory of the queue is limited by the number of objects.
const DELTAS_PER_KEY_MAX: usize = 100;

/// Change of one object; client-go's `Delta`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ObjectDelta<T> {
    /// The source reported that the object was created.
    Added(Arc<T>),
    /// The source reported that the object has changed.
    Updated(Arc<T>),
    /// The object was deleted.
    Deleted {
        /// Last known state; `None` if no state is known.
        last: Option<Arc<T>>,
        /// Whether `last` is the final state of the object. It is not if the deletion was missed
        /// and found by a list; client-go's `DeletedFinalStateUnknown`.
        is_final: bool,
    },
    /// The object was listed, at the start or after a gap in the watch: it may have changed.
    Replaced(Arc<T>),
    /// The object is delivered again by a resync: it has not changed.
    Sync(Arc<T>),
}

impl<T> ObjectDelta<T> {
    /// Returns the state of the object after the change, or the last known one of a deleted object.
    pub fn object(&self) -> Option<&Arc<T>> {
        match self {
            Self::Added(object)
            | Self::Updated(object)
            | Self::Replaced(object)
            | Self::Sync(object) => Some(object),
            Self::Deleted { last, .. } => last.as_ref(),
        }
    }

    /// Reports whether the object was deleted.
    pub fn is_deleted(&self) -> bool {
        matches!(self, Self::Deleted { .. })
    }
}

/// Queue that collects the changes of each object until a consumer takes all changes of one object
/// at once. client-go's `DeltaFIFO`, which stands between a reflector and the code that updates a
/// store and notifies handlers.
///
/// - Keys are taken in the order in which their first waiting change arrived. Changes of one key
///   are in order; two deletions in a row are merged into the one that knows more.
/// - [`replace`](Self::replace) compares a list with the objects that wait in the queue, that a
///   consumer holds, and that the consumer's store has, and queues a deletion of each object that
///   the list does not have.
/// - A key that a consumer holds is not handed to another one before the consumer has dropped it.
/// - The queue never waits and drops no key. Of a key with more than 100 changes, the oldest change
///   is dropped.
///
/// A consumer updates its store, which the queue also reads, before it drops the
/// [`PoppedDeltas`]. An added object may be in the store already, and an updated one may be
/// missing. A clone is another handle to the same queue.
///
/// # Examples
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use opkit_cache::{DeltaQueue, Indexer, ObjectDelta};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let store = Indexer::<ConfigMap>::of_objects();
/// let queue = DeltaQueue::new(store.clone());
/// let mut map = ConfigMap::default();
/// map.metadata.name = Some("settings".to_owned());
/// queue.replace([map.clone()]);
/// queue.update(map.clone());
///
/// // Usually a task of its own, until `pop` returns `None`.
/// let popped = queue.pop().await.expect("the queue is open");
/// assert_eq!(popped.key().name, "settings");
/// assert!(matches!(popped.deltas(), [ObjectDelta::Replaced(_), ObjectDelta::Updated(_)]));
/// for delta in popped.deltas() {
///     match delta {
///         ObjectDelta::Deleted { .. } => drop(store.delete(popped.key())),
///         changed => drop(changed.object().map(|object| store.update(object.clone()))),
///     }
/// }
/// drop(popped);
/// assert!(queue.has_synced());
///
/// // The map was deleted while the watch was interrupted: the next list does not have it.
/// queue.replace(Vec::<ConfigMap>::new());
/// queue.close();
/// let popped = queue.pop().await.expect("the rest of the queue");
/// assert!(matches!(popped.deltas(), [ObjectDelta::Deleted { is_final: false, .. }]));
/// drop(popped);
/// assert!(queue.pop().await.is_none());
/// # }
/// ```
pub struct DeltaQueue<T, K: Clone + Eq + Hash = ObjectKey> {
    shared: Arc<Shared<T, K>>,
}

struct Shared<T, K> {
    known: Indexer<T, K>,
    state: Mutex<State<T, K>>,
    /// Notified when a key can be popped, and when the queue is closed.
    changed: Notify,
}

struct State<T, K> {
    /// Changes that wait, by key.
    deltas: HashMap<K, Vec<ObjectDelta<T>>, RandomState>,
    /// Keys that can be popped: those in `deltas` that no consumer holds.
    order: VecDeque<K>,
    /// Keys that a consumer holds, with the state of the object after the held changes; `None` if
    /// the object is deleted.
    held: HashMap<K, Option<Arc<T>>, RandomState>,
    /// Number of changes of the first list that were not popped; `None` before the first list.
    initial: Option<usize>,
    is_closed: bool,
}

impl<T, K: Clone + Eq + Hash> Clone for DeltaQueue<T, K> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<T, K: Clone + Eq + Hash> fmt::Debug for DeltaQueue<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeltaQueue")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl<T, K: Clone + Eq + Hash> DeltaQueue<T, K> {
    /// Creates an empty queue. `known` is the store that the consumer updates; it also has the
    /// function that returns the keys.
    pub fn new(known: Indexer<T, K>) -> Self {
        Self {
            shared: Arc::new(Shared {
                known,
                state: Mutex::new(State {
                    deltas: HashMap::default(),
                    order: VecDeque::new(),
                    held: HashMap::default(),
                    initial: None,
                    is_closed: false,
                }),
                changed: Notify::new(),
            }),
        }
    }

    /// Queues the creation of an object.
    pub fn add(&self, object: impl Into<Arc<T>>) {
        let object = object.into();
        let key = self.shared.known.key_of(&object);
        self.change(key, ObjectDelta::Added(object));
    }

    /// Queues a change of an object.
    pub fn update(&self, object: impl Into<Arc<T>>) {
        let object = object.into();
        let key = self.shared.known.key_of(&object);
        self.change(key, ObjectDelta::Updated(object));
    }

    /// Queues the deletion of an object, given in its final state. Does nothing for an object that
    /// neither waits in the queue nor is held by a consumer nor is in the store: its deletion was
    /// found by a list before.
    pub fn delete(&self, object: impl Into<Arc<T>>) {
        let object = object.into();
        let key = self.shared.known.key_of(&object);
        self.delete_key(key, Some(object));
    }

    /// Queues the deletion of the object with this key, whose final state may be unknown; see
    /// [`delete`](Self::delete).
    pub fn delete_key(&self, key: K, last: Option<Arc<T>>) {
        let mut state = self.shared.state.lock();
        state.mark_started();
        let newest = state.newest(&key);
        let is_deleting = matches!(newest, Some(None)) && !state.deltas.contains_key(&key);
        let known = newest.unwrap_or_else(|| self.shared.known.get(&key));
        if is_deleting || (known.is_none() && !state.deltas.contains_key(&key)) {
            return;
        }
        let is_final = last.is_some();
        let last = last.or(known);
        state.push(key, ObjectDelta::Deleted { last, is_final });
        drop(state);
        self.shared.changed.notify_one();
    }

    /// Queues all objects of a list as [`Replaced`](ObjectDelta::Replaced), and a deletion of each
    /// object that the list does not have.
    pub fn replace<I>(&self, objects: I)
    where
        I: IntoIterator<Item: Into<Arc<T>>>,
    {
        let objects = objects.into_iter().map(|object| {
            let object = object.into();
            (self.shared.known.key_of(&object), object)
        });
        let objects: Vec<(K, Arc<T>)> = objects.collect();
        let listed: HashSet<K, RandomState> = objects.iter().map(|(key, _)| key.clone()).collect();
        let mut state = self.shared.state.lock();
        // Lock order: the queue is locked before the store.
        let known = self.shared.known.list().into_iter();
        let known = known.map(|object| (self.shared.known.key_of(&object), Some(object)));
        let mut gone: HashMap<K, Option<Arc<T>>, RandomState> = known.collect();
        let pending = state.held.keys().chain(state.deltas.keys());
        for key in pending.cloned().collect::<Vec<_>>() {
            match state.newest(&key) {
                // The deletion waits, or a consumer handles it.
                Some(None) => drop(gone.remove(&key)),
                Some(newest) => drop(gone.insert(key, newest)),
                None => {}
            }
        }
        gone.retain(|key, _| !listed.contains(key));
        let queued = listed.len().saturating_add(gone.len());
        for (key, object) in objects {
            state.push(key, ObjectDelta::Replaced(object));
        }
        for (key, last) in gone {
            let is_final = false;
            state.push(key, ObjectDelta::Deleted { last, is_final });
        }
        state.initial.get_or_insert(queued);
        drop(state);
        self.shared.notify_all();
    }

    /// Queues each object of the store once more, as [`Sync`](ObjectDelta::Sync), unless a change
    /// of it waits or is held by a consumer.
    pub fn resync(&self) {
        let mut state = self.shared.state.lock();
        for object in self.shared.known.list() {
            let key = self.shared.known.key_of(&object);
            if !state.deltas.contains_key(&key) && !state.held.contains_key(&key) {
                state.push(key, ObjectDelta::Sync(object));
            }
        }
        drop(state);
        self.shared.notify_all();
    }

    /// Waits for a change, and returns all changes of one key. Returns `None` when the queue is
    /// closed and empty.
    ///
    /// # Cancel safety
    /// Nothing is lost if the future is dropped.
    pub async fn pop(&self) -> Option<PoppedDeltas<T, K>> {
        loop {
            let mut changed = pin!(self.shared.changed.notified());
            // Before the check, so that a change after the check is not missed.
            changed.as_mut().enable();
            if let Some(popped) = self.try_pop() {
                return Some(popped);
            }
            if self.shared.state.lock().is_done() {
                return None;
            }
            changed.await;
        }
    }

    /// Returns all changes of one key, or `None` if no change waits.
    pub fn try_pop(&self) -> Option<PoppedDeltas<T, K>> {
        let mut state = self.shared.state.lock();
        let key = state.order.pop_front()?;
        let deltas = state.deltas.remove(&key)?;
        let newest = deltas.last().filter(|delta| !delta.is_deleted());
        let newest = newest.and_then(ObjectDelta::object).cloned();
        state.held.insert(key.clone(), newest);
        if let Some(initial) = &mut state.initial {
            *initial = initial.saturating_sub(1);
        }
        let is_done = state.is_done();
        drop(state);
        if is_done {
            // The other consumers need not wait any longer.
            self.shared.changed.notify_waiters();
        }
        Some(PoppedDeltas {
            queue: self.clone(),
            key,
            deltas,
        })
    }

    /// Reports whether all changes of the first list were popped, or a change was queued without a
    /// list.
    pub fn has_synced(&self) -> bool {
        self.shared.state.lock().initial == Some(0)
    }

    /// Returns the number of keys with changes that wait.
    pub fn len(&self) -> usize {
        self.shared.state.lock().deltas.len()
    }

    /// Reports whether no change waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Ends the queue: changes that wait are still popped, and later ones are ignored.
    pub fn close(&self) {
        self.shared.state.lock().is_closed = true;
        self.shared.changed.notify_waiters();
    }

    fn change(&self, key: K, delta: ObjectDelta<T>) {
        let mut state = self.shared.state.lock();
        state.mark_started();
        state.push(key, delta);
        drop(state);
        self.shared.changed.notify_one();
    }
}

impl<T, K> Shared<T, K> {
    /// Wakes all consumers that wait, and the next one that waits.
    fn notify_all(&self) {
        self.changed.notify_waiters();
        self.changed.notify_one();
    }
}

impl<T, K: Clone + Eq + Hash> State<T, K> {
    /// Reports whether no change waits, and none will.
    fn is_done(&self) -> bool {
        self.is_closed && self.deltas.is_empty()
    }

    /// Records that changes arrived without a list, so that there is no first list to wait for.
    fn mark_started(&mut self) {
        self.initial.get_or_insert(0);
    }

    /// Returns the state of an object after the changes that wait or are held: `None` if there are
    /// none, `Some(None)` if they delete the object.
    fn newest(&self, key: &K) -> Option<Option<Arc<T>>> {
        match self.deltas.get(key).and_then(|deltas| deltas.last()) {
            Some(delta) if delta.is_deleted() => Some(None),
            Some(delta) => Some(delta.object().cloned()),
            None => self.held.get(key).cloned(),
        }
    }

    fn push(&mut self, key: K, delta: ObjectDelta<T>) {
        if self.is_closed {
            return;
        }
        let is_new = !self.deltas.contains_key(&key);
        if is_new && !self.held.contains_key(&key) {
            self.order.push_back(key.clone());
        }
        let deltas = self.deltas.entry(key).or_default();
        match (deltas.last_mut(), delta) {
            // Two deletions in a row: the one with the final state is kept.
            (
                Some(ObjectDelta::Deleted { .. }),
                ObjectDelta::Deleted {
                    is_final: false, ..
                },
            ) => {}
            (Some(before @ ObjectDelta::Deleted { .. }), delta @ ObjectDelta::Deleted { .. }) => {
                *before = delta;
            }
            (_, delta) => deltas.push(delta),
        }
        if deltas.len() > DELTAS_PER_KEY_MAX {
            deltas.remove(0);
        }
    }
}

/// All changes of one object; see [`DeltaQueue::pop`]. While the value exists, later changes of the
/// object wait.
pub struct PoppedDeltas<T, K: Clone + Eq + Hash = ObjectKey> {
    queue: DeltaQueue<T, K>,
    key: K,
    deltas: Vec<ObjectDelta<T>>,
}

impl<T: fmt::Debug, K: fmt::Debug + Clone + Eq + Hash> fmt::Debug for PoppedDeltas<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoppedDeltas")
            .field("key", &self.key)
            .field("deltas", &self.deltas)
            .finish()
    }
}

impl<T, K: Clone + Eq + Hash> PoppedDeltas<T, K> {
    /// Returns the key of the object.
    pub fn key(&self) -> &K {
        &self.key
    }

    /// Returns the changes, the oldest first; at least one.
    pub fn deltas(&self) -> &[ObjectDelta<T>] {
        &self.deltas
    }
}

impl<T, K: Clone + Eq + Hash> Drop for PoppedDeltas<T, K> {
    fn drop(&mut self) {
        let shared = &self.queue.shared;
        let mut state = shared.state.lock();
        state.held.remove(&self.key);
        if state.deltas.contains_key(&self.key) {
            state.order.push_back(self.key.clone());
        }
        drop(state);
        shared.changed.notify_one();
    }
}

impl<T: Object> ReflectorStore<T> for DeltaQueue<T> {
    fn add(&mut self, object: Arc<T>) {
        Self::add(self, object);
    }

    fn update(&mut self, object: Arc<T>) {
        Self::update(self, object);
    }

    fn delete(&mut self, key: &ObjectKey, last: Option<Arc<T>>) {
        self.delete_key(key.clone(), last);
    }

    fn replace(&mut self, objects: Vec<Arc<T>>, _: &str) {
        Self::replace(self, objects);
    }
}

#[cfg(test)]
mod tests;
