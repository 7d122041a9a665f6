//! Wall time that follows tokio's clock: a test that pauses or advances tokio's time also pauses or
//! advances the time stamps of the server.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Wall clock: the time at which the clock was created, plus the time that has passed on tokio's
/// clock since then.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Timestamp,
    started: Instant,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self {
            origin: Timestamp::now(),
            started: Instant::now(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        let elapsed = SignedDuration::try_from(self.started.elapsed()).unwrap_or_default();
        self.origin.checked_add(elapsed).unwrap_or(self.origin)
    }

    /// Returns the current time as Kubernetes writes a `Time`: RFC 3339 with whole seconds.
    pub(crate) fn now_rfc3339(&self) -> String {
        rfc3339(self.now())
    }
}

/// Formats a time as RFC 3339 with whole seconds.
pub(crate) fn rfc3339(time: Timestamp) -> String {
    let seconds = Timestamp::from_second(time.as_second()).unwrap_or(time);
    seconds.to_string()
}
