//! The health check of an election.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::time::Duration;

use opkit_client::Fence;

use crate::LeaderElectionError;

/// Health check of an election, created by
/// [`LeaderElector::watchdog`](crate::LeaderElector::watchdog). The check fails if this process
/// holds the Lease and does not renew it, or if leader-only work has not ended long after the Lease
/// was lost. In both cases the process should be restarted. A standby is healthy, whether or not it
/// reaches the server.
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use opkit_leaderelection::LeaderElector;
///
/// fn is_healthy(elector: &LeaderElector) -> bool {
///     elector.watchdog(Duration::from_secs(20)).check().is_ok()
/// }
/// ```
#[derive(Debug, Clone)]
pub struct LeaderWatchdog {
    pub(crate) lease: Arc<str>,
    pub(crate) fence: Fence,
    pub(crate) renewal: Arc<RenewalStatus>,
    /// Time without a renewal, or since the loss of the Lease, after which the check fails.
    pub(crate) limit: Duration,
}

impl LeaderWatchdog {
    /// Name of the check, as in client-go.
    pub const NAME: &str = "leaderElection";

    /// Checks the election.
    ///
    /// # Errors
    /// Returns an error if the Lease is not renewed, or if work has not ended after a loss of the
    /// Lease.
    pub fn check(&self) -> Result<(), LeaderElectionError> {
        let Some(since) = self.renewal.since() else {
            return Ok(());
        };
        let elapsed = self.fence.now().saturating_sub(since);
        if elapsed <= self.limit {
            return Ok(());
        }
        let (lease, seconds) = (self.lease.to_string(), elapsed.as_secs());
        Err(match self.renewal.is_ending.load(Relaxed) {
            true => LeaderElectionError::WorkNotEnded { lease, seconds },
            false => LeaderElectionError::NotRenewed { lease, seconds },
        })
    }
}

/// Time of the last renewal or of the loss of the Lease, for the watchdog.
#[derive(Debug, Default)]
pub(crate) struct RenewalStatus {
    /// Time in nanoseconds since the origin of the fence's clock, plus 1; 0 for a standby.
    since: AtomicU64,
    /// Whether `since` is the time of the loss of the Lease, and not of the last renewal.
    is_ending: AtomicBool,
}

impl RenewalStatus {
    /// Records a renewal.
    pub(crate) fn set_renewed(&self, at: Duration) {
        self.set(at, false);
    }

    /// Records the loss of the Lease.
    pub(crate) fn set_ending(&self, at: Duration) {
        self.set(at, true);
    }

    /// Records that this process is a standby.
    pub(crate) fn clear(&self) {
        self.since.store(0, Relaxed);
    }

    fn set(&self, at: Duration, is_ending: bool) {
        let at = u64::try_from(at.as_nanos()).unwrap_or(u64::MAX);
        self.is_ending.store(is_ending, Relaxed);
        self.since.store(at.saturating_add(1), Relaxed);
    }

    fn since(&self) -> Option<Duration> {
        let since = self.since.load(Relaxed).checked_sub(1)?;
        Some(Duration::from_nanos(since))
    }
}

#[cfg(test)]
mod tests;
