//! Limits the time that a worker runs without yielding, if its reconciles never wait.

use std::time::Duration;

use tokio::time::Instant;

/// Time after which a worker whose reconciles never wait yields to other tasks.
const TURN: Duration = Duration::from_micros(50);
/// Number of reconciles after which a worker yields even if [`TURN`] has not passed, because a
/// paused clock in a test does not advance.
const RECONCILES: u32 = 64;

/// Time and number of reconciles since a worker has last yielded. A yield after each reconcile
/// would cost more than a short reconcile itself.
#[derive(Default)]
pub(super) struct Turn {
    began: Option<Instant>,
    reconciles: u32,
}

impl Turn {
    /// Counts a reconcile. Returns whether the worker has to yield now; if so, counting starts
    /// again.
    pub(super) fn count(&mut self, started: Instant, duration: Duration) -> bool {
        let began = *self.began.get_or_insert(started);
        self.reconciles += 1;
        let is_over = self.reconciles >= RECONCILES || started - began + duration >= TURN;
        if is_over {
            *self = Self::default();
        }
        is_over
    }
}
