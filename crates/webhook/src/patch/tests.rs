use opkit_apimachinery::patch::json_patch;
use opkit_random::Random;

use super::*;

/// Checks that the patch changes `raw` to `expected`, and returns its operations.
#[track_caller]
fn check(before: Value, after: Value, raw: Value, expected: Value) -> Vec<Value> {
    let operations = patch(
        before.to_string().as_bytes(),
        after.to_string().as_bytes(),
        raw.to_string().as_bytes(),
    )
    .unwrap();
    let mut patched = raw;
    json_patch(&mut patched, &Value::Array(operations.clone())).unwrap();
    assert_eq!(patched, expected);
    operations
}

#[test]
fn unknown_fields_stay() {
    let operations = check(
        json!({"spec": {"size": 1}}),
        json!({"spec": {"size": 2, "colour": "red"}}),
        json!({"spec": {"size": 1, "new": true}, "other": [1]}),
        json!({"spec": {"size": 2, "colour": "red", "new": true}, "other": [1]}),
    );
    let mut paths: Vec<_> = operations
        .iter()
        .map(|it| it["path"].as_str().unwrap())
        .collect();
    paths.sort_unstable();
    assert_eq!(paths, ["/spec/colour", "/spec/size"]);
}

#[test]
fn values_that_the_type_writes_in_another_form_stay() {
    let operations = check(
        json!({"spec": {"memory": "1", "tools": null, "size": 1}}),
        json!({"spec": {"memory": "1", "tools": null, "size": 2}}),
        json!({"spec": {"memory": "1000m", "size": 1}}),
        json!({"spec": {"memory": "1000m", "size": 2}}),
    );
    assert_eq!(operations.len(), 1);
    assert!(
        check(
            json!({"a": 1}),
            json!({"a": 1}),
            json!({"a": 1.0}),
            json!({"a": 1.0})
        )
        .is_empty()
    );
}

#[test]
fn a_missing_parent_is_added_with_its_changes_only() {
    check(
        json!({"spec": {"size": 1, "kept": "default"}}),
        json!({"spec": {"size": 2, "kept": "default"}}),
        json!({"metadata": {}}),
        json!({"metadata": {}, "spec": {"size": 2}}),
    );
    check(
        json!({"metadata": {"name": "a"}}),
        json!({"metadata": {"name": "a", "labels": {"a/b": "c~d"}}}),
        json!({"metadata": {"name": "a"}}),
        json!({"metadata": {"name": "a", "labels": {"a/b": "c~d"}}}),
    );
}

#[test]
fn an_object_that_the_type_left_out_keeps_its_unknown_fields() {
    check(
        json!({}),
        json!({"resources": {"limits": {"cpu": "1"}}}),
        json!({"resources": {"claims": ["a"]}}),
        json!({"resources": {"claims": ["a"], "limits": {"cpu": "1"}}}),
    );
}

#[test]
fn a_removed_field_is_removed() {
    let operations = check(
        json!({"a": 1, "b": {"c": 1}}),
        json!({"b": {}}),
        json!({"a": 1, "b": {"c": 1, "d": 2}}),
        json!({"b": {"d": 2}}),
    );
    assert!(operations.iter().all(|it| it["op"] == "remove"));
}

#[test]
fn items_of_lists_keep_their_unknown_fields_wherever_they_move() {
    let container = |name: &str, image: &str| json!({"name": name, "image": image});
    let raw = |name: &str, image: &str| json!({"name": name, "image": image, "new": name});
    check(
        json!([container("a", "1"), container("b", "1")]),
        json!([
            container("side", "1"),
            container("b", "2"),
            container("a", "1")
        ]),
        json!([raw("a", "1"), raw("b", "1")]),
        json!([container("side", "1"), raw("b", "2"), raw("a", "1")]),
    );
    // Without a key, items of lists of the same length are the same items.
    check(
        json!([{"x": 1}, {"x": 2}]),
        json!([{"x": 1}, {"x": 3}]),
        json!([{"x": 1, "y": 1}, {"x": 2, "y": 2}]),
        json!([{"x": 1, "y": 1}, {"x": 3, "y": 2}]),
    );
    check(
        json!(["a", "b", "c"]),
        json!(["a", "c"]),
        json!(["a", "b", "c"]),
        json!(["a", "c"]),
    );
    check(
        json!(["a"]),
        json!(["x", "a", "b"]),
        json!(["a"]),
        json!(["x", "a", "b"]),
    );
    // The type does not keep all items, so nothing is known about their positions.
    check(json!([1]), json!([2]), json!([1, null]), json!([2]));
}

/// Returns a random JSON value.
fn random_value(random: &mut Random, depth: u32) -> Value {
    match random.below(if depth == 0 { 4 } else { 7 }) {
        0 => Value::Null,
        1 => json!(random.percent(50)),
        2 => json!(random.below(3)),
        3 => json!(["", "a/b", "c~d", "e"][random.below(4) as usize]),
        4 => (0..random.below(4))
            .map(|_| random_value(random, depth - 1))
            .collect(),
        _ => {
            let fields = (0..random.below(4)).map(|_| {
                let name = ["name", "a/b", "c~1", "spec", ""][random.below(5) as usize];
                (name.to_owned(), random_value(random, depth - 1))
            });
            Value::Object(fields.collect())
        }
    }
}

#[test]
fn every_patch_can_be_applied() {
    let mut random = Random::new(7);
    for _ in 0..20_000 {
        let [before, after, raw] = [(); 3].map(|()| json!({"spec": random_value(&mut random, 4)}));
        let mut expected = raw.clone();
        merge(&before, &after, &mut expected);
        check(before.clone(), after.clone(), raw, expected);
        // If the type knows all fields, the result is the changed object.
        check(before.clone(), after.clone(), before, after);
    }
}
