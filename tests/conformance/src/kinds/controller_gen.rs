//! The CRDs of the kinds in `torture`, compared with those that controller-gen prints for the same
//! kinds in Go. `cargo xtask compat controller-gen` prints them again and compares them with the
//! stored file.

use kube::CustomResourceExt;
use serde_json::{Map, Value, json};

use super::torture::{Retired, Torture};

/// CRDs that controller-gen 0.21.0 printed for `controller-gen/types.go`.
const PRINTED: &str = include_str!("../../controller-gen/crds.yaml");

/// Differences that remain: the path of a value or of the values below it, and the reason.
const DIFFERENCES: [(&str, &str); 5] = [
    (
        "spec.properties.fixed.x-kubernetes-validations[0].message",
        "the message names the field",
    ),
    (
        "spec.properties.port.anyOf",
        "k8s-openapi's type has x-kubernetes-int-or-string only, which says the same",
    ),
    ("spec.properties.flexible.anyOf", "as for port"),
    ("spec.properties.ports.items.anyOf", "as for port"),
    (
        "spec.properties.ratio.format",
        "the format names the precision of the Rust type",
    ),
];

#[test]
fn the_crds_are_those_of_controller_gen() {
    let printed: Vec<Value> = serde_saphyr::from_multiple(PRINTED).unwrap();
    let ours = [Torture::crd(), Retired::crd()].map(|crd| serde_json::to_value(crd).unwrap());
    assert_eq!(printed.len(), ours.len());
    let mut found = Vec::new();
    for (ours, printed) in ours.into_iter().zip(printed) {
        compare("", &normalized(ours), &normalized(printed), &mut found);
    }
    let is_of = |path: &str, listed: &str| {
        let below = path.split_once(listed).map(|(_, below)| below);
        below.is_some_and(|below| below.is_empty() || below.starts_with(['.', '[']))
    };
    let is_listed = |path: &str| DIFFERENCES.iter().any(|(listed, _)| is_of(path, listed));
    let unlisted: Vec<_> = found.iter().filter(|(path, ..)| !is_listed(path)).collect();
    assert!(
        unlisted.is_empty(),
        "differences that are not listed: {unlisted:#?}"
    );
    for (path, _) in DIFFERENCES {
        let is_found = found.iter().any(|(found, ..)| is_of(found, path));
        assert!(is_found, "{path} is listed, but does not differ");
    }
}

/// Removes what differs in every CRD: the texts of descriptions, the version of controller-gen, the
/// list kind that API servers set, and the fields of every object, which API servers add.
fn normalized(mut crd: Value) -> Value {
    remove_descriptions(&mut crd);
    let path = "/spec/versions/0/schema/openAPIV3Schema/properties";
    if let Some(root) = crd.pointer_mut(path).and_then(Value::as_object_mut) {
        for name in ["apiVersion", "kind", "metadata"] {
            root.remove(name);
        }
    }
    if let Some(names) = crd
        .pointer_mut("/spec/names")
        .and_then(Value::as_object_mut)
    {
        names.remove("listKind");
    }
    let annotations = crd.pointer_mut("/metadata/annotations");
    if let Some(annotations) = annotations.and_then(Value::as_object_mut) {
        annotations.remove("controller-gen.kubebuilder.io/version");
        if annotations.is_empty() {
            crd["metadata"]
                .as_object_mut()
                .unwrap()
                .remove("annotations");
        }
    }
    sort_lists(&mut crd);
    crd
}

fn remove_descriptions(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            // A property can have this name too.
            if fields.get("description").is_some_and(Value::is_string)
                && fields.contains_key("type")
                || fields.contains_key("x-kubernetes-int-or-string")
            {
                fields.remove("description");
            }
            fields.values_mut().for_each(remove_descriptions);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_descriptions),
        _ => {}
    }
}

/// Sorts the lists whose order has no meaning: required fields, and values of enums.
fn sort_lists(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                if let (true, Value::Array(items)) =
                    (name == "required" || name == "enum", &mut *value)
                {
                    items.sort_by_key(Value::to_string);
                }
                sort_lists(value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(sort_lists),
        _ => {}
    }
}

/// Adds each difference: its path, our value and the other value.
fn compare(path: &str, ours: &Value, printed: &Value, found: &mut Vec<(String, Value, Value)>) {
    match (ours, printed) {
        (Value::Object(left), Value::Object(right)) => {
            let names: Map<String, Value> = left.clone().into_iter().chain(right.clone()).collect();
            for name in names.keys() {
                let (left, right) = (left.get(name), right.get(name));
                let (left, right) = (left.unwrap_or(&Value::Null), right.unwrap_or(&Value::Null));
                compare(&format!("{path}.{name}"), left, right, found);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (at, (left, right)) in left.iter().zip(right).enumerate() {
                compare(&format!("{path}[{at}]"), left, right, found);
            }
        }
        (Value::Number(left), Value::Number(right)) if left.as_f64() == right.as_f64() => {}
        (left, right) if left == right => {}
        (left, right) => found.push((path.to_owned(), left.clone(), right.clone())),
    }
}

#[test]
fn differences_are_found() {
    let mut found = Vec::new();
    compare(
        "",
        &json!({"a": [1, 2], "b": 1}),
        &json!({"a": [1, 3], "c": 1.0}),
        &mut found,
    );
    let paths: Vec<&str> = found.iter().map(|(path, ..)| path.as_str()).collect();
    assert_eq!(paths, [".a[1]", ".b", ".c"]);
}
