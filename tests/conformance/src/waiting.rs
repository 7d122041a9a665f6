//! Waits for what no watch reports, such as the time at which a server has read a configuration.

use std::time::Duration;

/// Limit for what takes milliseconds on a machine with time to spare.
const LIMIT: Duration = Duration::from_secs(60);
const INTERVAL: Duration = Duration::from_millis(20);

/// Waits until a condition holds. Panics with `what` if it does not in time.
pub(crate) async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let holding = async {
        while !holds().await {
            tokio::time::sleep(INTERVAL).await;
        }
    };
    let held = tokio::time::timeout(LIMIT, holding).await;
    assert!(held.is_ok(), "not within {} s: {what}", LIMIT.as_secs());
}
