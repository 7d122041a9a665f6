use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use std::time::Duration;

use super::*;

fn repeat(note: &str) -> Repeat {
    Repeat {
        uid: "u".into(),
        event_type: EventType::Normal,
        reason: "Applied".into(),
        note: note.into(),
    }
}

#[test]
fn repeats_within_six_minutes_are_one_series() {
    let mut series = Series::default();
    let minutes = |n: u64| Duration::from_secs(60 * n);
    let new = |name: &str| Next::New { name: name.into() };
    assert_eq!(series.next(minutes(0), repeat("a"), "1".into()), new("1"));
    assert_eq!(series.next(minutes(0), repeat("b"), "2".into()), new("2"));
    let again = Next::Again {
        name: "1".into(),
        count: 2,
    };
    assert_eq!(series.next(minutes(5), repeat("a"), "3".into()), again);
    assert_eq!(series.next(minutes(11), repeat("a"), "4".into()), new("4"));
}

#[test]
fn an_event_has_what_the_api_asks_for() {
    let meta = ObjectMeta {
        name: Some("a".into()),
        uid: Some("u".into()),
        ..Default::default()
    };
    let about = Arc::new(Owner::of(Kind::of::<ConfigMap>(), &meta));
    let event = Recorded {
        about,
        event_type: EventType::Warning,
        reason: "Broken".into(),
        note: "x".repeat(2000),
        at: Timestamp::UNIX_EPOCH,
    };
    let body = event_body(&event, "n", namespace_of(&event), "operator", "host");
    assert_eq!(body["metadata"]["namespace"], "default");
    assert_eq!(body["eventTime"], "1970-01-01T00:00:00.000000Z");
    assert_eq!(body["note"].as_str().unwrap().len(), 1024);
    assert!(body["regarding"].get("namespace").is_none());
}

#[test]
fn the_count_of_a_series_is_told_once_a_minute() {
    let mut series = Series::default();
    let mut told = Vec::new();
    for second in 0..150 {
        let next = series.next(Duration::from_secs(second), repeat("a"), "1".into());
        if let Next::Again { count, .. } = next {
            told.push((second, count));
        }
    }
    assert_eq!(told, [(1, 2), (61, 62), (121, 122)]);
}

#[test]
fn a_note_is_cut_between_characters() {
    assert_eq!(cut("short", 1024), "short");
    assert_eq!(cut("xy\u{e9}", 4), "xy\u{e9}");
    assert_eq!(cut("xy\u{e9}", 3), "xy");
    assert_eq!(cut("\u{1f916}", 3), "");
}
