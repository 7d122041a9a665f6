//! How long a key that failed waits: client-go's rate limiters, as plain structs that are told the
//! time.

use std::fmt;
use std::hash::Hash;
use std::time::Duration;

use hashbrown::HashMap;

use crate::random::Random;

/// Above so many keys the memory is given back when all are forgotten.
const KEPT: usize = 1024;

/// Says how long a key waits, and remembers it.
///
/// # Examples
/// A limiter of one's own:
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
    /// Counts a failure of `key` and answers how long it waits. `now` is the time since an origin
    /// that stays the same.
    fn when(&mut self, now: Duration, key: &K) -> Duration;

    /// Forgets the failures of `key`.
    fn forget(&mut self, key: &K);

    /// How many failures of `key` have been counted since it was last forgotten.
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

/// client-go's default for controllers: the longer of [`ItemExponential`] and a [`TokenBucket`] of
/// 10 per second with a burst of 100 that the whole queue shares. controller-runtime's priority
/// queue goes without the bucket, and so does the default of [`QueueOptions`](crate::QueueOptions).
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

/// How often each key failed.
#[derive(Debug)]
struct Failures<K>(HashMap<K, u32, foldhash::fast::RandomState>);

impl<K> Default for Failures<K> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

impl<K: Eq + Hash + Clone> Failures<K> {
    /// Counts one; how many there were before.
    fn count(&mut self, key: &K) -> u32 {
        let Some(failures) = self.0.get_mut(key) else {
            self.0.insert(key.clone(), 1);
            return 0;
        };
        let before = *failures;
        *failures = before.saturating_add(1);
        before
    }

    fn of(&self, key: &K) -> u32 {
        if self.0.is_empty() {
            return 0;
        }
        self.0.get(key).copied().unwrap_or(0)
    }

    fn forget(&mut self, key: &K) {
        // Nearly every key that is forgotten never failed.
        if self.0.is_empty() {
            return;
        }
        self.0.remove(key);
        if self.0.is_empty() && self.0.capacity() > KEPT {
            self.0 = HashMap::default();
        }
    }
}

/// A delay that doubles with each failure of a key, up to a longest one.
///
/// The default is that of client-go and controller-runtime: 5 ms doubling up to 1000 s.
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
    /// Delays from `base` to `max`.
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
        // More than a shift of 64 is longer than every longest delay, or zero as the base is.
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

/// A short delay for the first failures of a key, a long one for all others.
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
    /// `fast` for the first `max_fast_attempts` failures, then `slow`.
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

/// So many per second over all keys, and a burst of so many at once. It does not count failures.
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
    /// How long a token takes to come.
    interval: Duration,
    /// How long it takes until the bucket is full.
    fill: Duration,
    /// When the bucket will be full.
    full_at: Duration,
}

impl TokenBucket {
    /// `per_second` tokens come in, `burst` of them, at least one, find room. A rate that is no
    /// positive number gives one token a year.
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

/// The longest delay of several limiters, all of which count.
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
    /// The longest of these; no delay if there are none.
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

/// The delay of another limiter, but never more than a longest one.
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
    /// At most `max_wait`.
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

/// The delay of another limiter, made longer by a random part, so that keys that failed together
/// are not retried together.
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
    /// Up to `max_factor` of the delay is added to it.
    pub fn new(limiter: L, max_factor: f64) -> Self {
        Self::with_seed(limiter, max_factor, Random::seed())
    }

    /// The same, repeatable.
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
