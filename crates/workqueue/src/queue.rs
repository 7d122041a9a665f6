//! Queue on which workers wait: [`Engine`] behind a lock, with wake-ups instead of polling.
//!
//! A worker that finds no ready key sleeps. One of the sleeping workers, the timekeeper, also waits
//! for the next delayed key, so that many workers need only one timer. Adding a key wakes a worker
//! only if one sleeps. The worker that fell asleep last is woken, which usually is not the
//! timekeeper.

mod item;

use std::fmt;
use std::hash::{BuildHasher, Hash};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use foldhash::fast::RandomState;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

pub use self::item::Item;
use crate::engine::{Stats, Work};
use crate::metrics::StatsSource;
use crate::{AddOptions, Engine, Merge, QueueOptions, Snapshot};

/// Deduplicating work queue that any number of producers and workers share. Clones share the same
/// queue.
///
/// The number of waiting entries is bounded by the number of distinct keys; adding never waits.
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
    core: Arc<QueueCore<K, P>>,
}

struct QueueCore<K, P> {
    state: Mutex<State<K, P>>,
    hasher: RandomState,
    origin: Instant,
    /// Number of sleeping workers. Incremented only under the lock, so that the holder of the lock
    /// sees every sleeper.
    sleepers: AtomicUsize,
    /// Notification that wakes one sleeping worker if a key is ready or a timekeeper is needed.
    /// Wakes all sleeping workers if the queue shuts down.
    changed: Notify,
    /// Notification that wakes the timekeeper if a delayed key becomes ready earlier than the key
    /// for which the timekeeper waits.
    earlier: Notify,
    /// Notification that wakes the tasks that wait in `shut_down_with_drain`.
    drained: Notify,
}

struct State<K, P> {
    engine: Engine<K, P>,
    /// Time since the origin at which the timekeeper (the worker that waits for the next delayed
    /// key) wakes up; `None` if there is no timekeeper.
    timekeeper_until: Option<Duration>,
    /// Whether the queue waits for work in progress before it ends.
    draining: bool,
}

impl<K: Eq + Hash + Clone, P: Merge> Clone for Queue<K, P> {
    fn clone(&self) -> Self {
        Self {
            core: self.core.clone(),
        }
    }
}

impl<K, P> Default for Queue<K, P>
where
    K: Eq + Hash + Clone + Send + 'static,
    P: Merge + Send + 'static,
{
    fn default() -> Self {
        Self::new(QueueOptions::default())
    }
}

impl<K: Eq + Hash + Clone, P: Merge> fmt::Debug for Queue<K, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl<K, P> Queue<K, P>
where
    K: Eq + Hash + Clone + Send + 'static,
    P: Merge + Send + 'static,
{
    /// Creates an empty queue. The metrics in `options` include the queue from now on.
    pub fn new(options: QueueOptions<K>) -> Self {
        let metrics = options.metrics.clone();
        let engine = Engine::new(options);
        let core = Arc::new(QueueCore {
            hasher: engine.hasher(),
            state: Mutex::new(State {
                engine,
                timekeeper_until: None,
                draining: false,
            }),
            origin: Instant::now(),
            sleepers: AtomicUsize::new(0),
            changed: Notify::new(),
            earlier: Notify::new(),
            drained: Notify::new(),
        });
        if let Some(metrics) = metrics {
            let source: Arc<dyn StatsSource> = core.clone();
            metrics.observe(Arc::downgrade(&source));
        }
        Self { core }
    }
}

impl<K: Eq + Hash + Clone, P: Merge> Queue<K, P> {
    /// Adds `key` to be worked on now, with priority zero; see [`Engine::add_with`].
    pub fn add(&self, key: K, payload: P) {
        self.add_with(key, payload, AddOptions::default());
    }

    /// Adds `key` to be worked on after `delay`; see [`Engine::add_with`].
    pub fn add_after(&self, key: K, payload: P, delay: Duration) {
        let options = AddOptions {
            after: delay,
            ..AddOptions::default()
        };
        self.add_with(key, payload, options);
    }

    /// Counts a failure of `key`, and adds the key again after the delay of the rate limiter.
    /// Returns that delay.
    pub fn add_rate_limited(&self, key: K, payload: P) -> Duration {
        let options = AddOptions {
            rate_limited: true,
            ..AddOptions::default()
        };
        self.add_with(key, payload, options)
    }

    /// Adds `key` to be worked on, and returns the delay until the key is ready; see
    /// [`Engine::add_with`].
    pub fn add_with(&self, key: K, payload: P, add: AddOptions) -> Duration {
        let hash = self.core.hasher.hash_one(&key);
        self.core
            .change(|engine, clock| engine.add_hashed(clock, hash, key, payload, add))
    }

    /// Forgets the failures of `key`.
    pub fn forget(&self, key: &K) {
        self.core.state.lock().engine.forget(key);
    }

    /// Counts that the work on `key` has failed, and returns how often it has failed in a row; see
    /// [`Engine::fail`].
    pub fn fail(&self, key: &K) -> u32 {
        self.core.state.lock().engine.fail(key)
    }

    /// Ends the row of failures of `key`; see [`Engine::succeed`].
    pub fn succeed(&self, key: &K) {
        self.core.state.lock().engine.succeed(key);
    }

    /// Returns the number of failures of `key` since the failures were last forgotten.
    pub fn num_requeues(&self, key: &K) -> u32 {
        self.core.state.lock().engine.num_requeues(key)
    }

    /// Returns the number of keys that can be handed out now.
    pub fn len(&self) -> usize {
        let now = self.core.now();
        let mut state = self.core.state.lock();
        state.engine.advance(now);
        state.engine.len()
    }

    /// Reports whether no key can be handed out now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the contents of the queue, with at most `limit` keys; see [`Engine::snapshot`].
    pub fn snapshot(&self, limit: usize) -> Snapshot<K> {
        let now = self.core.now();
        self.core.state.lock().engine.snapshot(now, limit)
    }

    /// Takes a key to work on, or returns `None` if no key is ready now; see [`get`](Queue::get).
    pub fn try_get(&self) -> Option<Item<K, P>> {
        let (work, now) = self.core.take(false)?;
        Some(Item::new(self.core.clone(), work, now))
    }

    /// Waits for a key to work on. Returns `None` once the queue is shut down and empty. During a
    /// [`shut_down_with_drain`](Queue::shut_down_with_drain), returns `None` only once the last
    /// work is done. Dropping the [`Item`] ends the work on its key, even when the worker panics.
    ///
    /// # Cancel safety
    /// Nothing is taken from the queue before the future completes.
    pub async fn get(&self) -> Option<Item<K, P>> {
        let core = &*self.core;
        let mut was_timekeeper = false;
        loop {
            if let Some((work, now)) = core.take(was_timekeeper) {
                return Some(Item::new(self.core.clone(), work, now));
            }
            let mut changed = pin!(core.changed.notified());
            let (mut guard, until) = {
                let mut state = core.state.lock();
                if !state.engine.is_empty() {
                    was_timekeeper = false;
                    continue;
                }
                if state.is_over() {
                    return None;
                }
                // Under the lock, so that no key is added between the check and the sleep.
                changed.as_mut().enable();
                let mut guard = SleepGuard::new(core);
                let until = match state.timekeeper_until {
                    Some(_) => None,
                    None => state.engine.next_ready_at(),
                };
                if until.is_some() {
                    state.timekeeper_until = until;
                    guard.is_timekeeper = true;
                }
                (guard, until)
            };
            match until {
                Some(at) => {
                    tokio::select! {
                        () = changed => {}
                        () = core.earlier.notified() => {}
                        () = tokio::time::sleep_until(core.origin + at) => {}
                    }
                }
                None => changed.await,
            }
            was_timekeeper = std::mem::take(&mut guard.is_timekeeper);
        }
    }

    /// Stops accepting keys and drops the delayed keys. Ready keys can still be taken with
    /// [`get`](Queue::get), and so can keys that were added while in work. Does not wait, and ends
    /// a running [`shut_down_with_drain`](Queue::shut_down_with_drain).
    pub fn shut_down(&self) {
        let mut state = self.core.state.lock();
        state.engine.shut_down();
        state.draining = false;
        drop(state);
        self.core.changed.notify_waiters();
        self.core.drained.notify_waiters();
    }

    /// Stops accepting keys as [`shut_down`](Queue::shut_down) does, and waits until all keys have
    /// been handed out and the work on them is done.
    ///
    /// # Cancel safety
    /// Safe to drop at any time; the queue stays shut down, and workers continue to drain it.
    pub async fn shut_down_with_drain(&self) {
        {
            let mut state = self.core.state.lock();
            state.engine.shut_down();
            state.draining = true;
        }
        self.core.changed.notify_waiters();
        loop {
            let mut drained = pin!(self.core.drained.notified());
            {
                let state = self.core.state.lock();
                if !state.draining || state.engine.is_drained() {
                    return;
                }
                drained.as_mut().enable();
            }
            drained.await;
        }
    }

    /// Reports whether the queue was shut down.
    pub fn is_shutting_down(&self) -> bool {
        self.core.state.lock().engine.is_shutting_down()
    }
}

impl<K: Eq + Hash + Clone, P: Merge> State<K, P> {
    /// Reports whether a worker that finds no ready key should stop. That is the case once the
    /// queue is shut down or, during a drain, once all work is done.
    fn is_over(&self) -> bool {
        match self.draining {
            true => self.engine.is_drained(),
            false => self.engine.is_shutting_down(),
        }
    }
}

impl<K, P> QueueCore<K, P> {
    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    fn has_sleepers(&self) -> bool {
        self.sleepers.load(Ordering::Relaxed) > 0
    }
}

impl<K: Eq + Hash + Clone, P: Merge> QueueCore<K, P> {
    /// Takes a key if one is ready. `was_timekeeper` is whether the caller was the timekeeper, the
    /// worker that waits for the next delayed key. The caller is no longer the timekeeper
    /// afterwards.
    fn take(&self, was_timekeeper: bool) -> Option<(Work<K, P>, Instant)> {
        let now = Instant::now();
        let mut state = self.state.lock();
        if was_timekeeper {
            state.timekeeper_until = None;
        }
        let work = state.engine.get(now - self.origin)?;
        // One wake-up may cover several keys, and another worker has to become the timekeeper.
        let needs_timekeeper =
            state.timekeeper_until.is_none() && state.engine.next_ready_at().is_some();
        let wake = (needs_timekeeper || !state.engine.is_empty()) && self.has_sleepers();
        drop(state);
        if wake {
            self.changed.notify_last();
        }
        Some((work, now))
    }

    /// Calls `change` with the engine, and wakes the workers that are affected by the change.
    fn change<T>(&self, change: impl FnOnce(&mut Engine<K, P>, &dyn Fn() -> Duration) -> T) -> T {
        let mut state = self.state.lock();
        let before = state.engine.len();
        let result = change(&mut state.engine, &|| self.now());
        let is_drained = state.draining && state.engine.is_drained();
        let (mut wake, mut earlier) = (false, false);
        if self.has_sleepers() {
            let next = state.engine.next_ready_at();
            earlier = state
                .timekeeper_until
                .zip(next)
                .is_some_and(|(until, next)| next < until);
            let needs_timekeeper = state.timekeeper_until.is_none() && next.is_some();
            wake = state.engine.len() > before || needs_timekeeper;
        }
        drop(state);
        if wake {
            self.changed.notify_last();
        }
        if earlier {
            self.earlier.notify_one();
        }
        if is_drained {
            self.changed.notify_waiters();
            self.drained.notify_waiters();
        }
        result
    }
}

impl<K: Eq + Hash + Clone + Send, P: Merge + Send> StatsSource for QueueCore<K, P> {
    fn stats(&self) -> Stats {
        let now = self.now();
        let mut state = self.state.lock();
        state.engine.advance(now);
        state.engine.stats(now)
    }
}

/// Guard of a sleeping worker; dropped when the worker wakes or its future is dropped.
struct SleepGuard<'a, K: Eq + Hash + Clone, P: Merge> {
    core: &'a QueueCore<K, P>,
    is_timekeeper: bool,
}

impl<'a, K: Eq + Hash + Clone, P: Merge> SleepGuard<'a, K, P> {
    /// Counts a sleeping worker. Must be called while the lock of the queue is held.
    fn new(core: &'a QueueCore<K, P>) -> Self {
        core.sleepers.fetch_add(1, Ordering::Relaxed);
        SleepGuard {
            core,
            is_timekeeper: false,
        }
    }
}

impl<K: Eq + Hash + Clone, P: Merge> Drop for SleepGuard<'_, K, P> {
    fn drop(&mut self) {
        self.core.sleepers.fetch_sub(1, Ordering::Relaxed);
        if self.is_timekeeper {
            // Dropped while it was the timekeeper: another worker has to take over.
            self.core.state.lock().timekeeper_until = None;
            self.core.change(|_, _| ());
        }
    }
}

#[cfg(test)]
mod tests;
