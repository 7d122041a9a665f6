use super::*;

#[test]
fn waits_grow_to_their_maximum() {
    let backoff = Backoff {
        first: Duration::from_millis(50),
        factor: 2.0,
        jitter: 0.0,
        steps: 10,
        max: Duration::from_secs(1),
    };
    let waits: Vec<u128> = [1, 2, 3, 6, 4_000_000_000]
        .map(|n| backoff.wait(n).as_millis())
        .into();
    assert_eq!(waits, [50, 100, 200, 1000, 1000]);
}

#[test]
fn jitter_only_adds() {
    let backoff = Backoff::DEFAULT_RETRY;
    for attempt in 0..1000 {
        let wait = backoff.wait(attempt);
        assert!(
            wait >= Duration::from_millis(10) && wait <= Duration::from_millis(11),
            "{wait:?}"
        );
    }
    assert!((0..100).map(|_| random()).any(|r| r > 0.5));
    assert!((0..100).map(|_| random()).any(|r| r < 0.5));
}
