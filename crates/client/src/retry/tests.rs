use std::time::Duration;

use tokio::time::Instant;

use super::*;

#[derive(Debug, PartialEq)]
struct Conflict(bool);

impl IsConflict for Conflict {
    fn is_conflict(&self) -> bool {
        self.0
    }
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_tried_five_times() {
    let start = Instant::now();
    let mut attempts = 0;
    let outcome: Result<(), Conflict> = retry_on_conflict(async || {
        attempts += 1;
        Err(Conflict(true))
    })
    .await;
    assert_eq!(outcome, Err(Conflict(true)));
    assert_eq!(attempts, 5);
    let waited = start.elapsed();
    assert!(
        waited >= Duration::from_millis(40) && waited < Duration::from_millis(60),
        "{waited:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn anything_else_ends_it() {
    let mut attempts = 0;
    let outcome: Result<(), Conflict> = retry_on_conflict(async || {
        attempts += 1;
        Err(Conflict(attempts < 3))
    })
    .await;
    assert_eq!(outcome, Err(Conflict(false)));
    assert_eq!(attempts, 3);
    let outcome = retry_on_conflict_with(Backoff::DEFAULT_BACKOFF, async || Ok::<_, Conflict>(7));
    assert_eq!(outcome.await, Ok(7));
}
