//! Order of values.

use std::cmp::Ordering;

use super::{Fault, Value};

/// Compares two values of types that are ordered. Numbers of different types can be compared.
///
/// # Errors
/// Returns an error for other types, and for NaN.
pub(crate) fn compare(first: &Value<'_>, second: &Value<'_>) -> Result<Ordering, Fault> {
    if let (Value::Double(value), _) | (_, Value::Double(value)) = (first, second)
        && value.is_nan()
    {
        return Err(Fault::new("NaN values cannot be ordered"));
    }
    if let Some(order) = compare_numbers(first, second) {
        return Ok(order);
    }
    Ok(match (first, second) {
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::String(a), Value::String(b)) => a.as_bytes().cmp(b.as_bytes()),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        (Value::Timestamp(a), Value::Timestamp(b)) => a.cmp(b),
        (Value::Duration(a), Value::Duration(b)) => a.cmp(b),
        _ => return Err(Fault::no_such_overload()),
    })
}

/// Compares two numbers. Returns `None` if one of the values is not a number, or is NaN.
pub(crate) fn compare_numbers(first: &Value<'_>, second: &Value<'_>) -> Option<Ordering> {
    match (first, second) {
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::Double(a), b) => compare_double(*a, integer(b)?),
        (a, Value::Double(b)) => compare_double(*b, integer(a)?).map(Ordering::reverse),
        (a, b) => Some(integer(a)?.cmp(&integer(b)?)),
    }
}

fn integer(value: &Value<'_>) -> Option<i128> {
    match value {
        Value::Int(value) => Some(i128::from(*value)),
        Value::Uint(value) => Some(i128::from(*value)),
        _ => None,
    }
}

/// Compares a double with an integer as cel-go does: the integer is converted to a double.
fn compare_double(double: f64, integer: i128) -> Option<Ordering> {
    double.partial_cmp(&(integer as f64))
}
