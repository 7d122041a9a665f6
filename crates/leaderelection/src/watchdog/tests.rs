use super::*;

/// client-go's `TestLeaderElectionHealthChecker`.
#[tokio::test(start_paused = true)]
async fn a_lease_that_is_not_renewed_is_unhealthy() {
    let renewal = Arc::new(RenewalStatus::default());
    let watchdog = LeaderWatchdog {
        lease: "shops/lease".into(),
        fence: Fence::new(),
        renewal: renewal.clone(),
        limit: Duration::from_secs(15 + 20),
    };
    let check = || watchdog.check().map_err(|error| error.to_string());
    // Before the election, and as a standby.
    assert_eq!(check(), Ok(()));
    tokio::time::advance(Duration::from_secs(100)).await;
    assert_eq!(check(), Ok(()));
    // As the leader: at a renewal, at the end of the tolerance, and 1 s later.
    renewal.set_renewed(Duration::from_secs(100));
    assert_eq!(check(), Ok(()));
    tokio::time::advance(Duration::from_secs(35)).await;
    assert_eq!(check(), Ok(()));
    tokio::time::advance(Duration::from_secs(1)).await;
    let late = "the lease shops/lease is held by this process and was not renewed for 36 s";
    assert_eq!(check(), Err(late.to_owned()));
    // The Lease was lost, and the work does not end.
    renewal.set_ending(Duration::from_secs(100));
    let late = "the lease shops/lease was lost 36 s ago, and the work of that term has not ended";
    assert_eq!(check(), Err(late.to_owned()));
    // As a standby.
    renewal.clear();
    assert_eq!(check(), Ok(()));
}
