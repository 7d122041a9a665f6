//! Resyncs of the sources of a controller: their periods, and how fast they go on.
//!
//! A resync delivers each cached object of a source again, as an update from a version to itself.
//! Its requests have a low priority, but that priority rises with time, so many of them would in
//! the end delay changes. Therefore a resync waits while enough requests wait in the queue.

use std::time::Duration;

use opkit_cache::{Event, Listener};
use opkit_random::Random;

use super::ControllerSources;

/// Number of waiting requests from which on a resync waits. A change waits for at most this many
/// requests of a resync, even if their priority has risen.
const BACKLOG: usize = 100;

/// Time after which a resync that waits looks at the queue again. With [`BACKLOG`], workers that
/// are slower than the resync still get 1,000 requests per second, more than most can reconcile.
const PAUSE: Duration = Duration::from_millis(100);

/// Returns the period of the resyncs of a controller with the period `own`, or else the `default`
/// of the operator; `None` if there are none. The period is up to 10 % shorter or longer, so that
/// the controllers of an operator, and its replicas, do not resync at the same time. The sources of
/// one controller do, so that their requests for an object are merged if it still waits.
pub(crate) fn period(own: Option<Duration>, default: Option<Duration>) -> Option<Duration> {
    let period = own.or(default).filter(|period| !period.is_zero())?;
    let random = Random::new(Random::seed()).unit();
    let range = (period / 5).mul_f64(random);
    Some((period - period / 10).saturating_add(range))
}

impl ControllerSources {
    /// Waits for the next event of a source. Changes are received at any time, the objects of a
    /// resync only while few requests wait.
    pub(super) async fn next(&self, listener: &mut Listener) -> Event {
        // The queue is looked at only during a resync.
        while listener.is_resyncing() && self.queue.len() >= BACKLOG {
            let change = tokio::time::timeout(PAUSE, listener.recv_change());
            if let Ok(change) = change.await {
                return change;
            }
        }
        listener.recv().await
    }
}

#[cfg(test)]
mod tests;
