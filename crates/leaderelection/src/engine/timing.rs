//! The durations of an election, and the length of a term that is safe with inaccurate clocks.

use std::time::Duration;

/// Maximum deviation of a clock's rate from true time, in percent; far more than real clocks have.
pub(crate) const CLOCK_DRIFT_PERCENT: u32 = 10;
/// client-go's `JitterFactor` of 1.2, in tenths: an acquire interval is between 1 and 2.2 retry
/// periods.
pub(crate) const JITTER_TENTHS: u32 = 12;

/// Validated durations of an election.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    pub(crate) lease_seconds: u32,
    pub(crate) renew_deadline: Duration,
    pub(crate) retry_period: Duration,
}

impl Timing {
    pub(crate) fn lease(&self) -> Duration {
        Duration::from_secs(self.lease_seconds.into())
    }

    /// Returns the length of a term, counted from the time at which the last renewal was sent.
    ///
    /// A candidate acquires the Lease if the Lease has not changed for its duration L on the
    /// candidate's clock. The candidate can see a renewal only after the request was sent, and the
    /// candidate's clock is too fast by at most the drift d. So in true time the candidate acquires
    /// the Lease at least L / (1 + d) after the request was sent. The holder's clock is too slow by
    /// at most d, so a term of length R ends in true time at most R / (1 - d) after the request was
    /// sent. The terms do not overlap if R (1 + d) <= L (1 - d). R is the renew deadline, or the
    /// greatest R that satisfies the inequality if the renew deadline is greater.
    pub(crate) fn term(&self) -> Duration {
        let lease = self.lease();
        let (fast, slow) = (100 + CLOCK_DRIFT_PERCENT, 100 - CLOCK_DRIFT_PERCENT);
        let safe = lease.saturating_mul(slow) / fast;
        self.renew_deadline.min(safe)
    }
}
