use super::*;

fn problems(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

#[test]
fn problems_are_logged_at_intervals_and_counted_between() {
    let log = ConversionLog::default();
    let now = Instant::now();
    assert_eq!(log.add(Vec::new(), now), None);
    assert_eq!(
        log.add(problems(&["a", "b"]), now),
        Some(("a".to_owned(), 1))
    );
    let soon = now + Duration::from_secs(9);
    assert_eq!(log.add(problems(&["c", "d", "e"]), soon), None);
    let late = now + LOG_INTERVAL;
    assert_eq!(log.add(problems(&["f"]), late), Some(("f".to_owned(), 3)));
    let later = late + LOG_INTERVAL;
    assert_eq!(log.add(problems(&["g"]), later), Some(("g".to_owned(), 0)));
}
