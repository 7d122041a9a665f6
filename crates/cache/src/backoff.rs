//! How long a reflector waits after a failure: client-go's 0.8 s doubling to 30 s, with jitter.

use std::time::Duration;

const INITIAL: Duration = Duration::from_millis(800);
const MAX: Duration = Duration::from_secs(30);
/// After this long without a failure the delays start anew.
const RESET_AFTER: Duration = Duration::from_secs(120);

#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
    last: Option<Duration>,
}

impl Backoff {
    /// The delay of a failure at `now`, between one and two times the nominal delay as `random`
    /// (0 to 1) says.
    pub(crate) fn failed(&mut self, now: Duration, random: f64) -> Duration {
        if self
            .last
            .is_some_and(|last| now.saturating_sub(last) > RESET_AFTER)
        {
            self.failures = 0;
        }
        self.last = Some(now);
        let factor = 1u32.checked_shl(self.failures.min(16)).unwrap_or(u32::MAX);
        self.failures = self.failures.saturating_add(1);
        INITIAL
            .saturating_mul(factor)
            .min(MAX)
            .mul_f64(1.0 + random.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests;
