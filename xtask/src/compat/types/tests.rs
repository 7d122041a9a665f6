use serde_json::{Value, json};

use super::notes::Notes;
use super::{compare, samples};

fn crd(schema: Value) -> Value {
    compare::normal(&json!({
        "metadata": {"name": "robots.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Robot", "plural": "robots"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}}],
        },
    }))
}

fn differences(original: Value, ours: Value) -> Vec<String> {
    let found = compare::differences(&crd(original), &crd(ours));
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn values_that_mean_the_same_are_no_difference() {
    let original = json!({
        "description": "A robot.\nIt  moves.", "required": ["b", "a"], "nullable": false,
        "properties": {
            "a": {"type": "integer", "minimum": 1.0, "x-kubernetes-int-or-string": true, "anyOf": []},
            "b": {"default": {}, "properties": {"c": {"default": 1}}},
        },
    });
    let ours = json!({
        "description": "A robot. It moves.", "required": ["a", "b"],
        "properties": {
            "a": {"type": "integer", "minimum": 1, "x-kubernetes-int-or-string": true},
            "b": {"default": {"c": 1}, "properties": {"c": {"default": 1}}},
        },
    });
    assert_eq!(differences(original, ours), Vec::<String>::new());
}

#[test]
fn differences_have_paths() {
    let original = json!({"properties": {"spec": {"required": ["a"], "properties": {
        "a": {"items": {"type": "string", "maxLength": 3}},
    }}}});
    let ours =
        json!({"properties": {"spec": {"properties": {"a": {"items": {"type": "string"}}}}}});
    assert_eq!(
        differences(original, ours),
        [
            ".spec.a[*] maxLength: the original has 3, the type null",
            ".spec.a required: the original has true, the type false",
        ]
    );
}

#[test]
fn a_listed_difference_is_one_of_all_places_with_the_type() {
    let notes = Notes::read(
        "//! The kind.\n//!\n//! Differences from the CRD:\n//! - `.spec.a.x`: the default is left out\n//! - `.spec.free`: the fields have no types, because unknown fields are kept\n",
    );
    let inner = json!({"properties": {"x": {"type": "string", "default": "1"}}});
    let schema = json!({"properties": {"spec": {"properties": {
        "a": inner, "b": {"items": inner}, "c": {"properties": {"x": {}, "y": {}}},
    }}}});
    assert!(notes.cover(&schema, ".spec.a.x", "default"));
    assert!(notes.cover(&schema, ".spec.b[*].x", "default"));
    assert!(!notes.cover(&schema, ".spec.c.x", "default"));
    assert!(!notes.cover(&schema, ".spec.a.x", "maximum"));
    assert!(notes.cover(&schema, ".spec.free.inner", "type"));
    assert!(!notes.is_without_crd());
}

#[test]
fn samples_are_compared_as_a_server_stores_them() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "size": {"type": "integer", "default": 2},
        "tags": {"type": "array", "items": {"type": "string"}},
        "power": {"type": "object"},
        "key": {"type": "string", "format": "byte"},
    }}}});
    let object = json!({
        "metadata": {"name": "one"},
        "spec": {"tags": [], "unknown": 1, "power": {}, "size": null, "key": "YQ=="},
    });
    let expected = json!({
        "metadata": {"name": "one"},
        "spec": {"power": {}, "size": 2, "key": "YQ=="},
    });
    assert_eq!(samples::normal(&schema, &object).unwrap(), expected);
    let mut admitted = object.clone();
    assert_eq!(samples::admit(&schema, &mut admitted).unwrap(), None);
    let mut wrong = json!({"spec": {"tags": ["a", 1], "power": null}});
    let problem = samples::admit(&schema, &mut wrong).unwrap();
    assert_eq!(wrong, json!({"spec": {"tags": ["a", 1]}}));
    assert!(problem.unwrap().starts_with("spec.tags[1]: Invalid value"));
}

#[test]
fn the_blocks_of_a_page_are_its_yaml() {
    let page = "# Page\n\n```yaml\na: 1\n```\n\n- item\n  ```yaml\n  b:\n    c: 2\n  ```\n```json\n{}\n```\n";
    assert_eq!(samples::blocks(page), ["a: 1\n", "b:\n  c: 2\n"]);
}
