//! The queue's state machine: no clock, no tasks, no locks.
//!
//! Time comes in as a [`Duration`] since an origin of the caller's choice. One key has at most one
//! entry that waits, ready or delayed: a second `add` merges its payload and the earlier ready
//! time wins, as in controller-runtime's priority queue. A key in work (handed out and not yet
//! [`done`](Engine::done)) is queued again once that ends.
//!
//! Not here, deliberately: priorities and fairness (a later layer over the ready queue).

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use crate::{Backoff, Merge};

/// The longest delay: a year, which is for ever, and which every clock can add.
const FOREVER: Duration = Duration::from_secs(365 * 24 * 3600);

/// A deduplicating FIFO of keys with delays and per-key backoff.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// let mut queue = opkit_workqueue::Engine::<&str, ()>::default();
/// let now = Duration::ZERO;
/// queue.add(now, "robot-one", ());
/// queue.add(now, "robot-one", ());
/// assert_eq!(queue.get(now), Some(("robot-one", ())));
/// assert_eq!(queue.get(now), None);
/// queue.done(now, &"robot-one");
/// ```
#[derive(Debug)]
pub struct Engine<K, P> {
    /// Keys that may be handed out now, oldest first. Each has an entry in `waiting`.
    ready: VecDeque<K>,
    /// Payloads of keys that are in `ready`, or in work and to be queued again.
    waiting: HashMap<K, P>,
    /// Keys that become ready later, by time and then by arrival.
    timers: BTreeMap<(Duration, u64), K>,
    delayed: HashMap<K, Delayed<P>>,
    in_work: HashSet<K>,
    failures: HashMap<K, u32>,
    arrivals: u64,
    backoff: Backoff,
    shutting_down: bool,
}

#[derive(Debug)]
struct Delayed<P> {
    timer: (Duration, u64),
    payload: P,
}

impl<K, P> Default for Engine<K, P> {
    fn default() -> Self {
        Engine {
            ready: VecDeque::new(),
            waiting: HashMap::new(),
            timers: BTreeMap::new(),
            delayed: HashMap::new(),
            in_work: HashSet::new(),
            failures: HashMap::new(),
            arrivals: 0,
            backoff: Backoff::default(),
            shutting_down: false,
        }
    }
}

impl<K: Eq + Hash + Clone, P: Merge> Engine<K, P> {
    /// An empty queue whose failing keys wait as `backoff` says.
    pub fn new(backoff: Backoff) -> Self {
        Engine {
            backoff,
            ..Engine::default()
        }
    }

    /// Marks `key` as needing work now. A key that already waits keeps its place and merges the
    /// payloads; a delayed key becomes ready; a key in work is queued again once that ends.
    /// Ignored after [`shut_down`](Engine::shut_down).
    pub fn add(&mut self, now: Duration, key: K, payload: P) {
        if self.shutting_down {
            return;
        }
        self.promote(now);
        // An earlier delayed payload arrived first, so it is the one merged into.
        let payload = match self.take_delayed(&key) {
            Some(mut earlier) => {
                earlier.merge(payload);
                earlier
            }
            None => payload,
        };
        self.add_ready(key, payload);
    }

    /// Marks `key` as needing work in `delay`. Of two delays of one key the earlier wins; a key
    /// that is ready already stays so and merges the payload. A zero delay is [`add`](Engine::add); more than a year is a
    /// year.
    pub fn add_after(&mut self, now: Duration, key: K, payload: P, delay: Duration) {
        if delay.is_zero() {
            return self.add(now, key, payload);
        }
        if self.shutting_down {
            return;
        }
        self.promote(now);
        if let Some(waiting) = self.waiting.get_mut(&key) {
            waiting.merge(payload);
            return;
        }
        let ready_at = now.saturating_add(delay.min(FOREVER));
        let (ready_at, payload) = match self.delayed.remove(&key) {
            Some(mut earlier) => {
                self.timers.remove(&earlier.timer);
                earlier.payload.merge(payload);
                (earlier.timer.0.min(ready_at), earlier.payload)
            }
            None => (ready_at, payload),
        };
        self.arrivals = self.arrivals.wrapping_add(1);
        let timer = (ready_at, self.arrivals);
        self.timers.insert(timer, key.clone());
        self.delayed.insert(key, Delayed { timer, payload });
    }

    /// Counts a failure of `key` and queues it again after its backoff, which is returned.
    pub fn add_rate_limited(&mut self, now: Duration, key: K, payload: P) -> Duration {
        let failures = self.failures.entry(key.clone()).or_default();
        let delay = self.backoff.delay(*failures);
        *failures = failures.saturating_add(1);
        self.add_after(now, key, payload, delay);
        delay
    }

    /// Forgets the failures of `key`: its next failure waits the shortest delay.
    pub fn forget(&mut self, key: &K) {
        self.failures.remove(key);
    }

    /// How many failures of `key` have been counted since it was last forgotten.
    pub fn num_requeues(&self, key: &K) -> u32 {
        self.failures.get(key).copied().unwrap_or(0)
    }

    /// Hands out the key that has been ready longest. The caller must say [`done`](Engine::done).
    pub fn get(&mut self, now: Duration) -> Option<(K, P)> {
        self.promote(now);
        let key = self.ready.pop_front()?;
        let Some(payload) = self.waiting.remove(&key) else {
            debug_assert!(false, "a ready key has a payload");
            return None;
        };
        self.in_work.insert(key.clone());
        Some((key, payload))
    }

    /// Ends the work on `key`; if it was marked meanwhile, it is ready again.
    pub fn done(&mut self, now: Duration, key: &K) {
        self.promote(now);
        if self.in_work.remove(key) && self.waiting.contains_key(key) {
            self.ready.push_back(key.clone());
        }
    }

    /// When the next delayed key becomes ready.
    pub fn next_ready_at(&self) -> Option<Duration> {
        self.timers.keys().next().map(|(at, _)| *at)
    }

    /// How many keys can be handed out; delayed keys and keys in work are not counted.
    pub fn len(&self) -> usize {
        self.ready.len()
    }

    /// Whether no key can be handed out.
    pub fn is_empty(&self) -> bool {
        self.ready.is_empty()
    }

    /// Stops accepting keys and drops the delayed ones. What is ready still comes out, and so does
    /// a key that was marked while in work.
    pub fn shut_down(&mut self) {
        self.shutting_down = true;
        self.timers.clear();
        self.delayed.clear();
    }

    /// Whether [`shut_down`](Engine::shut_down) was called.
    pub fn is_shutting_down(&self) -> bool {
        self.shutting_down
    }

    /// Whether the queue was shut down and every key that was in it has been worked on.
    pub fn is_drained(&self) -> bool {
        self.shutting_down && self.waiting.is_empty() && self.in_work.is_empty()
    }

    fn add_ready(&mut self, key: K, payload: P) {
        if let Some(waiting) = self.waiting.get_mut(&key) {
            waiting.merge(payload);
            return;
        }
        if !self.in_work.contains(&key) {
            self.ready.push_back(key.clone());
        }
        self.waiting.insert(key, payload);
    }

    /// Makes the delayed keys whose time has come ready, in the order of their times.
    fn promote(&mut self, now: Duration) {
        while let Some(entry) = self.timers.first_entry()
            && entry.key().0 <= now
        {
            let key = entry.remove();
            if let Some(delayed) = self.delayed.remove(&key) {
                self.add_ready(key, delayed.payload);
            }
        }
    }

    fn take_delayed(&mut self, key: &K) -> Option<P> {
        let delayed = self.delayed.remove(key)?;
        self.timers.remove(&delayed.timer);
        Some(delayed.payload)
    }
}

#[cfg(test)]
mod tests;
