use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::schema::NoDefinitions;
use crate::structural::apply_defaults;

fn errors(schema: &Value, object: &Value) -> Vec<FieldError> {
    let schema = Schema::parse(schema).unwrap();
    let typed = Typed::new(&schema, &NoDefinitions);
    let mut object = object.clone();
    apply_defaults(&mut object, &typed);
    validate(&object, &typed)
}

/// Responses of kube-apiserver 1.36.3 to custom resources with one invalid field each.
#[test]
fn errors_are_those_of_a_real_server() {
    fn check(line: &str) {
        let case: Value = serde_json::from_str(line).unwrap();
        let name = case["field"].as_str().unwrap();
        let spec = json!({"type": "object", "properties": {name: case["schema"]}});
        let schema = json!({"type": "object", "properties": {"spec": spec}});
        let found = errors(&schema, &json!({"spec": {name: case["value"]}}));
        let found: BTreeSet<String> = found
            .iter()
            .map(|error| {
                json!({"field": error.field, "reason": error.reason(), "message": error.detail})
                    .to_string()
            })
            .collect();
        let expected: BTreeSet<String> = case["errors"]
            .as_array()
            .unwrap()
            .iter()
            .map(Value::to_string)
            .collect();
        assert_eq!(found, expected, "{line}");
    }
    let recorded = include_str!("../../../testdata/validation.jsonl");
    assert!(recorded.lines().count() > 150);
    recorded.lines().for_each(check);
}

#[test]
fn errors_are_in_order() {
    fn check(schema: Value, object: Value, expected: &[&str]) {
        let found: Vec<String> = errors(&schema, &object)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(found, expected);
    }
    let spec = json!({
        "type": "object",
        "required": ["image", "mode"],
        "properties": {
            "image": {"type": "string"},
            "mode": {"type": "string", "enum": ["a", "b"]},
            "ports": {
                "type": "array",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {"type": "object", "properties": {"name": {"type": "string"}}},
            },
            "replicas": {"type": "integer", "maximum": 100},
        },
    });
    let schema = json!({"type": "object", "required": ["spec"], "properties": {"spec": spec}});
    check(schema.clone(), json!({}), &["spec: Required value"]);
    check(
        schema.clone(),
        json!({"spec": 1}),
        &[r#"spec: Invalid value: "integer": spec in body must be of type object: "integer""#],
    );
    check(
        schema,
        json!({"spec": {
            "image": 1, "replicas": 101, "ports": [{"name": "a"}, {"name": "a"}],
        }}),
        &[
            r#"spec.image: Invalid value: "integer": spec.image in body must be of type string: "integer""#,
            "spec.replicas: Invalid value: 101: spec.replicas in body should be less than or equal to 100",
            "spec.mode: Required value",
            r#"spec.ports[1]: Duplicate value: {"name":"a"}"#,
        ],
    );
}

#[test]
fn built_in_quantities_and_ports_are_lenient() {
    fn check(value: Value) {
        let schema = Schema::parse(&json!({
            "type": "object",
            "properties": {
                "cpu": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.api.resource.Quantity"},
                "port": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.util.intstr.IntOrString"},
            },
        }))
        .unwrap();
        assert_eq!(
            validate(&value, &Typed::new(&schema, &NoDefinitions)),
            [],
            "{value}"
        );
    }
    check(json!({"cpu": 1, "port": 80}));
    check(json!({"cpu": 0.5, "port": "http"}));
    check(json!({"cpu": "500m"}));
}

#[test]
fn built_in_kinds_accept_nulls_and_duplicates() {
    fn check(metadata: Value, expected: usize) {
        let schema = Schema::parse(
            &json!({"type": "object", "required": ["rules"], "properties": {
                "metadata": metadata,
                "rules": {"type": "array", "items": {"type": "string"}},
                "set": {
                    "type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set",
                },
            }}),
        )
        .unwrap();
        let object = json!({"metadata": {}, "rules": null, "set": ["a", "a"]});
        assert_eq!(
            validate(&object, &Typed::new(&schema, &NoDefinitions)).len(),
            expected
        );
    }
    check(json!({"type": "object"}), 2);
    check(json!({"$ref": "#/components/schemas/ObjectMeta"}), 0);
}
