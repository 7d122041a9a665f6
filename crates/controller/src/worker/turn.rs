//! Limits the time for which a worker that never waits runs without yielding to other tasks.

use std::time::Duration;

use tokio::time::Instant;

/// Time after which a worker that never waits yields to other tasks.
const TURN: Duration = Duration::from_micros(50);
/// Number of reconciles after which a worker yields in any case, because a paused clock does not
/// advance.
const RECONCILES: u32 = 64;

/// Time for which a worker has run without a yield. Yielding after each reconcile would cost more
/// than a short reconcile itself.
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
