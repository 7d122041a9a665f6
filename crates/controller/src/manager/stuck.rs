//! Logs a warning for reconciles that do not finish.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tracing::warn;

use crate::object::Request;
use crate::worker::RunningController;

/// Time between two checks.
const INTERVAL: Duration = Duration::from_secs(10);
/// Duration after which a reconcile is reported as stuck. Long enough for slow requests and their
/// retries.
const STUCK: Duration = Duration::from_secs(120);

/// Logs one warning for each reconcile that takes longer than [`STUCK`].
pub(super) async fn watch(controller: Arc<RunningController>) {
    let mut reported: HashSet<Request> = HashSet::new();
    loop {
        tokio::time::sleep(INTERVAL).await;
        let in_work = controller.in_work().into_iter();
        let stuck: Vec<_> = in_work.filter(|(_, age)| *age >= STUCK).collect();
        for (request, age) in &stuck {
            // A reported request that is still running is the same reconcile: another one would be
            // younger.
            if !reported.contains(request) {
                let (controller, seconds) = (&*controller.identity().name, age.as_secs());
                warn!(controller, object = %request, seconds, "a reconcile does not finish");
            }
        }
        reported = stuck.into_iter().map(|(request, _)| request).collect();
    }
}
