//! The schemas inside of a schema, by path.

use std::collections::BTreeMap;

use serde_json::Value;

use super::schema::Properties;

/// Each schema inside of a schema, without the properties and items of its own, by its path. The
/// root has the empty path.
pub(super) fn flatten(schema: &Properties) -> BTreeMap<String, Properties> {
    let mut found = BTreeMap::new();
    if !schema.is_empty() {
        walk(schema, String::new(), &mut found);
    }
    found
}

fn walk(schema: &Properties, path: String, found: &mut BTreeMap<String, Properties>) {
    for (keyword, value) in schema {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, child) in properties {
                    step(child, format!("{path}.{name}"), found);
                }
            }
            ("items" | "not" | "additionalProperties" | "additionalItems", Value::Object(_)) => {
                step(value, format!("{path}.{keyword}"), found);
            }
            ("items" | "allOf" | "anyOf" | "oneOf", Value::Array(children)) => {
                for (index, child) in children.iter().enumerate() {
                    step(child, format!("{path}.{keyword}[{index}]"), found);
                }
            }
            ("patternProperties" | "definitions", Value::Object(children)) => {
                for (name, child) in children {
                    step(child, format!("{path}.{keyword}[{name}]"), found);
                }
            }
            _ => {}
        }
    }
    let mut own = schema.clone();
    own.remove("properties");
    own.remove("items");
    found.insert(path, own);
}

fn step(schema: &Value, path: String, found: &mut BTreeMap<String, Properties>) {
    if let Value::Object(schema) = schema {
        walk(schema, path, found);
    }
}
