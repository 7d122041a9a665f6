use serde_json::json;

use super::*;

#[test]
fn the_hash_is_fnv_1a() {
    assert_eq!(bytes(OFFSET, b""), 0xcbf2_9ce4_8422_2325);
    assert_eq!(bytes(OFFSET, b"a"), 0xaf63_dc4c_8601_ec8c);
    assert_eq!(bytes(OFFSET, b"foobar"), 0x8594_4171_f739_67e8);
}

#[test]
fn the_order_of_fields_does_not_matter() {
    let one: Value = serde_json::from_str(r#"{"a": 1, "b": {"c": 2, "d": 3}}"#).unwrap();
    let other: Value = serde_json::from_str(r#"{"b": {"d": 3, "c": 2}, "a": 1}"#).unwrap();
    assert_eq!(hash_of(&one), hash_of(&other));
}

#[test]
fn different_values_have_different_hashes() {
    let values = [
        json!(null),
        json!(false),
        json!(true),
        json!(0),
        json!("0"),
        json!([]),
        json!({}),
        json!([0]),
        json!([[0]]),
        json!([1, 2]),
        json!([2, 1]),
        json!([12]),
        json!(["ab", "c"]),
        json!(["a", "bc"]),
        json!({"a": null}),
        json!({"a": "b"}),
        json!({"ab": ""}),
        json!({"a": {"b": 1}, "c": 2}),
        json!({"a": {"b": 1, "c": 2}}),
    ];
    let hashes: std::collections::HashSet<_> = values.iter().map(hash_of).collect();
    assert_eq!(hashes.len(), values.len());
}

#[test]
fn the_shape_contains_names_and_lengths_and_no_values() {
    let one = json!({"a": {"b": "secret"}, "c": [1, 2]});
    assert_eq!(
        shape_of(&one),
        shape_of(&json!({"c": [3, null], "a": {"b": true}}))
    );
    for other in [
        json!({"a": {"b": "secret"}, "c": [1]}),
        json!({"a": {"c": "secret"}, "c": [1, 2]}),
        json!({"a": "secret", "c": [1, 2]}),
        json!({"a": {"b": "secret"}}),
        json!({"a": {"b": "secret", "c": [1, 2]}}),
    ] {
        assert_ne!(shape_of(&one), shape_of(&other), "{other}");
    }
}
