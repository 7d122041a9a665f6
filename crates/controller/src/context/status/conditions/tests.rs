use serde_json::json;

use super::*;

#[test]
fn the_transition_time_changes_only_with_the_status() {
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
fn the_patch_contains_only_the_difference() {
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
fn null_fields_are_removed() {
    let value = json!({"a": null, "b": [{"c": null, "d": 1}]});
    assert_eq!(without_nulls(value), json!({"b": [{"d": 1}]}));
}

fn kept(before: &[&str], after: &[&str], own: OwnConditions) -> Vec<String> {
    let status = |types: &[&str]| {
        let conditions = types.iter().map(|type_| json!({"type": type_}));
        json!({"conditions": conditions.collect::<Vec<_>>()})
    };
    let mut new = status(after);
    keep_conditions(&status(before), &mut new, &own);
    let conditions = new["conditions"].as_array().unwrap();
    let types = conditions.iter().map(|c| c["type"].as_str().unwrap());
    types.map(str::to_owned).collect()
}

#[test]
fn conditions_of_other_managers_keep_their_place() {
    let own = || OwnConditions::Types(vec!["Ready".into(), "Old".into()]);
    assert_eq!(
        kept(&["Theirs", "Ready"], &["Ready"], own()),
        ["Theirs", "Ready"]
    );
    assert_eq!(
        kept(&["Theirs", "Ready"], &["Ready", "Theirs"], own()),
        ["Theirs", "Ready"]
    );
    assert_eq!(kept(&["Theirs"], &["Ready"], own()), ["Theirs", "Ready"]);
    assert_eq!(kept(&["Old", "Ready"], &["Ready"], own()), ["Ready"]);
    assert_eq!(kept(&["Old"], &[], own()), [""; 0]);
    assert_eq!(kept(&["Theirs"], &[], own()), ["Theirs"]);
    assert_eq!(kept(&["Theirs"], &["Ready"], OwnConditions::All), ["Ready"]);
}

#[test]
fn a_status_without_conditions_keeps_those_of_other_managers() {
    let mut new = json!({"phase": "a"});
    let previous = json!({"conditions": [{"type": "Theirs"}]});
    keep_conditions(&previous, &mut new, &OwnConditions::Types(Vec::new()));
    assert_eq!(new["conditions"], previous["conditions"]);
}

#[test]
fn the_owner_of_a_condition_is_read_from_managed_fields() {
    let of = |subresource: &str, conditions: Value| {
        let meta = serde_json::from_value(json!({"managedFields": [{
            "manager": "me", "operation": "Update", "subresource": subresource,
            "fieldsV1": {"f:status": {"f:conditions": conditions}},
        }]}));
        OwnConditions::of(&meta.unwrap(), "me")
    };
    let ready = json!({".": {}, "k:{\"type\":\"Ready\"}": {}});
    let types = |types: &[&str]| OwnConditions::Types(types.iter().map(|t| (*t).into()).collect());
    assert_eq!(of("status", ready.clone()), types(&["Ready"]));
    assert_eq!(of("", ready), types(&[]));
    assert_eq!(of("status", json!({})), OwnConditions::All);
    assert_eq!(OwnConditions::of(&ObjectMeta::default(), "me"), types(&[]));
}
