//! When a worker that never waits yields to other tasks.

use std::time::Duration;

use tokio::time::Instant;

/// Time after which a worker that never waits yields to other tasks.
const TURN: Duration = Duration::from_micros(50);
/// Number of reconciles after which a worker yields, for a clock that stands still.
const RECONCILES: u32 = 64;

/// Time that a worker has run without a yield. A yield after each reconcile would cost more than a
/// short reconcile does.
#[derive(Default)]
pub(super) struct Turn {
    began: Option<Instant>,
    reconciles: u32,
}

impl Turn {
    /// Counts a reconcile. Returns whether the worker has to yield now, and then starts from zero.
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
