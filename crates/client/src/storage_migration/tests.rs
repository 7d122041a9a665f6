use kube::core::Status;

use super::*;
use crate::{Call, Verb};

#[tokio::test(start_paused = true)]
async fn the_rate_is_not_exceeded_after_a_pause() {
    let mut pace = Pace::new(100);
    let start = Instant::now();
    for _ in 0..50 {
        pace.wait().await;
    }
    let spent = start.elapsed().as_millis();
    assert!((490..=550).contains(&spent), "{spent} ms");
    tokio::time::advance(Duration::from_secs(60)).await;
    let start = Instant::now();
    for _ in 0..50 {
        pace.wait().await;
    }
    let spent = start.elapsed().as_millis();
    assert!((480..=550).contains(&spent), "{spent} ms");
}

#[tokio::test(start_paused = true)]
async fn a_rate_of_zero_is_no_limit() {
    let mut pace = Pace::new(0);
    let start = Instant::now();
    for _ in 0..1000 {
        pace.wait().await;
    }
    assert_eq!(start.elapsed(), Duration::ZERO);
}

fn refused(code: u16) -> RequestError {
    let status = Status::failure("the CRD has changed", "ServiceUnavailable").with_code(code);
    RequestError::Refused {
        call: Box::new(Call::collection(Verb::List, &crd_kind(), None)),
        status: Box::new(status),
    }
}

#[tokio::test(start_paused = true)]
async fn requests_are_repeated_while_the_server_is_busy() {
    for (code, attempts) in [(429, 3), (503, 3), (500, 1), (409, 1)] {
        let sent = std::cell::Cell::new(0);
        let outcome = when_ready(async || {
            sent.set(sent.get() + 1);
            match sent.get() {
                3 => Ok(()),
                _ => Err(refused(code)),
            }
        });
        assert_eq!(
            (outcome.await.is_ok(), sent.get()),
            (attempts == 3, attempts)
        );
    }
}

#[test]
fn the_hash_of_a_storage_version_is_that_of_kubernetes() {
    // From the discovery document of a Kubernetes server: Deployments of apps/v1.
    assert_eq!(
        storage_version_hash("apps", "v1", "Deployment"),
        "8aSe+NMegvE="
    );
}
