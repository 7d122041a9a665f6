use serde_json::{Value, json};

use super::samples;

/// Returns a CRD with this schema of the spec.
fn crd(spec: Value) -> Value {
    json!({
        "metadata": {"name": "robots.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Robot", "plural": "robots"},
            "scope": "Namespaced",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "properties": {"spec": spec}},
            }}],
        },
    })
}

fn problems(properties: Value) -> Vec<String> {
    opkit_apiserver::crd_problems(&[crd(json!({"type": "object", "properties": properties}))])
}

#[test]
fn a_valid_crd_has_no_problems() {
    let none: [String; 0] = [];
    assert_eq!(
        problems(json!({"size": {"type": "integer", "default": 1}})),
        none
    );
}

#[test]
fn problems_name_the_version_and_the_field() {
    let start = |properties: Value, expected: &str| {
        let found = problems(properties);
        let first = found.first().cloned().unwrap_or_default();
        assert!(first.starts_with(expected), "{first}");
    };
    // The type of a rule.
    start(
        json!({"size": {"type": "integer", "x-kubernetes-validations": [{"rule": "self == 'a'"}]}}),
        "robots.example.com/v1 .spec.size: x-kubernetes-validations[0].rule: Invalid value",
    );
    // The cost of a rule.
    start(
        json!({"tools": {"type": "array", "items": {"type": "string", "x-kubernetes-validations": [
            {"rule": "self.matches('^a+$')"},
        ]}}}),
        "robots.example.com/v1 .spec.tools[*]: x-kubernetes-validations[0].rule: Forbidden: \
         estimated rule cost exceeds budget",
    );
    // A default that its own pattern forbids.
    start(
        json!({"name": {"type": "string", "pattern": "^a$", "default": "b"}}),
        "robots.example.com/v1 .spec.name: default: Invalid value",
    );
    // A key that the items may not have.
    start(
        json!({"tools": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {"name": {"type": "string"}}},
        }}),
        "robots.example.com/v1 .spec.tools[*].name: default: Required value",
    );
}

#[test]
fn two_kinds_with_the_same_crd_are_a_problem() {
    let crd = crd(json!({"type": "object"}));
    assert_eq!(
        opkit_apiserver::crd_problems(&[crd.clone(), crd]),
        ["robots.example.com: two kinds of the operator have this CRD"]
    );
}

#[test]
fn samples_are_validated_as_a_server_does() {
    let crds = [crd(json!({
        "type": "object",
        "required": ["image"],
        "properties": {
            "image": {"type": "string", "maxLength": 9},
            "size": {"type": "integer", "default": 1},
        },
        "x-kubernetes-validations": [{"rule": "self.size < 3", "message": "too large"}],
    }))];
    let check = |version: &str, spec: Value, expected: &[&str]| {
        let object = json!({
            "apiVersion": format!("example.com/{version}"),
            "kind": "Robot",
            "metadata": {"name": "one"},
            "spec": spec,
        });
        assert_eq!(samples::of_object(&object, &crds).unwrap(), expected);
    };
    check("v1", json!({"image": "a"}), &[]);
    check(
        "v1",
        json!({"image": "a", "sise": 1}),
        &["Robot \"one\": unknown field \"spec.sise\""],
    );
    check(
        "v1",
        json!({"image": "a", "size": 3}),
        &["Robot \"one\": spec: Invalid value: too large"],
    );
    check(
        "v1",
        json!({}),
        &["Robot \"one\": spec.image: Required value"],
    );
    check(
        "v2",
        json!({}),
        &["Robot \"one\": Robot has no version \"v2\""],
    );
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}});
    assert_eq!(
        samples::of_object(&map, &crds).unwrap(),
        Vec::<String>::new()
    );
}
