//! The periods of certificates.

use std::time::Duration;

const MINUTE: u64 = 60;
const DAY: u64 = 24 * 60 * MINUTE;

/// Lifetimes of the certificates, and the delays of a rotation. Certificates are renewed after two
/// thirds of their lifetime.
///
/// # Examples
/// ```
/// # mod opkit { pub use opkit_certificates as certificates; }
/// use opkit::certificates::Periods;
/// use std::time::Duration;
///
/// let periods = Periods {
///     serving: Duration::from_secs(24 * 60 * 60),
///     ..Periods::default()
/// };
/// assert_eq!(periods.propagation, Duration::from_secs(600));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Periods {
    /// Lifetime of the authority's certificate: 365 days by default.
    pub authority: Duration,
    /// Lifetime of the serving certificate: 90 days by default.
    pub serving: Duration,
    /// Time that API servers have to receive a changed `caBundle`: 10 minutes by default.
    pub propagation: Duration,
    /// Time between two reports of a replica: 5 minutes by default.
    pub heartbeat: Duration,
    /// Time without a report after which a replica no longer counts: 15 minutes by default. A
    /// replica that cannot reach the API server for two thirds of this time reports that it is not
    /// healthy, so that it gets no more requests.
    pub replica_timeout: Duration,
}

impl Default for Periods {
    fn default() -> Self {
        Self {
            authority: Duration::from_secs(365 * DAY),
            serving: Duration::from_secs(90 * DAY),
            propagation: Duration::from_secs(10 * MINUTE),
            heartbeat: Duration::from_secs(5 * MINUTE),
            replica_timeout: Duration::from_secs(15 * MINUTE),
        }
    }
}

/// Returns a duration in whole seconds.
pub(crate) fn seconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_secs()).unwrap_or(i64::MAX / 4)
}
