//! The tasks that post events.

use std::time::Duration;

use opkit_client::RestClient;
use opkit_events::{EventApi, EventMetrics, EventRecorder, Reporter, event_recorder};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::warn;

use super::task_group::Deadline;

/// Time for posting the remaining events after all other tasks have stopped. The time is part of
/// the grace period.
const FLUSH: Duration = Duration::from_secs(5);

/// The tasks that post events.
#[derive(Debug, Default)]
pub(super) struct EventPosters {
    tasks: TaskTracker,
    /// Token that stops the tasks after the remaining events are posted.
    stop: CancellationToken,
    /// Token that stops the tasks immediately and drops the remaining events.
    abort: CancellationToken,
    pub(super) metrics: EventMetrics,
}

impl EventPosters {
    /// Returns a recorder, and starts the task that posts its events through `client`.
    pub(super) fn recorder(
        &self,
        operator: &str,
        api: EventApi,
        client: RestClient,
    ) -> EventRecorder {
        let reporter = Reporter::new(operator, api);
        let (recorder, poster) = event_recorder(client, reporter, self.metrics.clone());
        let (stop, abort) = (self.stop.clone(), self.abort.clone());
        self.tasks.spawn(async move {
            abort.run_until_cancelled(poster.run(stop)).await;
        });
        recorder
    }

    /// Posts the remaining events. Drops those that are not posted by the deadline.
    pub(super) async fn flush(&self, deadline: Deadline) {
        self.stop.cancel();
        self.tasks.close();
        let posted = tokio::time::timeout(FLUSH, deadline.holds(self.tasks.wait())).await;
        if posted != Ok(true) {
            self.abort.cancel();
            warn!("events were not posted in time");
        }
    }
}

/// Stops the tasks without waiting for them, for a manager that is dropped.
impl Drop for EventPosters {
    fn drop(&mut self) {
        self.abort.cancel();
    }
}
