use super::*;

const HOUR: Duration = Duration::from_secs(3600);

#[test]
fn the_period_of_a_controller_has_precedence() {
    assert_eq!(period(None, None), None);
    assert_eq!(period(Some(Duration::ZERO), Some(HOUR)), None);
    assert_eq!(period(None, Some(Duration::ZERO)), None);
    assert!(period(Some(HOUR), None).is_some());
    assert!(period(Some(HOUR), Some(10 * HOUR)).is_some_and(|period| period < 2 * HOUR));
    assert!(period(None, Some(10 * HOUR)).is_some_and(|period| period > 8 * HOUR));
}

#[test]
fn the_jitter_is_a_tenth_of_the_period() {
    let periods: Vec<_> = (0..1_000)
        .filter_map(|_| period(Some(HOUR), None))
        .collect();
    let (least, most) = (periods.iter().min(), periods.iter().max());
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    assert!(least.is_some_and(|least| (minutes(54)..minutes(56)).contains(least)));
    assert!(most.is_some_and(|most| (minutes(64)..=minutes(66)).contains(most)));
}

#[test]
fn the_longest_period_does_not_overflow() {
    assert!(period(Some(Duration::MAX), None).is_some());
}
