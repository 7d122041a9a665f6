//! Conversion of objects without some of their required fields.
//!
//! A Rust type needs its required fields. The missing ones are set to values of the schema. To find
//! out which fields of the result depend on them, the object is converted twice, with different
//! values; the fields that differ are removed again.

use serde_json::{Map, Value, json};

use super::annotation::Kept;
use super::{ConversionError, Fields};
use crate::schema::{AdditionalProperties, Schema, SchemaType};

/// Depth below which no fields are set, for schemas of recursive types.
const DEPTH_MAX: usize = 32;

/// Converts an object with missing required fields. Returns `None` if no required field is missing,
/// or if the object cannot be converted with them either.
pub(super) fn convert(
    object: &Fields,
    schema: &Schema,
    convert: impl Fn(Fields) -> Result<(Fields, Kept), ConversionError>,
) -> Option<(Fields, Kept)> {
    let complete = |choice| {
        let mut object = object.clone();
        let mut has_changed = false;
        for name in ["spec", "status"] {
            let Some(schema) = schema.properties.get(name) else {
                continue;
            };
            let is_required = name == "spec" && !object.contains_key(name);
            if is_required {
                object.insert(name.to_owned(), json!({}));
            }
            if let Some(value) = object.get_mut(name) {
                has_changed |= is_required | fill(value, schema, choice, 0);
            }
        }
        has_changed.then_some(object)
    };
    let (mut fields, mut kept) = convert(complete(Choice::First)?).ok()?;
    let (other_fields, other_kept) = convert(complete(Choice::Second)?).ok()?;
    remove_different(&mut fields, &other_fields);
    kept.intersect(&other_kept);
    Some((fields, kept))
}

/// Which of two values a missing field gets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Choice {
    First,
    Second,
}

/// Sets the missing required fields of a value, at any depth. Returns whether a field was missing.
fn fill(value: &mut Value, schema: &Schema, choice: Choice, depth: usize) -> bool {
    if depth > DEPTH_MAX {
        return false;
    }
    let depth = depth.saturating_add(1);
    let mut has_changed = false;
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                let schema = match (schema.properties.get(name), &schema.additional_properties) {
                    (Some(schema), _) => schema,
                    (None, Some(AdditionalProperties::Schema(schema))) => schema,
                    _ => continue,
                };
                has_changed |= fill(field, schema, choice, depth);
            }
            for name in &schema.required {
                if let (false, Some(schema)) =
                    (fields.contains_key(name), schema.properties.get(name))
                {
                    fields.insert(name.clone(), new_value(schema, choice, depth));
                    has_changed = true;
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for item in items {
                    has_changed |= fill(item, schema, choice, depth);
                }
            }
        }
        _ => {}
    }
    has_changed
}

/// Returns a value that has the type of the schema. Patterns are not respected.
fn new_value(schema: &Schema, choice: Choice, depth: usize) -> Value {
    let is_first = choice == Choice::First;
    if let Some(values) = &schema.enum_ {
        let value = match is_first {
            true => values.first(),
            false => values.last(),
        };
        return value.cloned().unwrap_or_default();
    }
    if schema.int_or_string {
        return json!(if is_first { "0" } else { "1" });
    }
    match schema.type_ {
        Some(SchemaType::Object) => {
            let mut value = json!({});
            let alternatives = match is_first {
                true => schema.one_of.first(),
                false => schema.one_of.last(),
            };
            if let (Value::Object(fields), Some(alternative)) = (&mut value, alternatives) {
                for name in &alternative.required {
                    if let Some(schema) = schema.properties.get(name) {
                        let new = new_value(schema, choice, depth.saturating_add(1));
                        fields.insert(name.clone(), new);
                    }
                }
            }
            fill(&mut value, schema, choice, depth);
            value
        }
        Some(SchemaType::Array) => json!([]),
        Some(SchemaType::Boolean) => json!(!is_first),
        Some(SchemaType::Integer) => {
            let limit = |limit: Option<f64>| limit.map(|limit| limit as i64);
            let (low, high) = (limit(schema.minimum), limit(schema.maximum));
            let value = if is_first { 0 } else { 1 };
            let low = low.map_or(value, |low| low.saturating_add(value).max(value));
            json!(high.map_or(low, |high| low.min(high)))
        }
        Some(SchemaType::Number) => {
            let value = if is_first { 0.0 } else { 1.0 };
            json!(schema.minimum.map_or(value, |low| low.max(value)))
        }
        Some(SchemaType::String) => json!(text(schema.format.as_deref(), is_first)),
        _ => Value::Null,
    }
}

/// Returns a text of a format whose Rust types do not accept any text.
fn text(format: Option<&str>, is_first: bool) -> &'static str {
    match (format, is_first) {
        (Some("date-time"), true) => "1970-01-01T00:00:00Z",
        (Some("date-time"), false) => "1970-01-02T00:00:00Z",
        (Some("date"), true) => "1970-01-01",
        (Some("date"), false) => "1970-01-02",
        (Some("duration"), true) => "0s",
        (Some("duration"), false) => "1s",
        (Some("uuid"), true) => "00000000-0000-4000-8000-000000000000",
        (Some("uuid"), false) => "00000000-0000-4000-8000-000000000001",
        (Some("ip" | "ipv4"), true) => "0.0.0.0",
        (Some("ip" | "ipv4"), false) => "0.0.0.1",
        (Some("ipv6"), true) => "::",
        (Some("ipv6"), false) => "::1",
        (_, true) => "",
        (_, false) => "a",
    }
}

/// Removes the fields that differ from those of the other object, and objects that have no fields
/// left.
fn remove_different(fields: &mut Map<String, Value>, other: &Map<String, Value>) {
    fields.retain(|name, value| {
        let other = other.get(name);
        if other == Some(value) {
            return true;
        }
        match (value, other) {
            (Value::Object(fields), Some(Value::Object(other))) => {
                remove_different(fields, other);
                !fields.is_empty()
            }
            (Value::Array(items), Some(Value::Array(other))) if items.len() == other.len() => {
                for (item, other) in items.iter_mut().zip(other) {
                    if let (Value::Object(item), Value::Object(other)) = (item, other) {
                        remove_different(item, other);
                    }
                }
                true
            }
            _ => false,
        }
    });
}
