//! Tells of reconciles that do not end, while the operator runs.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tracing::warn;

use crate::object::Request;
use crate::worker::Running;

/// How often it looks.
const EVERY: Duration = Duration::from_secs(10);
/// From when on a reconcile is told of: long enough for slow requests and their retries.
const STUCK: Duration = Duration::from_secs(120);

/// Warns, once each, of reconciles that take long.
pub(super) async fn watch(running: Arc<Running>) {
    let mut told: HashSet<Request> = HashSet::new();
    loop {
        tokio::time::sleep(EVERY).await;
        let in_work = running.in_work().into_iter();
        let stuck: Vec<_> = in_work.filter(|(_, age)| *age >= STUCK).collect();
        for (request, age) in &stuck {
            // One that was told of and is still there is the same: another would not be as old yet.
            if !told.contains(request) {
                let (controller, seconds) = (&running.spec.name, age.as_secs());
                warn!(controller, object = %request, seconds, "a reconcile does not end");
            }
        }
        told = stuck.into_iter().map(|(request, _)| request).collect();
    }
}
