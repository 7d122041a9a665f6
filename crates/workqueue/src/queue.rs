//! The queue that workers wait on: [`Engine`] behind a lock, woken without polling.

use std::fmt;
use std::hash::Hash;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::{Backoff, Engine, Merge};

/// A work queue shared by producers and workers; cloning is cheap and gives the same queue.
///
/// It holds each key once, so its bound is the number of distinct keys; adding never waits.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let queue = opkit_workqueue::Queue::<&str, ()>::default();
/// queue.add("robot-one", ());
/// let item = queue.get().await.unwrap();
/// assert_eq!(*item.key(), "robot-one");
/// drop(item); // done
/// queue.shut_down();
/// assert!(queue.get().await.is_none());
/// # }
/// ```
pub struct Queue<K: Eq + Hash + Clone, P: Merge> {
    shared: Arc<Shared<K, P>>,
}

struct Shared<K, P> {
    engine: Mutex<Engine<K, P>>,
    origin: Instant,
    /// One permit for each key that became ready; all waiters at shutdown.
    changed: Notify,
    drained: Notify,
}

impl<K: Eq + Hash + Clone, P: Merge> Clone for Queue<K, P> {
    fn clone(&self) -> Self {
        Queue {
            shared: self.shared.clone(),
        }
    }
}

impl<K: Eq + Hash + Clone, P: Merge> Default for Queue<K, P> {
    fn default() -> Self {
        Queue::new(Backoff::default())
    }
}

impl<K: Eq + Hash + Clone, P: Merge> fmt::Debug for Queue<K, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl<K: Eq + Hash + Clone, P: Merge> Queue<K, P> {
    /// An empty queue whose failing keys wait as `backoff` says.
    pub fn new(backoff: Backoff) -> Self {
        Queue {
            shared: Arc::new(Shared {
                engine: Mutex::new(Engine::new(backoff)),
                origin: Instant::now(),
                changed: Notify::new(),
                drained: Notify::new(),
            }),
        }
    }

    /// Marks `key` as needing work now; see [`Engine::add`].
    pub fn add(&self, key: K, payload: P) {
        self.shared
            .with(|engine, now| engine.add(now, key, payload));
        self.shared.changed.notify_one();
    }

    /// Marks `key` as needing work in `delay`; see [`Engine::add_after`].
    pub fn add_after(&self, key: K, payload: P, delay: Duration) {
        self.shared
            .with(|engine, now| engine.add_after(now, key, payload, delay));
        self.shared.changed.notify_one();
    }

    /// Counts a failure of `key` and queues it after its backoff; see [`Engine::add_rate_limited`].
    pub fn add_rate_limited(&self, key: K, payload: P) -> Duration {
        let delay = self
            .shared
            .with(|engine, now| engine.add_rate_limited(now, key, payload));
        self.shared.changed.notify_one();
        delay
    }

    /// Marks `key` as needing work as `options` say; answers after how long it is ready.
    pub fn add_with(&self, key: K, payload: P, options: AddOptions) -> Duration {
        if options.rate_limited {
            return self.add_rate_limited(key, payload);
        }
        self.add_after(key, payload, options.after);
        options.after
    }

    /// Forgets the failures of `key`.
    pub fn forget(&self, key: &K) {
        self.shared.with(|engine, _| engine.forget(key));
    }

    /// How many failures of `key` have been counted since it was last forgotten.
    pub fn num_requeues(&self, key: &K) -> u32 {
        self.shared.with(|engine, _| engine.num_requeues(key))
    }

    /// How many keys can be handed out now.
    pub fn len(&self) -> usize {
        self.shared.with(|engine, _| engine.len())
    }

    /// Whether no key can be handed out now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Waits for a key to work on; `None` once the queue is shut down and empty. Dropping the
    /// [`Item`] ends the work on its key, also when the worker panics.
    ///
    /// # Cancel safety
    /// Nothing is taken from the queue before the future completes.
    pub async fn get(&self) -> Option<Item<K, P>> {
        loop {
            // Registered before the look into the engine, so that no wake-up is missed between.
            let mut changed = pin!(self.shared.changed.notified());
            changed.as_mut().enable();
            let next = {
                let mut engine = self.shared.engine.lock();
                if let Some((key, payload)) = engine.get(self.shared.now()) {
                    if !engine.is_empty() {
                        // One permit may have stood for several keys.
                        self.shared.changed.notify_one();
                    }
                    return Some(Item {
                        queue: self.clone(),
                        key,
                        payload,
                        priority: 0,
                    });
                }
                if engine.is_shutting_down() && engine.is_drained() {
                    return None;
                }
                engine.next_ready_at()
            };
            match next {
                Some(at) => {
                    tokio::select! {
                        () = changed => {}
                        () = tokio::time::sleep_until(self.shared.origin + at) => {}
                    }
                }
                None => changed.await,
            }
        }
    }

    /// Stops accepting keys; what is ready still comes out of [`get`](Queue::get).
    pub fn shut_down(&self) {
        self.shared.with(|engine, _| engine.shut_down());
        self.shared.changed.notify_waiters();
        self.shared.wake_if_drained();
    }

    /// Waits until the queue was shut down and all its keys have been worked on.
    ///
    /// # Cancel safety
    /// May be dropped and called again at any time.
    pub async fn drained(&self) {
        loop {
            let mut drained = pin!(self.shared.drained.notified());
            drained.as_mut().enable();
            if self.shared.with(|engine, _| engine.is_drained()) {
                return;
            }
            drained.await;
        }
    }
}

impl<K: Eq + Hash + Clone, P: Merge> Shared<K, P> {
    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    fn with<T>(&self, f: impl FnOnce(&mut Engine<K, P>, Duration) -> T) -> T {
        f(&mut self.engine.lock(), self.now())
    }

    fn wake_if_drained(&self) {
        if self.with(|engine, _| engine.is_drained()) {
            self.drained.notify_waiters();
            self.changed.notify_waiters();
        }
    }
}

/// A key that a worker holds; dropping it says that the work is done.
pub struct Item<K: Eq + Hash + Clone, P: Merge> {
    queue: Queue<K, P>,
    key: K,
    payload: P,
    priority: i32,
}

impl<K: Eq + Hash + Clone, P: Merge> Item<K, P> {
    /// The key to work on.
    pub fn key(&self) -> &K {
        &self.key
    }

    /// The priority that it was queued with.
    pub fn priority(&self) -> i32 {
        self.priority
    }

    /// Puts the key back, as if it had not been taken.
    pub fn requeue_unworked(self)
    where
        P: Clone,
    {
        self.queue.add(self.key.clone(), self.payload.clone());
    }

    /// What the triggers of this key merged into.
    pub fn payload(&self) -> &P {
        &self.payload
    }
}

impl<K: Eq + Hash + Clone + fmt::Debug, P: Merge> fmt::Debug for Item<K, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Item")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl<K: Eq + Hash + Clone, P: Merge> Drop for Item<K, P> {
    fn drop(&mut self) {
        self.queue
            .shared
            .with(|engine, now| engine.done(now, &self.key));
        self.queue.shared.changed.notify_one();
        self.queue.shared.wake_if_drained();
    }
}

#[cfg(test)]
mod tests;

/// How a key is added; see [`Queue::add_with`].
#[derive(Debug, Clone, Default)]
pub struct AddOptions {
    /// Higher comes first.
    pub priority: Option<i32>,
    /// After how long it is ready.
    pub after: Duration,
    /// Whether this is a failure of the key, which waits for its backoff.
    pub rate_limited: bool,
}
