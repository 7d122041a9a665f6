//! Schemas as documents in which equal schemas are equal.
//!
//! Kubernetes decodes a schema into a Go struct, so that an absent field, an empty text, an empty
//! list and `false` are one value, `1` and `1.0` are one number, and unknown keywords disappear.

use serde_json::{Map, Number, Value};

/// Keywords of one schema with their values.
pub(super) type Properties = Map<String, Value>;

/// Keywords whose values are schemas by name.
const SCHEMAS_BY_NAME: &[&str] = &["properties", "patternProperties", "definitions"];
/// Keywords whose values are lists of schemas.
const SCHEMA_LISTS: &[&str] = &["allOf", "anyOf", "oneOf"];
/// Keywords whose values are a schema or something else.
const SCHEMAS: &[&str] = &["items", "additionalProperties", "additionalItems", "not"];
/// Keywords whose values are any JSON.
const JSON: &[&str] = &["default", "example"];
/// Keywords with a value of which `false` is not the same as an absent field.
const POINTERS: &[&str] = &["x-kubernetes-preserve-unknown-fields"];
/// All other keywords.
const OTHERS: &[&str] = &[
    "$ref",
    "$schema",
    "dependencies",
    "description",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "externalDocs",
    "format",
    "id",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "nullable",
    "pattern",
    "required",
    "title",
    "type",
    "uniqueItems",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
    "x-kubernetes-validations",
];

/// Returns a schema without empty values and unknown keywords.
pub(super) fn normalize(schema: Option<&Value>) -> Properties {
    let mut normalized = Properties::new();
    for (keyword, value) in schema.and_then(Value::as_object).into_iter().flatten() {
        let name = keyword.as_str();
        let value = if SCHEMAS_BY_NAME.contains(&name) {
            by_name(value)
        } else if SCHEMA_LISTS.contains(&name) {
            list(value)
        } else if SCHEMAS.contains(&name) {
            match value {
                Value::Object(_) => Some(normalize(Some(value)).into()),
                Value::Array(_) => list(value),
                Value::Bool(allowed) => Some((*allowed).into()),
                _ => None,
            }
        } else if JSON.contains(&name) || POINTERS.contains(&name) {
            Some(numbers(value)).filter(|value| !value.is_null())
        } else if name == "enum" {
            Some(numbers(value)).filter(|value| !is_empty(value))
        } else if OTHERS.contains(&name) {
            let value = numbers(value);
            let value = match value {
                Value::Array(items) => items.into_iter().map(without_empty_fields).collect(),
                Value::Object(_) => without_empty_fields(value),
                value => value,
            };
            Some(value).filter(|value| !is_empty(value))
        } else {
            None
        };
        if let Some(value) = value {
            normalized.insert(keyword.clone(), value);
        }
    }
    normalized
}

fn by_name(schemas: &Value) -> Option<Value> {
    let schemas = schemas.as_object().filter(|schemas| !schemas.is_empty())?;
    let schemas = schemas.iter();
    let schemas = schemas.map(|(name, schema)| (name.clone(), normalize(Some(schema)).into()));
    Some(Value::Object(schemas.collect()))
}

fn list(schemas: &Value) -> Option<Value> {
    let schemas = schemas.as_array().filter(|schemas| !schemas.is_empty())?;
    let schemas = schemas.iter().map(|schema| normalize(Some(schema)).into());
    Some(Value::Array(schemas.collect()))
}

fn without_empty_fields(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            // `optionalOldSelf: false` of a rule is not the same as none.
            let is_kept = |name: &str, value: &Value| name == "optionalOldSelf" || !is_empty(value);
            let fields = fields.into_iter();
            let kept = fields.filter(|(name, value)| is_kept(name, value));
            Value::Object(kept.collect())
        }
        value => value,
    }
}

/// Reports whether Go's zero value represents the value. A number has a pointer type.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Bool(true) | Value::Number(_) => false,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// Writes whole numbers as integers.
fn numbers(value: &Value) -> Value {
    match value {
        Value::Number(number) => whole(number).map_or_else(|| value.clone(), Value::from),
        Value::Array(items) => items.iter().map(numbers).collect(),
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields = fields.map(|(name, value)| (name.clone(), numbers(value)));
            Value::Object(fields.collect())
        }
        value => value.clone(),
    }
}

fn whole(number: &Number) -> Option<i64> {
    if let Some(number) = number.as_i64() {
        return Some(number);
    }
    // Above this limit, not every integer is a float.
    const LIMIT: f64 = 9_007_199_254_740_992.0;
    let float = number.as_f64()?;
    let is_whole = float.fract() == 0.0 && float.abs() < LIMIT;
    is_whole.then_some(float as i64)
}
