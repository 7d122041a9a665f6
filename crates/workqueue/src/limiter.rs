//! Rate limiters, which determine the delays of failed keys. The limiters are those of client-go,
//! as plain structs that get the time as an argument.

use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use hashbrown::HashMap;

use opkit_random::Random;

/// Number of keys above which the memory of a limiter is freed when all keys are forgotten.
const SHRINK_ABOVE: usize = 1024;

/// Rate limiter, which counts the failures of each key and determines the delay before the next
/// attempt.
///
/// # Examples
/// A custom limiter:
/// ```
/// use opkit_workqueue::RateLimiter;
/// use std::time::Duration;
///
/// struct Fixed;
///
/// impl<K> RateLimiter<K> for Fixed {
///     fn when(&mut self, _: Duration, _: &K) -> Duration {
///         Duration::from_secs(30)
///     }
///     fn forget(&mut self, _: &K) {}
///     fn num_requeues(&self, _: &K) -> u32 {
///         0
///     }
/// }
/// ```
pub trait RateLimiter<K>: Send {
    /// Counts a failure of `key` and returns the delay before its next attempt. `now` is the time
    /// since a fixed origin.
    fn when(&mut self, now: Duration, key: &K) -> Duration;

    /// Forgets the failures of `key`.
    fn forget(&mut self, key: &K);

    /// Returns the number of failures of `key` since the failures were last forgotten.
    fn num_requeues(&self, key: &K) -> u32;
}

impl<K, L: RateLimiter<K> + ?Sized> RateLimiter<K> for Box<L> {
    fn when(&mut self, now: Duration, key: &K) -> Duration {
        (**self).when(now, key)
    }

    fn forget(&mut self, key: &K) {
        (**self).forget(key);
    }

    fn num_requeues(&self, key: &K) -> u32 {
        (**self).num_requeues(key)
    }
}

/// Creates client-go's default limiter for controllers. A key gets the longer delay of two
/// limiters: an [`ItemExponential`], and a [`TokenBucket`] of 10 per second with a burst of 100
/// that all keys of the queue share. controller-runtime's priority queue does not use the bucket,
/// and neither does the default of [`QueueOptions`](crate::QueueOptions).
///
/// # Examples
/// ```
/// use opkit_workqueue::{RateLimiter, default_controller_rate_limiter};
/// use std::time::Duration;
/// let mut limiter = default_controller_rate_limiter::<&str>();
/// assert_eq!(limiter.when(Duration::ZERO, &"a"), Duration::from_millis(5));
/// ```
pub fn default_controller_rate_limiter<K: Eq + Hash + Clone + Send + 'static>() -> MaxOf<K> {
    MaxOf::new(vec![
        Box::new(ItemExponential::default()),
        Box::new(TokenBucket::new(10.0, 100)),
    ])
}

/// Number of failures of each key.
#[derive(Debug)]
pub(crate) struct Failures<K>(HashMap<K, u32, foldhash::fast::RandomState>);

impl<K> Default for Failures<K> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

impl<K: Eq + Hash + Clone> Failures<K> {
    /// Counts a failure and returns the number of earlier failures.
    pub(crate) fn count(&mut self, key: &K) -> u32 {
        let Some(failures) = self.0.get_mut(key) else {
            self.0.insert(key.clone(), 1);
            return 0;
        };
        let before = *failures;
        *failures = before.saturating_add(1);
        before
    }

    pub(crate) fn of(&self, key: &K) -> u32 {
        if self.0.is_empty() {
            return 0;
        }
        self.0.get(key).copied().unwrap_or(0)
    }

    /// Returns the number of keys with failures, and the largest number of failures of a key.
    pub(crate) fn most(&self) -> (usize, u32) {
        let most = self.0.values().copied().max();
        (self.0.len(), most.unwrap_or(0))
    }

    pub(crate) fn forget(&mut self, key: &K) {
        // Nearly every key that is forgotten never failed.
        if self.0.is_empty() {
            return;
        }
        self.0.remove(key);
        if self.0.is_empty() && self.0.capacity() > SHRINK_ABOVE {
            self.0 = HashMap::default();
        }
    }
}

/// Limiter whose delay doubles with each failure of a key, up to a maximum delay.
///
/// The default is that of client-go and controller-runtime: 5 ms after the first failure, doubled
/// up to 1000 s.
///
/// # Examples
/// ```
/// use opkit_workqueue::{ItemExponential, RateLimiter};
/// use std::time::Duration;
/// let mut limiter = ItemExponential::default();
/// assert_eq!(limiter.when(Duration::ZERO, &"a"), Duration::from_millis(5));
/// assert_eq!(limiter.when(Duration::ZERO, &"a"), Duration::from_millis(10));
/// limiter.forget(&"a");
/// assert_eq!(limiter.when(Duration::ZERO, &"a"), Duration::from_millis(5));
/// ```
#[derive(Debug)]
pub struct ItemExponential<K> {
    base: Duration,
    max: Duration,
    failures: Failures<K>,
}

impl<K> ItemExponential<K> {
    /// Creates a limiter with delays from `base` to `max`.
    pub fn new(base: Duration, max: Duration) -> Self {
        Self {
            base,
            max,
            failures: Failures::default(),
        }
    }
}

impl<K> Default for ItemExponential<K> {
    fn default() -> Self {
        Self::new(Duration::from_millis(5), Duration::from_secs(1000))
    }
}

impl<K: Eq + Hash + Clone + Send> RateLimiter<K> for ItemExponential<K> {
    fn when(&mut self, _: Duration, key: &K) -> Duration {
        // More than 64 doublings exceed every maximum, unless the base is zero.
        let doublings = self.failures.count(key).min(64);
        let delay = self.base.as_nanos().saturating_mul(1 << doublings);
        let delay = u64::try_from(delay).map_or(Duration::MAX, Duration::from_nanos);
        delay.min(self.max)
    }

    fn forget(&mut self, key: &K) {
        self.failures.forget(key);
    }

    fn num_requeues(&self, key: &K) -> u32 {
        self.failures.of(key)
    }
}

/// Limiter with a short delay for the first failures of a key and a long delay for all further
/// failures.
///
/// # Examples
/// ```
/// use opkit_workqueue::{ItemFastSlow, RateLimiter};
/// use std::time::Duration;
/// let (fast, slow) = (Duration::from_millis(5), Duration::from_secs(10));
/// let mut limiter = ItemFastSlow::new(fast, slow, 1);
/// assert_eq!(limiter.when(Duration::ZERO, &"a"), fast);
/// assert_eq!(limiter.when(Duration::ZERO, &"a"), slow);
/// ```
#[derive(Debug)]
pub struct ItemFastSlow<K> {
    fast: Duration,
    slow: Duration,
    max_fast_attempts: u32,
    failures: Failures<K>,
}

impl<K> ItemFastSlow<K> {
    /// Creates a limiter with the delay `fast` for the first `max_fast_attempts` failures, then
    /// `slow`.
    pub fn new(fast: Duration, slow: Duration, max_fast_attempts: u32) -> Self {
        Self {
            fast,
            slow,
            max_fast_attempts,
            failures: Failures::default(),
        }
    }
}

impl<K: Eq + Hash + Clone + Send> RateLimiter<K> for ItemFastSlow<K> {
    fn when(&mut self, _: Duration, key: &K) -> Duration {
        match self.failures.count(key) < self.max_fast_attempts {
            true => self.fast,
            false => self.slow,
        }
    }

    fn forget(&mut self, key: &K) {
        self.failures.forget(key);
    }

    fn num_requeues(&self, key: &K) -> u32 {
        self.failures.of(key)
    }
}

/// Limiter of the total rate over all keys, with a burst. Does not count the failures of keys.
///
/// # Examples
/// ```
/// use opkit_workqueue::{RateLimiter, TokenBucket};
/// use std::time::Duration;
/// let mut limiter = TokenBucket::new(10.0, 1);
/// assert_eq!(limiter.when(Duration::ZERO, &"a"), Duration::ZERO);
/// assert_eq!(limiter.when(Duration::ZERO, &"b"), Duration::from_millis(100));
/// ```
#[derive(Debug, Clone)]
pub struct TokenBucket {
    /// Time in which one token is added.
    interval: Duration,
    /// Time in which an empty bucket fills up.
    fill: Duration,
    /// Time at which the bucket will be full.
    full_at: Duration,
}

impl TokenBucket {
    /// Creates a bucket that gains `per_second` tokens per second and holds at most `burst` tokens,
    /// but at least one. If `per_second` is not a positive number, the bucket gains one token per
    /// year.
    pub fn new(per_second: f64, burst: u32) -> Self {
        const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
        let interval = match per_second > 0.0 {
            true => Duration::try_from_secs_f64(1.0 / per_second).unwrap_or(YEAR),
            false => YEAR,
        };
        Self {
            interval,
            fill: interval.saturating_mul(burst.max(1)),
            full_at: Duration::ZERO,
        }
    }
}

impl<K> RateLimiter<K> for TokenBucket {
    fn when(&mut self, now: Duration, _: &K) -> Duration {
        self.full_at = self.full_at.max(now).saturating_add(self.interval);
        self.full_at.saturating_sub(now.saturating_add(self.fill))
    }

    fn forget(&mut self, _: &K) {}

    fn num_requeues(&self, _: &K) -> u32 {
        0
    }
}

/// Limiter with the longest delay of several limiters. Each of the limiters counts every failure.
///
/// # Examples
/// ```
/// use opkit_workqueue::{ItemExponential, ItemFastSlow, MaxOf, RateLimiter};
/// use std::time::Duration;
/// let (fast, slow) = (Duration::from_millis(7), Duration::from_secs(1));
/// let mut limiter = MaxOf::<&str>::new(vec![
///     Box::new(ItemExponential::default()),
///     Box::new(ItemFastSlow::new(fast, slow, 3)),
/// ]);
/// assert_eq!(limiter.when(Duration::ZERO, &"a"), fast);
/// assert_eq!(limiter.when(Duration::ZERO, &"a"), Duration::from_millis(10));
/// ```
pub struct MaxOf<K> {
    limiters: Vec<Box<dyn RateLimiter<K>>>,
}

impl<K> MaxOf<K> {
    /// Creates a limiter from several limiters. If `limiters` is empty, there is no delay.
    pub fn new(limiters: Vec<Box<dyn RateLimiter<K>>>) -> Self {
        Self { limiters }
    }
}

impl<K> fmt::Debug for MaxOf<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MaxOf")
            .field("limiters", &self.limiters.len())
            .finish()
    }
}

impl<K> RateLimiter<K> for MaxOf<K> {
    fn when(&mut self, now: Duration, key: &K) -> Duration {
        let delays = self
            .limiters
            .iter_mut()
            .map(|limiter| limiter.when(now, key));
        delays.max().unwrap_or_default()
    }

    fn forget(&mut self, key: &K) {
        for limiter in &mut self.limiters {
            limiter.forget(key);
        }
    }

    fn num_requeues(&self, key: &K) -> u32 {
        let counts = self
            .limiters
            .iter()
            .map(|limiter| limiter.num_requeues(key));
        counts.max().unwrap_or_default()
    }
}

/// Limiter with the delay of another limiter, but at most a maximum delay.
///
/// # Examples
/// ```
/// use opkit_workqueue::{ItemExponential, RateLimiter, WithMaxWait};
/// use std::time::Duration;
/// let longest = Duration::from_millis(7);
/// let mut limiter = WithMaxWait::new(ItemExponential::default(), longest);
/// assert_eq!(limiter.when(Duration::ZERO, &"a"), Duration::from_millis(5));
/// assert_eq!(limiter.when(Duration::ZERO, &"a"), longest);
/// ```
#[derive(Debug)]
pub struct WithMaxWait<L> {
    limiter: L,
    max_wait: Duration,
}

impl<L> WithMaxWait<L> {
    /// Limits the delay of `limiter` to `max_wait`.
    pub fn new(limiter: L, max_wait: Duration) -> Self {
        Self { limiter, max_wait }
    }
}

impl<K, L: RateLimiter<K>> RateLimiter<K> for WithMaxWait<L> {
    fn when(&mut self, now: Duration, key: &K) -> Duration {
        self.limiter.when(now, key).min(self.max_wait)
    }

    fn forget(&mut self, key: &K) {
        self.limiter.forget(key);
    }

    fn num_requeues(&self, key: &K) -> u32 {
        self.limiter.num_requeues(key)
    }
}

/// Limiter that adds a random part to the delay of another limiter, so that keys that failed
/// together are not retried together.
///
/// # Examples
/// ```
/// use opkit_workqueue::{ItemExponential, Jittered, RateLimiter};
/// use std::time::Duration;
/// let mut limiter = Jittered::new(ItemExponential::default(), 0.5);
/// let delay = limiter.when(Duration::ZERO, &"a");
/// assert!(delay >= Duration::from_millis(5) && delay < Duration::from_micros(7_500));
/// ```
#[derive(Debug)]
pub struct Jittered<L> {
    limiter: L,
    max_factor: f64,
    random: Random,
}

impl<L> Jittered<L> {
    /// Creates a limiter that adds a random part of up to `max_factor` times the delay of `limiter`
    /// to that delay.
    pub fn new(limiter: L, max_factor: f64) -> Self {
        Self::with_seed(limiter, max_factor, Random::seed())
    }

    /// Same as [`new`](Jittered::new), with a seed for reproducible delays.
    pub fn with_seed(limiter: L, max_factor: f64, seed: u64) -> Self {
        Self {
            limiter,
            max_factor: max_factor.max(0.0),
            random: Random::new(seed),
        }
    }
}

impl<K, L: RateLimiter<K>> RateLimiter<K> for Jittered<L> {
    fn when(&mut self, now: Duration, key: &K) -> Duration {
        let delay = self.limiter.when(now, key);
        let more = delay.as_secs_f64() * self.max_factor * self.random.unit();
        delay.saturating_add(Duration::try_from_secs_f64(more).unwrap_or(Duration::MAX))
    }

    fn forget(&mut self, key: &K) {
        self.limiter.forget(key);
    }

    fn num_requeues(&self, key: &K) -> u32 {
        self.limiter.num_requeues(key)
    }
}

#[cfg(test)]
mod tests;
