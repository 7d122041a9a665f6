//! The health check of an election.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use opkit_client::Fence;

use crate::LeaderElectionError;

/// Fails when the elector no longer does its duty: a lease that is held and not renewed, or work
/// that goes on after its lease was lost. Either way a restart of the process is what helps. A
/// standby is healthy, whether or not it reaches the server. Made by
/// [`LeaderElector::watchdog`](crate::LeaderElector::watchdog).
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
    pub(crate) pulse: Arc<Pulse>,
    pub(crate) limit: Duration,
}

impl LeaderWatchdog {
    /// The name of the check, client-go's.
    pub const NAME: &str = "leaderElection";

    /// Whether all is well.
    ///
    /// # Errors
    /// What is not.
    pub fn check(&self) -> Result<(), LeaderElectionError> {
        let Some(since) = self.pulse.since() else {
            return Ok(());
        };
        let elapsed = self.fence.now().saturating_sub(since);
        if elapsed <= self.limit {
            return Ok(());
        }
        let (lease, seconds) = (self.lease.to_string(), elapsed.as_secs());
        Err(match self.pulse.is_ending.load(Relaxed) {
            true => LeaderElectionError::WorkGoesOn { lease, seconds },
            false => LeaderElectionError::NotRenewed { lease, seconds },
        })
    }
}

/// What the elector did last.
#[derive(Debug, Default)]
pub(crate) struct Pulse {
    /// Nanoseconds since the fence's origin, and one more; 0 for a standby.
    since: AtomicU64,
    is_ending: AtomicBool,
}

impl Pulse {
    pub(crate) fn renewed(&self, at: Duration) {
        self.set(at, false);
    }

    pub(crate) fn ending(&self, at: Duration) {
        self.set(at, true);
    }

    pub(crate) fn rest(&self) {
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
