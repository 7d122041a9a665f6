use serde_json::json;

use super::*;

#[test]
fn the_transition_time_moves_only_with_the_status() {
    let condition = |kind: &str, status: &str, time: Option<&str>| match time {
        Some(time) => {
            json!({"type": kind, "status": status, "lastTransitionTime": time, "observedGeneration": 1})
        }
        None => json!({"type": kind, "status": status}),
    };
    let previous = json!({"conditions": [
        condition("Ready", "True", Some("t1")),
        condition("Synced", "False", Some("t1")),
        condition("Others", "True", Some("t1")),
    ]});
    let mut status = json!({"conditions": [
        condition("Ready", "True", None),
        condition("Synced", "True", None),
        condition("Others", "True", Some("t1")),
        condition("New", "Unknown", None),
    ]});
    stamp_conditions(&previous, &mut status, "now", 2);
    let told: Vec<_> = status["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| {
            (
                c["lastTransitionTime"].as_str().unwrap(),
                c["observedGeneration"].as_i64(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            ("t1", Some(2)),
            ("now", Some(2)),
            ("t1", Some(1)),
            ("now", Some(2))
        ]
    );
}

#[test]
fn the_patch_holds_the_difference() {
    let check = |old: Value, new: Value, expected: Option<Value>| {
        assert_eq!(merge_patch(&old, &new), expected);
    };
    check(json!({"a": 1}), json!({"a": 1}), None);
    check(
        json!({"a": 1, "b": 2}),
        json!({"a": 1, "b": 3}),
        Some(json!({"b": 3})),
    );
    check(json!({"a": 1}), json!({}), Some(json!({"a": null})));
    check(
        json!({}),
        json!({"a": {"b": 1}}),
        Some(json!({"a": {"b": 1}})),
    );
    check(
        json!({"a": {"b": 1, "c": 1}}),
        json!({"a": {"b": 2, "c": 1}}),
        Some(json!({"a": {"b": 2}})),
    );
    check(
        json!({"a": [1, 2]}),
        json!({"a": [1]}),
        Some(json!({"a": [1]})),
    );
}

#[test]
fn nulls_are_no_fields() {
    let value = json!({"a": null, "b": [{"c": null, "d": 1}]});
    assert_eq!(without_nulls(value), json!({"b": [{"d": 1}]}));
}
