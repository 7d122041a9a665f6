//! The monotonic clock of a simulated candidate.

use std::time::Duration;

/// Monotonic clock with a rate that differs from true time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    true_origin: Duration,
    local_origin: Duration,
    rate: f64,
}

impl Clock {
    pub(crate) fn new(now: Duration, rate: f64) -> Self {
        Self {
            true_origin: now,
            local_origin: Duration::ZERO,
            rate,
        }
    }

    /// Returns the time of the clock at the true time `now`.
    pub(crate) fn local(&self, now: Duration) -> Duration {
        self.local_origin + now.saturating_sub(self.true_origin).mul_f64(self.rate)
    }

    /// Returns the true time until the clock shows `local`.
    pub(crate) fn until(&self, now: Duration, local: Duration) -> Duration {
        local.saturating_sub(self.local(now)).div_f64(self.rate)
    }

    /// Changes the rate at the true time `now`.
    pub(crate) fn set_rate(&mut self, now: Duration, rate: f64) {
        self.local_origin = self.local(now);
        self.true_origin = now;
        self.rate = rate;
    }
}
