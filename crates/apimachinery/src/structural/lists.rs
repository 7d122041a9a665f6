//! Checks the uniqueness of list items, and the type of embedded resources.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::FieldError;
use crate::golang;
use crate::schema::{ListType, Typed};

/// Reports duplicates in lists of type `set` and `map`.
pub(super) fn check(value: &Value, schema: &Typed<'_>, path: &str, errors: &mut Vec<FieldError>) {
    if schema.is_built_in() {
        return;
    }
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some(typed) = schema.property(name) {
                    check(value, &typed, &child(path, name), errors);
                } else if let Some(typed) = schema.additional() {
                    check(value, &typed, &format!("{path}[{name}]"), errors);
                }
            }
        }
        Value::Array(items) => {
            match schema.list_type() {
                Some(ListType::Set) => check_unique(items, path, errors),
                Some(ListType::Map) => check_map(items, schema.list_map_keys(), path, errors),
                Some(ListType::Atomic) | None => {}
            }
            let Some(typed) = schema.items() else { return };
            for (index, item) in items.iter().enumerate() {
                check(item, &typed, &format!("{path}[{index}]"), errors);
            }
        }
        _ => {}
    }
}

/// Reports the second occurrence of each value, but no later occurrence, as Kubernetes does.
fn check_unique(items: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        let times = seen.entry(golang::json(item)).or_default();
        *times += 1;
        if *times == 2 {
            errors.push(FieldError::duplicate(format!("{path}[{index}]"), item));
        }
    }
}

fn check_map(items: &[Value], keys: &[String], path: &str, errors: &mut Vec<FieldError>) {
    let not_object = |item: &Value| !item.is_object() && !item.is_null();
    if let Some((index, item)) = items.iter().enumerate().find(|(_, item)| not_object(item)) {
        let detail = "must be an object for an array of list-type map";
        errors.push(FieldError::invalid(
            format!("{path}[{index}]"),
            item,
            detail,
        ));
        return;
    }
    let key_of = |item: &Value| {
        let present = keys
            .iter()
            .filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
        Value::Object(present.collect::<Map<_, _>>())
    };
    let keys: Vec<Value> = items.iter().map(key_of).collect();
    check_unique(&keys, path, errors);
}

/// Checks that embedded resources have a valid `apiVersion` and `kind`.
pub(super) fn check_embedded(
    value: &Value,
    schema: &Typed<'_>,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    match value {
        Value::Object(fields) => {
            if schema.schema().embedded_resource {
                check_type_meta(fields, path, errors);
            }
            for (name, value) in fields {
                if let Some(typed) = schema.property(name) {
                    check_embedded(value, &typed, &child(path, name), errors);
                } else if let Some(typed) = schema.additional() {
                    check_embedded(value, &typed, &format!("{path}[{name}]"), errors);
                }
            }
        }
        Value::Array(items) => {
            let Some(typed) = schema.items() else { return };
            for (index, item) in items.iter().enumerate() {
                check_embedded(item, &typed, &format!("{path}[{index}]"), errors);
            }
        }
        _ => {}
    }
}

fn check_type_meta(fields: &Map<String, Value>, path: &str, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        let path = child(path, name);
        match fields.get(name) {
            None => errors.push(FieldError::required(path, "")),
            Some(Value::String(text)) if text.is_empty() => {
                errors.push(FieldError::invalid(
                    path,
                    &Value::from(""),
                    "must not be empty",
                ));
            }
            Some(value @ Value::String(text)) if name == "apiVersion" => {
                if text.matches('/').count() > 1 {
                    let detail = format!("unexpected GroupVersion string: {text}");
                    errors.push(FieldError::invalid(path, value, detail));
                }
            }
            Some(Value::String(_)) => {}
            Some(other) => errors.push(FieldError::invalid(path, other, "must be a string")),
        }
    }
}

fn child(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}
