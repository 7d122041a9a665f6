//! How long a failing key waits: exponential, capped.

use std::time::Duration;

/// The delay before the n-th retry of one key: `base` doubled n times, at most `max`.
///
/// The default is controller-runtime's: 5 ms doubling up to 1000 s. The bucket that client-go
/// shares over the whole queue is left out on purpose, as controller-runtime does since v0.23.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// let backoff = opkit_workqueue::Backoff::default();
/// assert_eq!(backoff.delay(0), Duration::from_millis(5));
/// assert_eq!(backoff.delay(3), Duration::from_millis(40));
/// assert_eq!(backoff.delay(1000), Duration::from_secs(1000));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    /// The delay after the first failure.
    pub base: Duration,
    /// The longest delay.
    pub max: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff {
            base: Duration::from_millis(5),
            max: Duration::from_secs(1000),
        }
    }
}

impl Backoff {
    /// The delay of a key that failed `failures` times before this failure.
    pub fn delay(&self, failures: u32) -> Duration {
        let factor = 1u32
            .checked_shl(failures)
            .filter(|factor| *factor != 0)
            .unwrap_or(u32::MAX);
        self.base.saturating_mul(factor).min(self.max)
    }
}
