use k8s_openapi::api::core::v1::Pod;

use super::*;
use crate::ObjectReference;

const SECOND: Duration = Duration::from_secs(1);

fn event(name: &str, reason: &str, note: &str) -> RecordedEvent {
    let metadata = kube::core::ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some("my-ns".to_owned()),
        uid: Some(format!("uid-of-{name}")),
        ..Default::default()
    };
    RecordedEvent {
        about: ObjectReference::of(&Pod {
            metadata,
            ..Default::default()
        }),
        event_type: EventType::Normal,
        reason: reason.to_owned(),
        note: note.to_owned(),
        at: Timestamp::UNIX_EPOCH,
    }
}

fn similar(count: usize) -> Vec<RecordedEvent> {
    let note = |number| format!("similar message-{number}");
    let events = (0..count).map(|number| event("my-pod", "similar", &note(number)));
    events.collect()
}

/// Returns the note and the count that are posted for `new` after the events `before`, or `None` if
/// it is spam.
fn after(before: &[RecordedEvent], new: &RecordedEvent, every: Duration) -> Option<(String, u64)> {
    let mut correlator = Correlator::new(EventApi::CoreV1, Duration::ZERO);
    let mut now = Duration::ZERO;
    for event in before {
        now += every;
        correlator.observe(now, event.clone());
    }
    match correlator.observe(now + every, new.clone()) {
        Decision::Post(post) => Some((post.event.note.clone(), post.count)),
        Decision::Defer => panic!("core defers no events"),
        Decision::Spam => None,
    }
}

/// client-go's TestEventCorrelator.
#[test]
fn events_are_counted_combined_and_filtered() {
    let check = |case: &str, before: &[RecordedEvent], new: &RecordedEvent, seconds, expected| {
        let found = after(before, new, seconds * SECOND);
        let found = found.as_ref().map(|(note, count)| (note.as_str(), *count));
        assert_eq!(found, expected, "{case}");
    };
    let first = event("my-pod", "first", "i am first");
    check("a single event", &[], &first, 5, Some(("i am first", 1)));
    let again = event("my-pod", "duplicate", "me again");
    let repeated = |count| vec![again.clone(); count];
    check("counts", &repeated(1), &again, 5, Some(("me again", 2)));
    let expected = Some(("me again", 11));
    check("counts above ten", &repeated(10), &again, 30, expected);
    check("too frequent", &repeated(26), &again, 1, None);
    let unique: Vec<_> = (0..30)
        .map(|number| {
            event(
                &format!("pod-{number}"),
                &format!("reason-{number}"),
                "message",
            )
        })
        .collect();
    let snowflake = event("my-pod", "unique", "snowflake");
    check(
        "many unique",
        &unique,
        &snowflake,
        5,
        Some(("snowflake", 1)),
    );
    let new = event("my-pod", "similar", "similar message");
    let combined = "(combined from similar events): similar message";
    check("combined", &similar(9), &new, 5, Some((combined, 1)));
    check(
        "combined, counted",
        &similar(10),
        &new,
        5,
        Some((combined, 2)),
    );
    let alone = Some(("similar message", 1));
    check("similar, few", &similar(8), &new, 5, alone);
    // client-go's clock advances twice for each of its events, hence its interval of 600 s.
    check("similar, but slow", &similar(9), &new, 601, alone);
}

/// client-go's TestEventSpamFilter.
#[test]
fn the_spam_filter_counts_per_object() {
    let original = vec![event("my-pod", "original", "i am first"); 25];
    let other_reason = event("my-pod", "other", "me again");
    assert_eq!(after(&original, &other_reason, SECOND), None);
    let other_object = event("other-pod", "original", "i am first");
    assert!(after(&original, &other_object, SECOND).is_some());
    // One more event is allowed 5 minutes later.
    let mut correlator = Correlator::new(EventApi::CoreV1, Duration::ZERO);
    let mut posts = |second: u64| {
        let event = other_reason.clone();
        let decision = correlator.observe(Duration::from_secs(second), event);
        matches!(decision, Decision::Post(_))
    };
    assert_eq!((0..30).filter(|_| posts(0)).count(), 25);
    assert!(!posts(299));
    assert!(posts(301));
    assert!(!posts(302));
}

/// client-go's TestEventAggregatorByReasonFunc.
#[test]
fn similar_events_differ_only_in_their_note() {
    let fun = event("pod1", "end-of-world", "it was fun");
    let awful = event("pod1", "end-of-world", "it was awful");
    let bug = event("pod1", "nevermind", "it was a bug");
    assert_eq!(AggregateKey::of(&fun), AggregateKey::of(&awful));
    assert_ne!(AggregateKey::of(&fun), AggregateKey::of(&bug));
    let warning = RecordedEvent {
        event_type: EventType::Warning,
        ..fun.clone()
    };
    assert_ne!(AggregateKey::of(&fun), AggregateKey::of(&warning));
}

/// client-go's TestEventAggregatorByReasonMessageFunc.
#[test]
fn a_combined_note_has_the_prefix_and_at_most_1024_bytes() {
    let long = event("my-pod", "similar", &"x".repeat(2000));
    let (note, _) = after(&similar(9), &long, SECOND).unwrap();
    assert!(
        note.starts_with("(combined from similar events): x"),
        "{note}"
    );
    assert_eq!(note.len(), NOTE_MAX_BYTES);
}

fn series() -> Correlator {
    Correlator::new(EventApi::EventsV1, Duration::ZERO)
}

fn posted(decision: Decision) -> Option<(String, u64)> {
    match decision {
        Decision::Post(post) => Some((post.name.clone(), post.count)),
        Decision::Defer | Decision::Spam => None,
    }
}

/// client-go's TestEventSeriesf.
#[test]
fn the_second_event_of_a_series_is_posted_and_further_ones_are_deferred() {
    let mut correlator = series();
    let started = event("foo", "test", "some verbose message: 1");
    let other = event("foo", "test", "some verbose message: 2");
    let (name, count) = posted(correlator.observe(SECOND, started.clone())).unwrap();
    assert_eq!(count, 1);
    let second = posted(correlator.observe(2 * SECOND, started.clone()));
    assert_eq!(second, Some((name, 2)));
    assert!(matches!(
        correlator.observe(3 * SECOND, started),
        Decision::Defer
    ));
    assert_eq!(posted(correlator.observe(4 * SECOND, other)).unwrap().1, 1);
}

/// client-go's TestFinishSeries.
#[test]
fn a_series_that_has_ended_is_posted_once_and_removed() {
    let mut correlator = series();
    let (old, young) = (event("foo", "old", "a"), event("foo", "young", "b"));
    let single = event("foo", "single", "c");
    for second in 0..10 {
        correlator.observe(Duration::from_secs(second), old.clone());
    }
    correlator.observe(SECOND, single);
    assert_eq!(correlator.wake_at(), SERIES_IDLE_TIMEOUT);
    assert!(correlator.wake(SERIES_IDLE_TIMEOUT - SECOND).is_empty());
    // All events are less than 6 minutes old at the first wake-up.
    assert!(correlator.wake(SERIES_IDLE_TIMEOUT).is_empty());
    assert_eq!(correlator.counted.len(), 2);
    for _ in 0..2 {
        correlator.observe(2 * SERIES_IDLE_TIMEOUT - SECOND, young.clone());
    }
    let ended = correlator.wake(2 * SERIES_IDLE_TIMEOUT);
    let ended: Vec<_> = ended
        .iter()
        .map(|post| (&*post.event.reason, post.count))
        .collect();
    assert_eq!(ended, [("old", 10)]);
    assert_eq!(correlator.counted.len(), 1);
    // The event starts a new series.
    assert_eq!(
        posted(correlator.observe(2 * SERIES_IDLE_TIMEOUT, old))
            .unwrap()
            .1,
        1
    );
}

/// client-go's TestRefreshExistingEventSeries.
#[test]
fn a_series_that_continues_is_posted_every_30_minutes() {
    let mut correlator = series();
    let repeated = event("foo", "test", "a");
    let mut posts = Vec::new();
    for minute in 0..=60u64 {
        let now = Duration::from_secs(60 * minute);
        if now >= correlator.wake_at() {
            let woken = correlator.wake(now);
            posts.extend(woken.iter().map(|post| (minute, post.count)));
        }
        if let Some((_, count)) = posted(correlator.observe(now, repeated.clone())) {
            posts.push((minute, count));
        }
    }
    assert_eq!(posts, [(0, 1), (1, 2), (30, 30), (60, 60)]);
    assert_eq!(correlator.counted.len(), 1);
}

#[test]
fn a_series_takes_no_tokens_from_other_events() {
    let mut correlator = series();
    let repeated = event("foo", "test", "a");
    for _ in 0..1000 {
        correlator.observe(SECOND, repeated.clone());
    }
    let other = event("foo", "other", "b");
    assert!(matches!(
        correlator.observe(SECOND, other),
        Decision::Post(_)
    ));
    // Different events take tokens; one that was not posted does not start a series.
    for number in 0..30 {
        let event = event("foo", &format!("reason-{number}"), "c");
        correlator.observe(SECOND, event);
    }
    assert_eq!(correlator.counted.len(), 24);
    let late = event("foo", "late", "d");
    assert!(matches!(correlator.observe(SECOND, late), Decision::Spam));
}

#[test]
fn idle_entries_are_removed() {
    for api in [EventApi::EventsV1, EventApi::CoreV1] {
        let mut correlator = Correlator::new(api, Duration::ZERO);
        for number in 0..100 {
            let name = format!("pod-{number}");
            correlator.observe(SECOND, event(&name, "Broken", "a leg"));
            correlator.observe(SECOND, event(&name, "Broken", "a leg"));
        }
        let lens = |it: &Correlator| (it.aggregates.len(), it.counted.len(), it.buckets.len());
        assert_eq!(lens(&correlator), (100, 100, 100), "{api:?}");
        let mut posts = 0;
        // `wake` is called at each `wake_at`. A bucket is full again after 10 minutes.
        for _ in 0..20 {
            let now = correlator.wake_at();
            posts += correlator.wake(now).len();
        }
        assert_eq!(lens(&correlator), (0, 0, 0), "{api:?}");
        // The end of a series is posted once; in core each repetition was posted before.
        let expected = if api == EventApi::EventsV1 { 100 } else { 0 };
        assert_eq!(posts, expected, "{api:?}");
    }
}
