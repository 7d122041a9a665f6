//! Increasing delays between attempts, with jitter, so that many clients do not retry at once.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

/// Delays between attempts, like Kubernetes' `wait.Backoff`. Each delay is `factor` times the
/// previous one, plus a random part of up to `jitter` times the delay.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use opkit_client::Backoff;
///
/// let backoff = Backoff { jitter: 0.0, ..Backoff::DEFAULT_BACKOFF };
/// assert_eq!(backoff.wait(1), Duration::from_millis(10));
/// assert_eq!(backoff.wait(3), Duration::from_millis(250));
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Backoff {
    /// First delay.
    pub first: Duration,
    /// Ratio of each delay to the previous one.
    pub factor: f64,
    /// Largest random part that is added to a delay, as a fraction of the delay.
    pub jitter: f64,
    /// Maximum number of attempts, the first one included.
    pub steps: u32,
    /// Longest delay, before the random part is added.
    pub max: Duration,
}

impl Backoff {
    /// client-go's `retry.DefaultRetry`, for conflicts between few writers.
    pub const DEFAULT_RETRY: Self = Self {
        first: Duration::from_millis(10),
        factor: 1.0,
        jitter: 0.1,
        steps: 5,
        max: Duration::from_secs(1),
    };

    /// client-go's `retry.DefaultBackoff`, for conflicts with a busy controller.
    pub const DEFAULT_BACKOFF: Self = Self {
        first: Duration::from_millis(10),
        factor: 5.0,
        jitter: 0.1,
        steps: 4,
        max: Duration::from_secs(10),
    };

    /// Returns the delay after attempt `attempt`. The first attempt has the number 1.
    pub fn wait(&self, attempt: u32) -> Duration {
        let exponent = i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX);
        let seconds = self.first.as_secs_f64() * self.factor.max(0.0).powi(exponent);
        let wait = Duration::try_from_secs_f64(seconds).unwrap_or(self.max);
        let wait = wait.min(self.max).as_secs_f64();
        let wait = wait * (1.0 + self.jitter.clamp(0.0, 10.0) * random());
        Duration::try_from_secs_f64(wait).unwrap_or(self.max)
    }
}

/// Returns a random number from 0 to 1. The standard library seeds each hasher at random, which is
/// random enough to spread delays and needs no other crate.
pub(crate) fn random() -> f64 {
    let bits = RandomState::new().build_hasher().finish() >> 11;
    bits as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests;
