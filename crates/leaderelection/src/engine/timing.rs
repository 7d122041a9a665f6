//! The durations, and what follows from them for clocks that are not exact.

use std::time::Duration;

/// How much faster or slower than true time a clock may run: a tenth.
pub(crate) const CLOCK_DRIFT_PERCENT: u32 = 10;
/// client-go's `JitterFactor`, in tenths: an acquire interval is the retry period and up to 1.2 of
/// it more.
pub(crate) const JITTER_TENTHS: u32 = 12;

/// The durations, checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    pub(crate) lease_seconds: u32,
    pub(crate) renew_deadline: Duration,
    pub(crate) retry_period: Duration,
}

impl Timing {
    /// How long a term lasts from the sending of the request that renewed it.
    ///
    /// A candidate takes the lease when it has not seen it change for the lease's duration L by its
    /// own clock. It can see the renewal only after it was sent, and its clock runs too fast by at
    /// most the drift d, so it takes the lease, in true time, no sooner than L / (1 + d) after the
    /// sending. The holder's clock runs too slow by at most d, so a term of R ends, in true time,
    /// at most R / (1 - d) after the sending. The two stay apart while R (1 + d) <= L (1 - d). The
    /// renew deadline is R, cut to that where the durations are too close to each other.
    pub(crate) fn term(&self) -> Duration {
        let lease = Duration::from_secs(self.lease_seconds.into());
        let (fast, slow) = (100 + CLOCK_DRIFT_PERCENT, 100 - CLOCK_DRIFT_PERCENT);
        let apart = lease.saturating_mul(slow) / fast;
        self.renew_deadline.min(apart)
    }
}
