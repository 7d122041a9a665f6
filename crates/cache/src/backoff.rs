//! Delay of a reflector after a failure, as in client-go: 0.8 s at first, doubled with each failure
//! up to 30 s, with jitter.

use std::time::Duration;

const INITIAL: Duration = Duration::from_millis(800);
const MAX: Duration = Duration::from_secs(30);
/// Time without a failure after which the delays start again from the shortest.
const RESET_AFTER: Duration = Duration::from_secs(120);

#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
    last: Option<Duration>,
}

impl Backoff {
    /// Returns the delay after a failure at `now`: the nominal delay times (1 + `random`), with
    /// `random` from 0 to 1.
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
