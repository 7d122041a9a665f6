use serde_json::json;

use super::*;

/// Checks whether two objects have the same projection by `fields`.
fn check(fields: &Value, one: Value, other: Value, is_same: bool) {
    let set = FieldSetRef::new(fields).unwrap();
    assert_eq!(
        set.project(&one) == set.project(&other),
        is_same,
        "{one} {other}"
    );
}

#[test]
fn an_empty_object_is_as_a_missing_field() {
    let with = |resources: Value| json!({"spec": {"image": "a", "resources": resources}});
    let fields = json!({"f:spec": {"f:resources": {}, "f:image": {}}});
    let without = json!({"spec": {"image": "a"}});
    check(&fields, with(json!({})), with(Value::Null), true);
    check(&fields, with(json!({})), without, true);
    let limits = json!({"limits": {"cpu": "1"}});
    check(&fields, with(json!({})), with(limits), false);
}

#[test]
fn items_are_found_by_key_value_and_index() {
    let fields = json!({"f:a": {
        "k:{\"name\":\"x\",\"port\":80}": {".": {}, "f:image": {}}, "v:\"y\"": {}, "i:0": {},
    }});
    let list = |image: &str| json!({"name": "x", "port": 80, "image": image});
    let same = json!({"a": ["first", list("one"), {"name": "x", "port": 81, "image": "two"}, "y"]});
    check(
        &fields,
        same.clone(),
        json!({"a": ["first", "y", list("one")]}),
        true,
    );
    check(
        &fields,
        same.clone(),
        json!({"a": ["first", "y", list("two")]}),
        false,
    );
    check(
        &fields,
        same.clone(),
        json!({"a": ["first", list("one")]}),
        false,
    );
    check(
        &fields,
        same,
        json!({"a": ["other", "y", list("one")]}),
        false,
    );
}

#[test]
fn the_set_of_fields_is_part_of_the_projection() {
    let (one, more) = (json!({"f:a": {}}), json!({"f:a": {}, "f:b": {}}));
    let object = json!({"a": 1});
    let [one, more] = [&one, &more].map(|fields| FieldSetRef::new(fields).unwrap());
    assert_ne!(one.project(&object), more.project(&object));
}
