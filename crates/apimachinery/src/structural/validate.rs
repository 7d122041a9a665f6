//! Validates an object against its schema, with Kubernetes' messages.
//!
//! Kubernetes validates custom resources with a fork of go-openapi's validator. Operators, tests
//! and people depend on the wording and the order of the errors, and on which failed alternative of
//! an `anyOf` the validator reports. This module therefore follows the algorithm of that validator:
//! the check of a value against a schema returns an [`Outcome`] with the errors and the number of
//! checks that passed.

mod collections;
mod combinations;
mod ratchet;
mod scalar;

use serde_json::Value;

use super::lists;
use super::{FieldError, formats};
use crate::golang;
use crate::schema::{Schema, SchemaType, Typed};
use collections::{check_items, check_object};
use combinations::check_combinations;

/// Validates `object` and returns all errors, in the order in which Kubernetes reports them.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::schema::{NoDefinitions, Schema, Typed};
/// use opkit_apimachinery::structural::validate;
/// use serde_json::json;
///
/// let schema = Schema::parse(&json!({
///     "type": "object",
///     "properties": {"spec": {
///         "type": "object",
///         "required": ["image"],
///         "properties": {
///             "image": {"type": "string"},
///             "replicas": {"type": "integer", "maximum": 100},
///         },
///     }},
/// }))?;
/// let errors = validate(&json!({"spec": {"replicas": 101}}), &Typed::new(&schema, &NoDefinitions));
/// let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
/// assert_eq!(
///     errors,
///     [
///         "spec.replicas: Invalid value: 101: \
///          spec.replicas in body should be less than or equal to 100",
///         "spec.image: Required value",
///     ],
/// );
/// # Ok::<(), opkit_apimachinery::schema::SchemaError>(())
/// ```
pub fn validate(object: &Value, schema: &Typed<'_>) -> Vec<FieldError> {
    let mut errors = check(object, schema, "").errors;
    lists::check_embedded(object, schema, "", &mut errors);
    lists::check(object, schema, "", &mut errors);
    errors
}

/// Validates `object`, which is to replace `old`, and returns all errors. A value that did not
/// change is valid even if it violates the schema, as in Kubernetes (*ratcheting*). `path` is
/// `status` if only the status is validated, and empty otherwise.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::schema::{NoDefinitions, Schema, Typed};
/// use opkit_apimachinery::structural::validate_update;
/// use serde_json::json;
///
/// let schema = Schema::parse(&json!({
///     "type": "object",
///     "properties": {"size": {"type": "integer", "maximum": 3}, "name": {"type": "string"}},
/// }))?;
/// let typed = Typed::new(&schema, &NoDefinitions);
/// let old = json!({"size": 5, "name": "a"});
/// assert_eq!(validate_update(&json!({"size": 5, "name": "b"}), &old, &typed, ""), []);
/// assert_eq!(validate_update(&json!({"size": 6, "name": "b"}), &old, &typed, "").len(), 1);
/// # Ok::<(), opkit_apimachinery::schema::SchemaError>(())
/// ```
pub fn validate_update(
    object: &Value,
    old: &Value,
    schema: &Typed<'_>,
    path: &str,
) -> Vec<FieldError> {
    let (part, is_status) = (path.is_empty(), !path.is_empty());
    let mut errors = match (part, schema.property(path), object.get(path)) {
        (true, ..) => check_update(object, Some(old), schema, "").errors,
        (false, Some(schema), Some(part)) => {
            let errors = check_update(part, old.get(path), &schema, "").errors;
            errors.into_iter().map(|e| below(path, e)).collect()
        }
        (false, ..) => Vec::new(),
    };
    if !is_status {
        lists::check_embedded(object, schema, "", &mut errors);
    }
    let mut before = Vec::new();
    lists::check(old, schema, "", &mut before);
    if before.is_empty() {
        lists::check(object, schema, "", &mut errors);
    }
    errors
}

/// Validates the default value of a schema. `path` is the path of the default in its CRD.
pub fn validate_default(value: &Value, schema: &Typed<'_>, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    lists::check_embedded(value, schema, path, &mut errors);
    if errors.is_empty() {
        let found = check(value, schema, "").errors;
        errors.extend(found.into_iter().map(|error| below(path, error)));
    }
    errors
}

/// Returns an error in a part of an object with the path of the field in the whole object.
fn below(path: &str, mut error: FieldError) -> FieldError {
    error.field = match error.field.as_str() {
        "<nil>" => path.to_owned(),
        field => format!("{path}.{field}"),
    };
    error
}

/// Result of checking one value against one schema.
#[derive(Default)]
struct Outcome {
    errors: Vec<FieldError>,
    /// Number of checks that passed. If all alternatives of an `anyOf` or `oneOf` fail, the errors
    /// of the alternative with the highest number are reported.
    matched: usize,
}

impl Outcome {
    fn is_valid(&self) -> bool {
        self.errors.is_empty()
    }

    /// Adds an error, unless the same error was already added.
    fn add(&mut self, error: FieldError) {
        if !self.errors.contains(&error) {
            self.errors.push(error);
        }
    }

    fn merge(&mut self, other: Self) {
        self.matched += other.matched;
        for error in other.errors {
            self.add(error);
        }
    }
}

fn check(value: &Value, typed: &Typed<'_>, path: &str) -> Outcome {
    check_value(value, None, typed, path)
}

/// Checks a value that is to replace `old`. Errors of a value that did not change are dropped.
fn check_update(value: &Value, old: Option<&Value>, typed: &Typed<'_>, path: &str) -> Outcome {
    let mut outcome = check_value(value, old, typed, path);
    if !outcome.is_valid() && old.is_some_and(|old| ratchet::is_unchanged(value, old, typed)) {
        outcome.errors.clear();
    }
    outcome
}

fn check_value(value: &Value, old: Option<&Value>, typed: &Typed<'_>, path: &str) -> Outcome {
    let mut outcome = Outcome::default();
    let schema = typed.schema();
    outcome.merge(check_type(value, typed, path));
    if value.is_null() {
        check_enum(value, schema, path, &mut outcome);
        return outcome;
    }
    if schema.type_.is_some() || schema.int_or_string || known_format(schema).is_some() {
        outcome.matched += 1;
    }
    outcome.merge(check_combinations(value, old, typed, path));
    outcome.matched += 1;
    match value {
        Value::String(text) => {
            scalar::check_string(text, schema, path, &mut outcome);
            outcome.matched += 1;
            // Go's decoder accepts an empty string as empty bytes.
            let no_bytes = text.is_empty() && typed.is_built_in();
            if let Some(format) = known_format(schema).filter(|f| *f != "byte" || !no_bytes)
                && let Some(matches) = formats::matches(format, text)
            {
                if !matches {
                    let detail = format!(
                        "{path} in body must be of type {format}: {}",
                        golang::quote(text)
                    );
                    outcome.add(FieldError::type_invalid(field(path), value, detail));
                }
                outcome.matched += 1;
            }
        }
        Value::Number(number) => {
            scalar::check_number(number, schema, path, &mut outcome);
            outcome.matched += 2;
        }
        Value::Array(items) => {
            check_items(items, old, typed, path, &mut outcome);
            outcome.matched += 2;
        }
        Value::Null | Value::Bool(_) | Value::Object(_) => {}
    }
    check_enum(value, schema, path, &mut outcome);
    outcome.matched += 1;
    if let Value::Object(fields) = value {
        check_object(fields, old, typed, path, &mut outcome);
        outcome.matched += 1;
    }
    outcome.matched += 1;
    outcome
}

/// Returns the `format` of the schema if Kubernetes checks this format for the schema's type.
fn known_format(schema: &Schema) -> Option<&str> {
    let format = schema.format.as_deref()?;
    let known = match schema.type_ {
        _ if schema.int_or_string => false,
        None | Some(SchemaType::String) => formats::is_known(format),
        Some(SchemaType::Integer) => matches!(format, "int32" | "int64"),
        Some(SchemaType::Number) => matches!(format, "float" | "double"),
        Some(SchemaType::Array | SchemaType::Boolean | SchemaType::Object) => false,
    };
    known.then_some(format)
}

fn check_type(value: &Value, typed: &Typed<'_>, path: &str) -> Outcome {
    let schema = typed.schema();
    let passed = Outcome {
        errors: Vec::new(),
        matched: 1,
    };
    let (wanted, actual) = match (schema.type_, type_name(value)) {
        _ if schema.int_or_string => ("integer,string", type_name(value)),
        (Some(wanted), actual) => (wanted.as_str(), actual),
        (None, _) => return passed,
    };
    let fits = match (wanted, actual) {
        (_, "null") => typed.nullable(),
        ("integer,string", actual) => actual == "string" || actual == "integer" || is_whole(value),
        ("integer", "number") => is_whole(value),
        ("number", "integer") => true,
        (wanted, actual) => wanted == actual,
    };
    if fits {
        return passed;
    }
    // With a format, the error for a value that is neither a string nor a list names the expected
    // and the actual format.
    let (wanted, actual) = match (known_format(schema), value) {
        (Some(format), Value::Number(_)) => (
            format,
            if actual == "integer" {
                "int64"
            } else {
                "float64"
            },
        ),
        (Some(format), Value::Bool(_) | Value::Object(_)) => (format, ""),
        // This quirk of Kubernetes is kept: a list is accepted for a string with a format.
        (Some(_), Value::Array(_)) if schema.type_ == Some(SchemaType::String) => return passed,
        _ => (wanted, actual),
    };
    let detail = format!(
        "{path} in body must be of type {wanted}: {}",
        golang::quote(actual)
    );
    let error = FieldError::type_invalid(field(path), &Value::from(actual), detail);
    Outcome {
        errors: vec![error],
        matched: 0,
    }
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_i64() => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Reports whether a number is whole, such as `1.0`, so that the type `integer` accepts it.
fn is_whole(value: &Value) -> bool {
    const SAFE: f64 = 9_007_199_254_740_991.0;
    value
        .as_f64()
        .is_some_and(|n| n.fract() == 0.0 && n.abs() <= SAFE)
}

fn check_enum(value: &Value, schema: &Schema, path: &str, outcome: &mut Outcome) {
    let Some(allowed) = schema
        .enum_
        .as_deref()
        .filter(|allowed| !allowed.is_empty())
    else {
        return;
    };
    let same = |candidate: &Value| match (candidate, value) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (a, b) => a == b,
    };
    if allowed.iter().any(same) {
        return;
    }
    let names: Vec<String> = allowed
        .iter()
        .map(|value| {
            value
                .as_str()
                .map_or_else(|| golang::json(value), str::to_owned)
        })
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    outcome.add(FieldError::not_supported(field(path), value, &names));
}

/// Returns the path to report in an error: `path` without its leading dot, or `<nil>` for the whole
/// object.
fn field(path: &str) -> String {
    match path.strip_prefix('.').unwrap_or(path) {
        "" => "<nil>".to_owned(),
        path => path.to_owned(),
    }
}

#[cfg(test)]
mod tests;
