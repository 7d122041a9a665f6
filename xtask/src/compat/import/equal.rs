//! Compares CRDs with those that controller-gen prints, without what differs in every CRD.

use anyhow::Result;
use serde_json::{Map, Value};

/// Returns the CRDs of a text with several YAML documents.
pub(super) fn crds(text: &str) -> Result<Vec<Value>> {
    let documents: Vec<Option<Value>> = serde_saphyr::from_multiple(text)?;
    let is_crd = |it: &Value| {
        it.get("kind")
            .is_some_and(|it| it == "CustomResourceDefinition")
    };
    Ok(documents.into_iter().flatten().filter(is_crd).collect())
}

/// Returns the differences, each with the name of the CRD and the path.
pub(super) fn differences(ours: Vec<Value>, originals: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    let mut ours: Map<String, Value> = ours.into_iter().map(|crd| (name(&crd), crd)).collect();
    for original in originals {
        let name = name(original);
        match ours.remove(&name) {
            Some(ours) => {
                let mut paths = Vec::new();
                compare(
                    "",
                    &normalized(ours),
                    &normalized(original.clone()),
                    &mut paths,
                );
                found.extend(paths.into_iter().map(|path| format!("{name} {path}")));
            }
            None => found.push(format!("{name} is missing")),
        }
    }
    found.extend(
        ours.keys()
            .map(|name| format!("{name} is not in the original")),
    );
    found
}

fn name(crd: &Value) -> String {
    let name = crd.pointer("/metadata/name").and_then(Value::as_str);
    name.unwrap_or_default().to_owned()
}

/// Removes what differs in every CRD: labels, the version of controller-gen, the list kind that API
/// servers set, the conversion, which kubebuilder adds in a patch, and the fields of every object,
/// which API servers add. The versions, required fields and values of enums are sorted.
fn normalized(mut crd: Value) -> Value {
    if let Some(fields) = crd.as_object_mut() {
        fields.remove("metadata");
    }
    let Some(spec) = crd.get_mut("spec").and_then(Value::as_object_mut) else {
        return crd;
    };
    spec.remove("conversion");
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        names.remove("listKind");
    }
    if let Some(versions) = spec.get_mut("versions").and_then(Value::as_array_mut) {
        versions.sort_by_key(|version| version.get("name").map(Value::to_string));
        for version in versions {
            let fields = version.pointer_mut("/schema/openAPIV3Schema/properties");
            if let Some(fields) = fields.and_then(Value::as_object_mut) {
                for name in ["apiVersion", "kind", "metadata"] {
                    fields.remove(name);
                }
            }
            let conditions =
                "/schema/openAPIV3Schema/properties/status/properties/conditions/items";
            if let Some(items) = version.pointer_mut(conditions) {
                remove_descriptions(items);
            }
        }
    }
    same_meaning(&mut crd);
    crd
}

/// Removes the descriptions of `metav1.Condition` and its fields.
fn remove_descriptions(items: &mut Value) {
    let fields = items.get_mut("properties").and_then(Value::as_object_mut);
    let fields = fields.into_iter().flat_map(Map::values_mut);
    for field in fields {
        field.as_object_mut().map(|it| it.remove("description"));
    }
    items.as_object_mut().map(|it| it.remove("description"));
}

/// Sorts the lists whose order has no meaning, and removes `anyOf` of a value that
/// `x-kubernetes-int-or-string` describes.
fn same_meaning(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if fields.contains_key("x-kubernetes-int-or-string") {
                fields.remove("anyOf");
            }
            for (name, value) in fields.iter_mut() {
                if let ("required" | "enum", Value::Array(items)) = (name.as_str(), &mut *value) {
                    items.sort_by_key(Value::to_string);
                }
                same_meaning(value);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(same_meaning),
        _ => {}
    }
}

/// Adds the path of each difference, with both values.
fn compare(path: &str, ours: &Value, original: &Value, found: &mut Vec<String>) {
    match (ours, original) {
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
        (left, right) => found.push(format!("{path}: {left} instead of {right}")),
    }
}
