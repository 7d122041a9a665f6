use serde_json::json;

use super::*;

#[track_caller]
fn check(documents: [&str; 3], expected: [Value; 3]) {
    let [before, after, raw] = documents.map(str::as_bytes);
    let [before_expected, after_expected, raw_expected] = expected;
    let expected = Documents {
        before: before_expected,
        after: after_expected,
        raw: raw_expected,
    };
    assert_eq!(Documents::changed(before, after, raw).unwrap(), expected);
}

#[test]
fn equal_fields_are_left_out_at_any_level() {
    check(
        [
            r#"{"kind":"A","spec":{"size":1,"deep":{"a":1,"b":2}},"status":{}}"#,
            r#"{"kind":"A","spec":{"size":1,"deep":{"a":1,"b":3}},"status":{}}"#,
            r#"{"kind":"A","spec":{"size":1.0,"deep":{"b":2,"unknown":4}}}"#,
        ],
        [
            json!({"spec": {"deep": {"b": 2}}}),
            json!({"spec": {"deep": {"b": 3}}}),
            json!({"spec": {"deep": {"b": 2}}}),
        ],
    );
}

#[test]
fn lists_and_values_of_different_types_are_whole() {
    check(
        [
            r#"{"list":[1,{"a":1}],"other":{"a":1,"b":1}}"#,
            r#"{"list":[1,{"a":2}],"other":{"a":1,"b":2}}"#,
            r#"{"list":[1,{"a":1}],"other":null}"#,
        ],
        [
            json!({"list": [1, {"a": 1}], "other": {"a": 1, "b": 1}}),
            json!({"list": [1, {"a": 2}], "other": {"a": 1, "b": 2}}),
            json!({"list": [1, {"a": 1}], "other": null}),
        ],
    );
}

#[test]
fn fields_on_one_side_are_whole() {
    check(
        [r#"{"gone":{"a":1}}"#, r#"{"new":{"a":1}}"#, r#"{"x":1}"#],
        [
            json!({"gone": {"a": 1}}),
            json!({"new": {"a": 1}}),
            json!({}),
        ],
    );
}

#[test]
fn the_last_of_two_fields_with_one_name_counts() {
    check(
        [r#"{"a":1}"#, r#"{"a":2}"#, r#"{"a":3,"\u0061":1}"#],
        [json!({"a": 1}), json!({"a": 2}), json!({"a": 1})],
    );
}

#[test]
fn garbage_is_an_error() {
    assert!(Documents::changed(b"{}", b"{}", b"{").is_err());
}
