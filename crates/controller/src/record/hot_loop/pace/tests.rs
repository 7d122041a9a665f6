use std::collections::VecDeque;

use super::super::tests::{change, record};
use super::*;

/// Reconciles at the interval `every` and returns the number of reconciles until a loop is found.
fn found(every: Duration, reconcile: impl Fn(u32) -> ReconcileRecord) -> Option<(u32, HotLoop)> {
    let (mut pace, mut records) = (Pace::default(), VecDeque::new());
    (0..2_000).find_map(|n| {
        let record = reconcile(n);
        let found = pace.observe(|| every * n, &record, records.iter());
        records.push_back(Arc::new(record));
        found.map(|found| (n, found))
    })
}

fn trigger() -> Cause {
    Cause::Triggered { by: "web".into() }
}

#[test]
fn requeues_without_a_pause_are_a_loop() {
    let check = |causes: &dyn Fn(u32) -> Vec<Cause>, because: &str| {
        let every = Duration::from_millis(10);
        let (n, found) = found(every, |n| record(causes(n), &[("Robot", "one")])).unwrap();
        assert!((100..=101).contains(&n), "{because}: {n}");
        assert_eq!(found.because.as_deref(), Some(because));
        assert_eq!((&*found.object, found.count), ("Robot one", 100));
    };
    check(&|_| vec![Cause::Requeued], "requeued");
    check(&|_| vec![trigger()], "web");
    check(&|n| vec![Cause::Retry(n)], "retry 100 after error");
    // Both causes in one reconcile, and alternately.
    let own = |n: u32| change(("", "one", ".status.seen", n.to_string()));
    check(&|n| vec![own(n), Cause::Requeued], "one changed");
    let in_turn = |n: u32| match n % 2 {
        0 => vec![trigger()],
        _ => vec![Cause::Requeued],
    };
    check(&in_turn, "web");
}

#[test]
fn an_object_that_changes_a_hundred_times_a_second_is_a_loop() {
    let (n, found) = found(Duration::from_millis(5), |n| {
        // No writes are recorded: the user's own client wrote the object.
        record(
            vec![change(("", "one", ".status.seen", n.to_string()))],
            &[],
        )
    })
    .unwrap();
    assert!((500..=501).contains(&n), "{n}");
    let text =
        "loop: Robot one is reconciled without a pause, because one changed, 500 reconciles so far";
    assert_eq!(found.to_string(), text);
}

#[test]
fn a_loop_that_starts_late_is_found_equally_fast() {
    let mut pace = Pace::default();
    let records = [Arc::new(record(vec![Cause::Requeued], &[]))];
    let mut now = Duration::ZERO;
    let mut step = |pause: Duration| {
        now += pause;
        pace.observe(|| now, &records[0], records.iter()).is_some()
    };
    assert!(!(0..2_000).any(|_| step(Duration::from_secs(1))));
    let fast = (0..200).position(|_| step(Duration::from_millis(1)));
    assert!(fast.is_some_and(|n| n <= 100), "{fast:?}");
    // A hot loop continues across windows and ends with a pause.
    assert!((0..9_000).all(|_| step(Duration::from_millis(1))));
    step(Duration::from_secs(20));
    assert!(!step(Duration::from_secs(20)));
}

#[test]
fn busy_work_is_not_a_loop() {
    let check = |every: Duration, reconcile: &dyn Fn(u32) -> Vec<Cause>, what: &str| {
        let found = found(every, |n| record(reconcile(n), &[]));
        assert_eq!(found, None, "{what}");
    };
    let poll = Duration::from_millis(100);
    check(poll, &|_| vec![Cause::Requeued], "ten polls a second");
    let fan_in = |n: u32| {
        vec![change((
            "Pod",
            ["a", "b"][n as usize % 2],
            ".status",
            n.to_string(),
        ))]
    };
    check(
        Duration::from_millis(1),
        &fan_in,
        "many objects that change",
    );
    let edited = |n: u32| vec![change(("", "one", ".spec.size", n.to_string()))];
    check(Duration::from_millis(20), &edited, "fifty edits a second");
}
