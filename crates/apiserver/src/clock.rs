//! Wall time that follows tokio's clock, so that a test that pauses or advances time moves the
//! server's time stamps too.

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Wall time: where it stood at the start, plus what tokio's clock has moved since.
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

    /// Now as Kubernetes writes a `Time`: RFC 3339 with whole seconds.
    pub(crate) fn now_rfc3339(&self) -> String {
        rfc3339(self.now())
    }
}

/// RFC 3339 with whole seconds.
pub(crate) fn rfc3339(time: Timestamp) -> String {
    let seconds = Timestamp::from_second(time.as_second()).unwrap_or(time);
    seconds.to_string()
}
