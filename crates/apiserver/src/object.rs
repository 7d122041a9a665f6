//! Access to the fields of an untyped object.

use serde_json::{Map, Value};

static NULL: Value = Value::Null;

/// Returns the value at a path of field names, or null if the field is missing.
pub(crate) fn at<'a>(object: &'a Value, path: &[&str]) -> &'a Value {
    path.iter()
        .try_fold(object, |value, step| value.get(*step))
        .unwrap_or(&NULL)
}

/// Returns the string at a path, or an empty string if the field is missing.
pub(crate) fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    at(object, path).as_str().unwrap_or_default()
}

/// Returns the integer at a path, or 0 if the field is missing.
pub(crate) fn int(object: &Value, path: &[&str]) -> i64 {
    at(object, path).as_i64().unwrap_or_default()
}

/// Returns the items of the list at a path, or an empty list if the field is missing.
pub(crate) fn items<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    at(object, path)
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// Returns a string field of `metadata`, or an empty string if the field is missing.
pub(crate) fn meta<'a>(object: &'a Value, field: &str) -> &'a str {
    text(object, &["metadata", field])
}

pub(crate) fn name(object: &Value) -> &str {
    meta(object, "name")
}

pub(crate) fn namespace(object: &Value) -> &str {
    meta(object, "namespace")
}

pub(crate) fn uid(object: &Value) -> &str {
    meta(object, "uid")
}

pub(crate) fn labels(object: &Value) -> Option<&Map<String, Value>> {
    at(object, &["metadata", "labels"]).as_object()
}

/// Returns the revision in `metadata.resourceVersion`, or 0 if it is missing.
pub(crate) fn revision(object: &Value) -> u64 {
    meta(object, "resourceVersion").parse().unwrap_or_default()
}

pub(crate) fn is_deleting(object: &Value) -> bool {
    !at(object, &["metadata", "deletionTimestamp"]).is_null()
}

pub(crate) fn finalizers(object: &Value) -> Vec<&str> {
    items(object, &["metadata", "finalizers"])
        .iter()
        .filter_map(Value::as_str)
        .collect()
}

/// Sets the field at a path, and creates missing objects on the path. The value null removes the
/// field.
pub(crate) fn set(object: &mut Value, path: &[&str], value: Value) {
    let Some((last, parents)) = path.split_last() else {
        return;
    };
    if value.is_null() {
        if let Some(parent) = parents
            .iter()
            .try_fold(object, |value, step| value.get_mut(*step))
            && let Some(map) = parent.as_object_mut()
        {
            map.remove(*last);
        }
        return;
    }
    let mut parent = object;
    for step in parents {
        let map = as_map(parent);
        parent = map
            .entry((*step).to_owned())
            .or_insert_with(|| Value::Object(Map::new()));
    }
    as_map(parent).insert((*last).to_owned(), value);
}

/// Sets a top-level field of the object. Unlike in [`set`], the value null is stored as null.
pub(crate) fn set_field(object: &mut Value, field: &str, value: Value) {
    as_map(object).insert(field.to_owned(), value);
}

/// Sets a field of `metadata`. The value null removes the field.
pub(crate) fn set_meta(object: &mut Value, field: &str, value: Value) {
    set(object, &["metadata", field], value);
}

/// Returns the map in `value`. If `value` is not a map, replaces it by an empty map.
pub(crate) fn as_map(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let Value::Object(map) = value else {
        unreachable!("the value is an object")
    };
    map
}
