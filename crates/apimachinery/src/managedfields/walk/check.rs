//! Checks whether an applied configuration fits its schema well enough to be merged.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::topology::{Node, Shape};
use crate::golang;
use crate::schema::SchemaType;

/// Checks whether a configuration can be merged. The error messages are those of
/// structured-merge-diff.
pub(in super::super) fn check(config: &Value, node: &Node<'_>) -> Result<(), String> {
    let mut wrong = Vec::new();
    check_at(config, node, &mut String::new(), &mut wrong);
    match wrong.as_slice() {
        [] => Ok(()),
        [only] => Err(only.clone()),
        several => Err(format!("errors:\n  {}", several.join("\n  "))),
    }
}

fn check_at(value: &Value, node: &Node<'_>, path: &mut String, wrong: &mut Vec<String>) {
    let Node::Known { .. } = node else { return };
    if let Err(problem) = check_type(value, node) {
        wrong.push(format!("{path}: {problem}"));
        return;
    }
    let length = path.len();
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                path.push('.');
                path.push_str(name);
                match node.field(name) {
                    Some(field) => check_at(value, &field, path, wrong),
                    None => wrong.push(format!("{path}: field not declared in schema")),
                }
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            let associative = node.shape(value) == Shape::List;
            let item_node = node.item();
            let mut seen = BTreeSet::new();
            for (index, item) in items.iter().enumerate() {
                if associative {
                    let element = match node.item_element(item) {
                        Ok(element) => element,
                        Err(problem) => {
                            wrong.push(format!("{path}: element {index}: {problem}"));
                            return;
                        }
                    };
                    if !seen.insert(element.clone()) {
                        wrong.push(format!("{path}: duplicate entries for key {element}"));
                    }
                    path.push_str(&element.to_string());
                } else {
                    path.push_str(&format!("[{index}]"));
                }
                check_at(item, &item_node, path, wrong);
                path.truncate(length);
            }
        }
        _ => {}
    }
}

fn check_type(value: &Value, node: &Node<'_>) -> Result<(), String> {
    let Node::Known { typed, .. } = node else {
        return Ok(());
    };
    let schema = typed.schema();
    let scalar = !value.is_object() && !value.is_array();
    // For a merge, a string with a format, such as a time, may be any scalar.
    let formatted = schema
        .format
        .as_deref()
        .is_some_and(|format| format != "byte");
    let fits = match schema.type_ {
        _ if value.is_null() => true,
        None => true,
        Some(SchemaType::Array) => value.is_array(),
        Some(SchemaType::Boolean) => value.is_boolean(),
        Some(SchemaType::Integer | SchemaType::Number) => value.is_number(),
        Some(SchemaType::Object) => value.is_object(),
        Some(SchemaType::String) if formatted => scalar,
        Some(SchemaType::String) => value.is_string(),
    };
    let plain = || format!("&{{{}}}", golang::plain(value));
    match schema.type_ {
        _ if fits => Ok(()),
        Some(SchemaType::Array) => Err(format!("expected list, got {}", plain())),
        Some(SchemaType::Boolean) => Err(format!("expected boolean, got {}", plain())),
        Some(SchemaType::Integer | SchemaType::Number) => Err(format!(
            "expected numeric (int or float), got {}",
            golang::type_name(value)
        )),
        Some(SchemaType::String) if !formatted => Err(format!(
            "expected string, got &value.valueUnstructured{{Value:{}}}",
            golang::syntax(value)
        )),
        Some(SchemaType::String) | None => Err(format!("expected any scalar, got {}", plain())),
        Some(SchemaType::Object) => Err(format!("expected map, got {}", plain())),
    }
}
