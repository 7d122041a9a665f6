use super::*;

fn secs(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds)
}

#[test]
fn doubles_to_the_cap_and_starts_anew_after_health() {
    let mut backoff = Backoff::default();
    for expected in [0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 30.0, 30.0] {
        assert_eq!(backoff.failed(secs(0.0), 0.0), secs(expected));
    }
    assert_eq!(backoff.failed(secs(120.0), 0.0), secs(30.0));
    assert_eq!(backoff.failed(secs(241.0), 0.0), secs(0.8));
}

#[test]
fn jitter_adds_up_to_once_the_delay() {
    assert_eq!(Backoff::default().failed(secs(0.0), 1.0), secs(1.6));
}
