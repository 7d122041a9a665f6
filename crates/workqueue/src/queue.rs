//! The queue that workers wait on: [`Engine`] behind a lock, woken without polling.
//!
//! A worker that finds nothing sleeps. One of those that sleep, the timekeeper, also waits for the
//! next delayed key, so that many workers need one timer. Whoever adds wakes somebody only if
//! somebody sleeps, and the one that fell asleep last, which leaves the timekeeper alone if it can.

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
use crate::metrics::Source;
use crate::{AddOptions, Engine, Merge, QueueOptions, Snapshot};

/// A deduplicating work queue that any number of producers and workers share; cloning it shares it.
///
/// What waits is bounded by the number of distinct keys; adding never waits.
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
    state: Mutex<State<K, P>>,
    hasher: RandomState,
    origin: Instant,
    /// How many workers sleep. Grows under the lock only, so that whoever holds it misses none.
    sleepers: AtomicUsize,
    /// For one sleeper: a key is ready, or there is a time to keep. For all: the queue shuts down.
    changed: Notify,
    /// For the timekeeper: there is an earlier time.
    earlier: Notify,
    /// For those that wait for the drain.
    drained: Notify,
}

struct State<K, P> {
    engine: Engine<K, P>,
    /// The time that the timekeeper waits for.
    kept: Option<Duration>,
    /// Whether the queue waits for work in progress before it ends.
    draining: bool,
}

impl<K: Eq + Hash + Clone, P: Merge> Clone for Queue<K, P> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
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
    /// An empty queue, which its metrics show from now on.
    pub fn new(options: QueueOptions<K>) -> Self {
        let metrics = options.metrics.clone();
        let engine = Engine::new(options);
        let shared = Arc::new(Shared {
            hasher: engine.hasher(),
            state: Mutex::new(State {
                engine,
                kept: None,
                draining: false,
            }),
            origin: Instant::now(),
            sleepers: AtomicUsize::new(0),
            changed: Notify::new(),
            earlier: Notify::new(),
            drained: Notify::new(),
        });
        if let Some(metrics) = metrics {
            let source: Arc<dyn Source> = shared.clone();
            metrics.observe(Arc::downgrade(&source));
        }
        Self { shared }
    }
}

impl<K: Eq + Hash + Clone, P: Merge> Queue<K, P> {
    /// Marks `key` as needing work now, with priority zero; see [`Engine::add_with`].
    pub fn add(&self, key: K, payload: P) {
        self.add_with(key, payload, AddOptions::default());
    }

    /// Marks `key` as needing work in `delay`; see [`Engine::add_with`].
    pub fn add_after(&self, key: K, payload: P, delay: Duration) {
        let options = AddOptions {
            after: delay,
            ..AddOptions::default()
        };
        self.add_with(key, payload, options);
    }

    /// Counts a failure of `key` and queues it after its delay, which is returned.
    pub fn add_rate_limited(&self, key: K, payload: P) -> Duration {
        let options = AddOptions {
            rate_limited: true,
            ..AddOptions::default()
        };
        self.add_with(key, payload, options)
    }

    /// Marks `key` as needing work, and answers the delay until then; see [`Engine::add_with`].
    pub fn add_with(&self, key: K, payload: P, add: AddOptions) -> Duration {
        let hash = self.shared.hasher.hash_one(&key);
        self.shared
            .change(|engine, clock| engine.add_hashed(clock, hash, key, payload, add))
    }

    /// Forgets the failures of `key`.
    pub fn forget(&self, key: &K) {
        self.shared.state.lock().engine.forget(key);
    }

    /// How many failures of `key` have been counted since it was last forgotten.
    pub fn num_requeues(&self, key: &K) -> u32 {
        self.shared.state.lock().engine.num_requeues(key)
    }

    /// How many keys can be handed out now.
    pub fn len(&self) -> usize {
        let now = self.shared.now();
        let mut state = self.shared.state.lock();
        state.engine.advance(now);
        state.engine.len()
    }

    /// Whether no key can be handed out now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is in the queue, at most `limit` keys of it; see [`Engine::snapshot`].
    pub fn snapshot(&self, limit: usize) -> Snapshot<K> {
        let now = self.shared.now();
        self.shared.state.lock().engine.snapshot(now, limit)
    }

    /// Takes a key to work on, if one is ready now; otherwise as [`get`](Queue::get).
    pub fn try_get(&self) -> Option<Item<K, P>> {
        let (work, now) = self.shared.take(false)?;
        Some(Item::new(self.shared.clone(), work, now))
    }

    /// Waits for a key to work on. `None` once the queue is shut down and empty; while it is
    /// drained, once the last work is done. Dropping the [`Item`] ends the work on its key, also
    /// when the worker panics.
    ///
    /// # Cancel safety
    /// Nothing is taken from the queue before the future completes.
    pub async fn get(&self) -> Option<Item<K, P>> {
        let shared = &*self.shared;
        let mut was_keeper = false;
        loop {
            if let Some((work, now)) = shared.take(was_keeper) {
                return Some(Item::new(self.shared.clone(), work, now));
            }
            let mut changed = pin!(shared.changed.notified());
            let (mut asleep, until) = {
                let mut state = shared.state.lock();
                if !state.engine.is_empty() {
                    was_keeper = false;
                    continue;
                }
                if state.is_over() {
                    return None;
                }
                // Under the lock, so that nobody adds between the look and the sleep.
                changed.as_mut().enable();
                let mut asleep = Asleep::new(shared);
                let until = match state.kept {
                    Some(_) => None,
                    None => state.engine.next_ready_at(),
                };
                if until.is_some() {
                    state.kept = until;
                    asleep.keeper = true;
                }
                (asleep, until)
            };
            match until {
                Some(at) => {
                    tokio::select! {
                        () = changed => {}
                        () = shared.earlier.notified() => {}
                        () = tokio::time::sleep_until(shared.origin + at) => {}
                    }
                }
                None => changed.await,
            }
            was_keeper = std::mem::take(&mut asleep.keeper);
        }
    }

    /// Stops accepting keys and drops the delayed ones. What is ready still comes out of
    /// [`get`](Queue::get), and so does a key that was marked while in work. Does not wait, and
    /// lets those go on that wait for [`shut_down_with_drain`](Queue::shut_down_with_drain).
    pub fn shut_down(&self) {
        let mut state = self.shared.state.lock();
        state.engine.shut_down();
        state.draining = false;
        drop(state);
        self.shared.changed.notify_waiters();
        self.shared.drained.notify_waiters();
    }

    /// Stops accepting keys as [`shut_down`](Queue::shut_down) does, and waits until all that was
    /// handed out is done and nothing is left to hand out.
    ///
    /// # Cancel safety
    /// May be dropped at any time; the queue stays shut down, and workers go on draining it.
    pub async fn shut_down_with_drain(&self) {
        {
            let mut state = self.shared.state.lock();
            state.engine.shut_down();
            state.draining = true;
        }
        self.shared.changed.notify_waiters();
        loop {
            let mut drained = pin!(self.shared.drained.notified());
            {
                let state = self.shared.state.lock();
                if !state.draining || state.engine.is_drained() {
                    return;
                }
                drained.as_mut().enable();
            }
            drained.await;
        }
    }

    /// Whether the queue was shut down.
    pub fn is_shutting_down(&self) -> bool {
        self.shared.state.lock().engine.is_shutting_down()
    }
}

impl<K: Eq + Hash + Clone, P: Merge> State<K, P> {
    /// Whether no key will come out any more, now that none is ready.
    fn is_over(&self) -> bool {
        match self.draining {
            true => self.engine.is_drained(),
            false => self.engine.is_shutting_down(),
        }
    }
}

impl<K, P> Shared<K, P> {
    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    fn is_anybody_asleep(&self) -> bool {
        self.sleepers.load(Ordering::Relaxed) > 0
    }
}

impl<K: Eq + Hash + Clone, P: Merge> Shared<K, P> {
    /// Takes a key if one is ready. Whoever kept the time no longer does.
    fn take(&self, was_keeper: bool) -> Option<(Work<K, P>, Instant)> {
        let now = Instant::now();
        let mut state = self.state.lock();
        if was_keeper {
            state.kept = None;
        }
        let work = state.engine.get(now - self.origin)?;
        // One wake-up may have stood for several keys, and somebody has to keep the time.
        let orphaned = state.kept.is_none() && state.engine.next_ready_at().is_some();
        let wake = (orphaned || !state.engine.is_empty()) && self.is_anybody_asleep();
        drop(state);
        if wake {
            self.changed.notify_last();
        }
        Some((work, now))
    }

    /// Changes the engine and wakes whom that concerns.
    fn change<T>(&self, change: impl FnOnce(&mut Engine<K, P>, &dyn Fn() -> Duration) -> T) -> T {
        let mut state = self.state.lock();
        let before = state.engine.len();
        let result = change(&mut state.engine, &|| self.now());
        let is_drained = state.draining && state.engine.is_drained();
        let (mut wake, mut earlier) = (false, false);
        if self.is_anybody_asleep() {
            let next = state.engine.next_ready_at();
            earlier = state.kept.zip(next).is_some_and(|(kept, next)| next < kept);
            let orphaned = state.kept.is_none() && next.is_some();
            wake = state.engine.len() > before || orphaned;
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

impl<K: Eq + Hash + Clone + Send, P: Merge + Send> Source for Shared<K, P> {
    fn stats(&self) -> Stats {
        let now = self.now();
        let mut state = self.state.lock();
        state.engine.advance(now);
        state.engine.stats(now)
    }
}

/// A worker that sleeps; dropped when it wakes or is given up.
struct Asleep<'a, K: Eq + Hash + Clone, P: Merge> {
    shared: &'a Shared<K, P>,
    keeper: bool,
}

impl<'a, K: Eq + Hash + Clone, P: Merge> Asleep<'a, K, P> {
    /// To be called under the lock.
    fn new(shared: &'a Shared<K, P>) -> Self {
        shared.sleepers.fetch_add(1, Ordering::Relaxed);
        Asleep {
            shared,
            keeper: false,
        }
    }
}

impl<K: Eq + Hash + Clone, P: Merge> Drop for Asleep<'_, K, P> {
    fn drop(&mut self) {
        self.shared.sleepers.fetch_sub(1, Ordering::Relaxed);
        if self.keeper {
            // Given up while it kept the time: somebody else has to.
            self.shared.state.lock().kept = None;
            self.shared.change(|_, _| ());
        }
    }
}

#[cfg(test)]
mod tests;
