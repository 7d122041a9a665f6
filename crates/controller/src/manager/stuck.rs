//! Warns of reconciles that do not end.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tracing::warn;

use crate::object::Request;
use crate::worker::RunningController;

/// Time between two checks.
const INTERVAL: Duration = Duration::from_secs(10);
/// Duration after which a reconcile is reported: long enough for slow requests and their retries.
const STUCK: Duration = Duration::from_secs(120);

/// Warns once of each reconcile that takes long.
pub(super) async fn watch(controller: Arc<RunningController>) {
    let mut reported: HashSet<Request> = HashSet::new();
    loop {
        tokio::time::sleep(INTERVAL).await;
        let in_work = controller.in_work().into_iter();
        let stuck: Vec<_> = in_work.filter(|(_, age)| *age >= STUCK).collect();
        for (request, age) in &stuck {
            // A reported request that is still in work is the same reconcile: another one would not
            // be as old yet.
            if !reported.contains(request) {
                let (controller, seconds) = (&*controller.identity().name, age.as_secs());
                warn!(controller, object = %request, seconds, "a reconcile does not end");
            }
        }
        reported = stuck.into_iter().map(|(request, _)| request).collect();
    }
}
