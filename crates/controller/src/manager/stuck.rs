//! Tells of reconciles that do not end, while the operator runs.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tracing::warn;

use crate::Request;
use crate::worker::Running;

/// How often it looks.
const EVERY: Duration = Duration::from_secs(10);
/// From when on a reconcile is told of: long enough for slow requests and their retries.
const STUCK: Duration = Duration::from_secs(120);

/// Warns, once each, of reconciles that take long.
pub(super) async fn watch(running: Arc<Running>) {
    let mut told: HashSet<(Request, Instant)> = HashSet::new();
    loop {
        tokio::time::sleep(EVERY).await;
        let stuck: HashSet<_> = {
            let in_work = running.in_work.lock();
            let long = in_work.iter().filter(|(_, since)| since.elapsed() >= STUCK);
            long.map(|(request, since)| (request.clone(), *since))
                .collect()
        };
        for (request, since) in stuck.difference(&told) {
            let (controller, seconds) = (&running.spec.name, since.elapsed().as_secs());
            warn!(controller, object = %request, seconds, "a reconcile does not end");
        }
        told = stuck;
    }
}
