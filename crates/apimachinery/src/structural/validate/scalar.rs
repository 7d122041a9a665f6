//! Checks of lengths, patterns and ranges.

use serde_json::{Number, Value};

use super::{Outcome, field, known_format};
use crate::golang;
use crate::schema::{Schema, SchemaType};
use crate::structural::FieldError;

/// Checks the length and the pattern of a string. Only the first error is reported, as in
/// Kubernetes.
pub(super) fn check_string(text: &str, schema: &Schema, path: &str, outcome: &mut Outcome) {
    let length = text.chars().count() as u64;
    let value = Value::from(text);
    if let Some(max) = schema.max_length.filter(|max| length > *max) {
        outcome.add(FieldError::too_long(field(path), max));
    } else if let Some(min) = schema.min_length.filter(|min| length < *min) {
        let detail = format!("{path} in body should be at least {min} chars long");
        outcome.add(FieldError::invalid(field(path), &value, detail));
    } else if let Some(pattern) = schema
        .pattern
        .as_ref()
        .filter(|pattern| !pattern.is_match(text))
    {
        let detail = format!("{path} in body should match '{pattern}'");
        outcome.add(FieldError::invalid(field(path), &value, detail));
    }
}

pub(super) fn check_number(number: &Number, schema: &Schema, path: &str, outcome: &mut Outcome) {
    let value = Value::Number(number.clone());
    let Some(float) = number.as_f64() else { return };
    let integer = number.as_i64();
    if let Err(detail) = check_range(float, integer, schema, "Checked", path) {
        outcome.add(FieldError::invalid("<nil>", &Value::from(""), detail));
    }
    if let Some(factor) = schema.multiple_of {
        check_limit(factor, schema, "MultipleOf", path, outcome);
        let (factor, holds) = match integer {
            // For an integer, only the whole part of the factor is used.
            Some(integer) if factor >= 1.0 => {
                let factor = factor as i64;
                (factor.to_string(), integer.checked_rem(factor) == Some(0))
            }
            _ => {
                let ratio = if factor < 1.0 {
                    1.0 / factor * float
                } else {
                    float / factor
                };
                (golang::float(factor), super::is_whole(&Value::from(ratio)))
            }
        };
        if !holds {
            let detail = format!("{path} in body should be a multiple of {factor}");
            outcome.add(FieldError::invalid(field(path), &value, detail));
        }
    }
    if let Some(min) = schema.minimum {
        check_limit(min, schema, "Minimum boundary", path, outcome);
        let exclusive = schema.exclusive_minimum;
        let (limit, broken) = match integer {
            Some(n) => (
                (min as i64).to_string(),
                n < min as i64 || (exclusive && n == min as i64),
            ),
            None => (
                golang::float(min),
                float < min || (exclusive && float == min),
            ),
        };
        if broken {
            let words = if exclusive {
                "greater than"
            } else {
                "greater than or equal to"
            };
            let detail = format!("{path} in body should be {words} {limit}");
            outcome.add(FieldError::invalid(field(path), &value, detail));
        }
    }
    if let Some(max) = schema.maximum {
        check_limit(max, schema, "Maximum boundary", path, outcome);
        let exclusive = schema.exclusive_maximum;
        let (limit, broken) = match integer {
            Some(n) => (
                (max as i64).to_string(),
                n > max as i64 || (exclusive && n == max as i64),
            ),
            None => (
                golang::float(max),
                float > max || (exclusive && float == max),
            ),
        };
        if broken {
            let words = if exclusive {
                "less than"
            } else {
                "less than or equal to"
            };
            let detail = format!("{path} in body should be {words} {limit}");
            outcome.add(FieldError::invalid(field(path), &value, detail));
        }
    }
}

/// Adds an error if a limit in the schema, such as `maximum`, is out of range for the schema's
/// type. Kubernetes reports this error of the schema when it validates a value.
fn check_limit(limit: f64, schema: &Schema, what: &str, path: &str, outcome: &mut Outcome) {
    let integer = (limit.fract() == 0.0 && limit.abs() < 9.3e18).then_some(limit as i64);
    if let Err(detail) = check_range(limit, integer, schema, what, path) {
        outcome.add(FieldError::invalid("<nil>", &Value::from(""), detail));
    }
}

fn check_range(
    float: f64,
    integer: Option<i64>,
    schema: &Schema,
    what: &str,
    path: &str,
) -> Result<(), String> {
    let format = known_format(schema).unwrap_or_default();
    let type_ = if schema.int_or_string {
        None
    } else {
        schema.type_
    };
    let integer =
        integer.or_else(|| (float.fract() == 0.0 && float.abs() < 9.2e18).then_some(float as i64));
    let fits = match (type_, format) {
        (Some(SchemaType::Integer), "int32") => integer.is_some_and(|n| i32::try_from(n).is_ok()),
        (Some(SchemaType::Integer), _) => integer.is_some(),
        (Some(SchemaType::Number), "float") => float.abs() <= f64::from(f32::MAX),
        _ => true,
    };
    if fits {
        return Ok(());
    }
    let type_ = type_.map_or("", SchemaType::as_str);
    if format.is_empty() {
        Err(format!(
            "{what} value must be of type {type_} (default format) in {path}"
        ))
    } else {
        Err(format!(
            "{what} value must be of type {type_} with format {format} in {path}"
        ))
    }
}
