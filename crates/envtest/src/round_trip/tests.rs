use std::sync::Arc;

use opkit_apimachinery::conversion::{Conversion, Convert, Functions, KindVersions};
use opkit_apimachinery::schema::Schema;
use opkit_random::Random;
use serde_json::{Value, json};

use super::random_object::{RandomObjects, is_valid};
use super::shrink::Smallest;
use super::{is_zero, pattern, problems, without_empty};

/// A schema with every keyword that the generator knows.
fn schema() -> Schema {
    Schema::parse(&json!({
        "type": "object",
        "required": ["spec"],
        "properties": {"spec": {
            "type": "object",
            "required": ["name", "mode", "port", "ratio"],
            "properties": {
                "name": {"type": "string", "minLength": 3, "maxLength": 5},
                "endpoint": {"type": "string", "pattern": "^[^:]+:[1-9][0-9]{0,4}$"},
                "mode": {"type": "string", "enum": ["a", "b"]},
                "port": {"type": "integer", "format": "int32", "minimum": 1, "maximum": 65535},
                "even": {"type": "integer", "multipleOf": 2, "minimum": 0, "exclusiveMaximum": true, "maximum": 10},
                "ratio": {"type": "number", "minimum": 0, "maximum": 1},
                "since": {"type": "string", "format": "date-time"},
                "address": {"type": "string", "format": "ipv4"},
                "id": {"type": "string", "format": "uuid"},
                "memory": {"x-kubernetes-int-or-string": true},
                "any": {"x-kubernetes-preserve-unknown-fields": true},
                "manifest": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 2},
                "tags": {"type": "array", "x-kubernetes-list-type": "set", "maxItems": 2, "items": {"type": "string", "enum": ["x", "y"]}},
                "tools": {
                    "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
                    "minItems": 1,
                    "items": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "maxLength": 1}}},
                },
                "power": {
                    "type": "object",
                    "properties": {"mains": {"type": "object"}, "battery": {"type": "object"}},
                    "oneOf": [{"required": ["mains"]}, {"required": ["battery"]}],
                },
                "nothing": {"type": "string", "nullable": true},
            },
        }},
    }))
    .unwrap()
}

#[test]
fn random_objects_fit_their_schema_and_are_the_same_for_a_seed() {
    let schema = schema();
    let mut seen = std::collections::HashSet::new();
    for seed in 0..300 {
        let object = RandomObjects::new(seed).object(&schema).unwrap();
        assert!(is_valid(&object, &schema), "{object}");
        assert_eq!(RandomObjects::new(seed).object(&schema), Ok(object.clone()));
        seen.insert(object.to_string());
    }
    assert!(seen.len() > 290, "{}", seen.len());
}

#[test]
fn every_optional_field_occurs_and_is_absent() {
    let schema = schema();
    let objects: Vec<Value> = (0..200)
        .filter_map(|seed| RandomObjects::new(seed).object(&schema).ok())
        .collect();
    let fields = &schema.properties.get("spec").unwrap().properties;
    for name in fields.keys() {
        let has = |object: &&Value| object["spec"].get(name).is_some();
        let count = objects.iter().filter(has).count();
        let is_required = ["name", "mode", "port", "ratio"].contains(&name.as_str());
        assert!(
            count > 0 && (is_required || count < objects.len()),
            "{name}: {count}"
        );
    }
}

#[test]
fn a_schema_that_no_value_fits_has_no_objects() {
    let schema = Schema::parse(&json!({
        "type": "object", "required": ["spec"],
        "properties": {"spec": {"type": "string", "pattern": "a", "maxLength": 0}},
    }))
    .unwrap();
    let error = RandomObjects::new(1).object(&schema).unwrap_err();
    assert!(error.starts_with("spec: "), "{error}");
}

#[test]
fn a_text_fits_its_pattern_format_and_length_together() {
    let schema = Schema::parse(&json!({
        "type": "object", "required": ["spec"],
        "properties": {"spec": {
            "type": "string", "format": "date-time", "pattern": "Z$", "maxLength": 20, "minLength": 20,
        }},
    }))
    .unwrap();
    for seed in 0..50 {
        RandomObjects::new(seed).object(&schema).unwrap();
    }
}

/// A kind of two versions. Objects whose spec has the field `lost` cannot be converted.
fn kind(schema: Schema) -> KindVersions {
    let convert: Convert = |fields, _| match fields["spec"].get("lost") {
        Some(_) => Err(serde::de::Error::custom("the field lost")),
        None => Ok(Conversion {
            reversed: fields.clone(),
            fields: fields.clone(),
        }),
    };
    let functions = Functions {
        fields: &["spec"],
        to_hub: convert,
        from_hub: convert,
        notes: |_| None,
    };
    let schema = Arc::new(schema);
    let kind = KindVersions::new("example.com", "Robot", "v1", schema.clone());
    kind.spoke("v1alpha1", schema, functions)
}

#[test]
fn objects_that_cannot_be_created_do_not_hide_a_failing_conversion() {
    // No text fits `none`. So the objects of some seeds do not fit the schema, whose fields are
    // chosen at random.
    let none = json!({"type": "string", "pattern": "a", "maxLength": 0});
    let properties =
        json!({"lost": {"type": "string"}, "a": none, "b": none, "c": none, "d": none});
    let spec = json!({"type": "object", "properties": properties});
    let schema = json!({"type": "object", "required": ["spec"], "properties": {"spec": spec}});
    let schema = Schema::parse(&schema).unwrap();
    let is_created = |seed| RandomObjects::new(seed).object(&schema).is_ok();
    assert!((0..200).any(|seed| !is_created(seed)));
    let found = problems(&kind(schema), 200);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("the field lost"), "{found:?}");
}

#[test]
fn a_schema_without_random_objects_is_a_problem() {
    let spec = json!({"type": "string", "pattern": "a", "maxLength": 0});
    let schema = json!({"type": "object", "required": ["spec"], "properties": {"spec": spec}});
    let found = problems(&kind(Schema::parse(&schema).unwrap()), 10);
    let [first, _] = found.as_slice() else {
        panic!("{found:?}");
    };
    assert!(
        first.starts_with("Robot v1 -> v1alpha1 was not checked: 10 of 10 "),
        "{first}"
    );
    assert!(first.contains("spec: "), "{first}");
}

#[test]
fn texts_match_their_pattern() {
    for source in [
        "^[a-z]+$",
        "^v[1-9](alpha|beta)?$",
        "^([a-z]{2,3}-)*end$",
        "^[^:/]{3}$",
        "x|yy",
    ] {
        let compiled = regex_syntax::parse(source);
        assert!(compiled.is_ok());
        let schema = json!({"type": "object", "properties": {"spec": {"type": "string", "pattern": source}}});
        let schema = Schema::parse(&schema).unwrap();
        for seed in 0..50 {
            let text = pattern::random_match(source, &mut Random::new(seed)).unwrap();
            assert!(
                is_valid(&json!({"spec": text}), &schema),
                "{source}: {text:?}"
            );
        }
    }
    assert_eq!(pattern::random_match("(", &mut Random::new(1)), None);
}

#[test]
fn the_smallest_failing_object_is_found() {
    let object = json!({
        "metadata": {"name": "random", "labels": {"a": "b"}},
        "spec": {
            "port": 93_471, "names": ["one", "two", "three:four"], "unused": {"deep": [1, 2]},
            "text": "hello world",
        },
        "status": {"ready": 3},
    });
    let mut smallest = Smallest::new(|candidate: &Value| {
        let port = candidate["spec"]["port"].as_i64().unwrap_or_default();
        let names = candidate["spec"]["names"].as_array();
        let has_colon = |name: &Value| name.as_str().is_some_and(|it| it.contains(':'));
        port > 65_535 && names.is_some_and(|names| names.iter().any(has_colon))
    });
    let found = smallest.of(object);
    let expected =
        json!({"metadata": {"name": "random"}, "spec": {"port": 65_536, "names": [":"]}});
    assert_eq!(found, expected);
    assert!(smallest.tried() > 5);
}

#[test]
fn empty_values_are_like_absent_ones() {
    let mut fields = json!({"a": null, "b": [], "c": {"d": {}}, "e": [{"f": null}], "g": 0});
    without_empty(fields.as_object_mut().unwrap());
    assert_eq!(fields, json!({"e": [{}], "g": 0}));
    assert!(is_zero(&json!({"a": 0, "b": {"c": ""}})) && !is_zero(&json!({"a": 1})));
}
