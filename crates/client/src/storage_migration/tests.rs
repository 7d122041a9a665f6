use super::*;

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

#[test]
fn the_hash_of_a_storage_version_is_that_of_kubernetes() {
    // From the discovery document of a Kubernetes server: Deployments of apps/v1.
    assert_eq!(
        storage_version_hash("apps", "v1", "Deployment"),
        "8aSe+NMegvE="
    );
}
