//! The changes that a server makes to the metadata of an object on a write.

use serde_json::{Map, Value, json};

use crate::RequestInfo;

/// Returns the metadata of an object. Adds empty metadata if the object has none.
pub(super) fn metadata(object: &mut Value) -> Option<&mut Map<String, Value>> {
    let fields = object.as_object_mut()?;
    let metadata = fields.entry("metadata").or_insert_with(|| json!({}));
    metadata.as_object_mut()
}

/// Sets the metadata that a server sets on a new object.
pub(super) fn created(object: &mut Value, info: &RequestInfo, name: &str, number: usize) {
    let namespace = info.namespace.clone();
    let Some(metadata) = metadata(object) else {
        return;
    };
    metadata.insert("name".to_owned(), name.into());
    if let Some(namespace) = namespace.filter(|_| info.plural != "namespaces") {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
    let uid = format!("00000000-0000-4000-8000-{number:012}");
    metadata.insert("uid".to_owned(), uid.into());
    metadata
        .entry("generation")
        .or_insert_with(|| Value::from(1));
    metadata.insert("resourceVersion".to_owned(), version(number).into());
}

/// Sets the resourceVersion of a changed object, and increments its generation if more than
/// metadata and status changed.
pub(super) fn updated(object: &mut Value, before: &Value, number: usize) {
    let intent = |value: &Value| {
        let mut value = value.clone();
        if let Value::Object(fields) = &mut value {
            fields.remove("metadata");
            fields.remove("status");
        }
        value
    };
    let changed = intent(object) != intent(before);
    let generation = before
        .pointer("/metadata/generation")
        .and_then(Value::as_i64);
    let kept = ["name", "namespace", "uid", "creationTimestamp"];
    let old = before.get("metadata").cloned().unwrap_or_default();
    let Some(metadata) = metadata(object) else {
        return;
    };
    for name in kept {
        if let Some(value) = old.get(name) {
            metadata.insert(name.to_owned(), value.clone());
        }
    }
    if let Some(generation) = generation {
        let generation = generation.saturating_add(i64::from(changed));
        metadata.insert("generation".to_owned(), generation.into());
    }
    metadata.insert("resourceVersion".to_owned(), version(number).into());
}

/// Returns whether two objects are equal except for their resourceVersion and the times at which
/// their field managers wrote.
pub(super) fn is_same(object: &Value, before: &Value) -> bool {
    let unversioned = |value: &Value| {
        let mut value = value.clone();
        if let Some(metadata) = metadata(&mut value) {
            metadata.remove("resourceVersion");
            let entries = metadata.get_mut("managedFields");
            let entries = entries.and_then(Value::as_array_mut);
            for entry in entries.into_iter().flatten() {
                entry.as_object_mut().map(|entry| entry.remove("time"));
            }
        }
        value
    };
    unversioned(object) == unversioned(before)
}

/// Returns the resourceVersion of the `number`-th change. The value is far above the
/// resourceVersions of real servers.
fn version(number: usize) -> String {
    format!("9000000000{number:06}")
}

/// Returns the Scale of an object, from its `spec.replicas` and `status.replicas`.
pub(super) fn scale(object: &Value) -> Value {
    let field = |pointer: &str| object.pointer(pointer).cloned().unwrap_or_default();
    json!({
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {
            "name": field("/metadata/name"),
            "namespace": field("/metadata/namespace"),
            "uid": field("/metadata/uid"),
            "resourceVersion": field("/metadata/resourceVersion"),
        },
        "spec": {"replicas": object.pointer("/spec/replicas").cloned().unwrap_or(0.into())},
        "status": {"replicas": object.pointer("/status/replicas").cloned().unwrap_or(0.into())},
    })
}
