//! Reading and writing the fields of `metadata` in an untyped object.

use serde_json::{Map, Value};

static NULL: Value = Value::Null;

/// The value at a path of field names; null when a step is missing.
pub(crate) fn at<'a>(object: &'a Value, path: &[&str]) -> &'a Value {
    path.iter()
        .try_fold(object, |value, step| value.get(*step))
        .unwrap_or(&NULL)
}

/// The string at a path; empty when missing.
pub(crate) fn text<'a>(object: &'a Value, path: &[&str]) -> &'a str {
    at(object, path).as_str().unwrap_or_default()
}

/// The integer at a path; zero when missing.
pub(crate) fn int(object: &Value, path: &[&str]) -> i64 {
    at(object, path).as_i64().unwrap_or_default()
}

/// The items at a path; none when missing.
pub(crate) fn items<'a>(object: &'a Value, path: &[&str]) -> &'a [Value] {
    at(object, path)
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// A string field of `metadata`; empty when missing.
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

/// The revision in `metadata.resourceVersion`; zero when there is none.
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

/// Sets a field below a path of objects, which are made where they are missing. A null removes.
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

/// Sets a field of the object itself, to null if need be.
pub(crate) fn set_field(object: &mut Value, field: &str, value: Value) {
    as_map(object).insert(field.to_owned(), value);
}

/// Sets a field of `metadata`. A null removes.
pub(crate) fn set_meta(object: &mut Value, field: &str, value: Value) {
    set(object, &["metadata", field], value);
}

/// The map in `value`, which becomes an empty one if it is anything else.
pub(crate) fn as_map(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    let Value::Object(map) = value else {
        unreachable!("made an object above")
    };
    map
}
