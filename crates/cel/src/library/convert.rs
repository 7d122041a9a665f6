//! Conversions between types: `int`, `uint`, `double`, `string`, `bytes`, `bool`, `duration`,
//! `timestamp`, `type` and `dyn`.

use std::sync::Arc;

use super::{Function, no_overload, time};
use crate::value::{Fault, Object, Outcome, Value};

pub(super) fn find(name: &str) -> Option<Function> {
    Some(match name {
        "int" => int,
        "uint" => uint,
        "double" => double,
        "string" => string,
        "bytes" => bytes,
        "bool" => boolean,
        "duration" => duration,
        "timestamp" => timestamp,
        "type" => |args| match args {
            [value] => Ok(Value::Type(value.type_value())),
            _ => Err(Fault::no_such_overload()),
        },
        "dyn" => |args| match args {
            [value] => Ok(value.clone()),
            _ => Err(Fault::no_such_overload()),
        },
        _ => return None,
    })
}

/// Names of the functions whose calls with a constant are evaluated when a program is built.
pub(crate) const CONVERSIONS: [&str; 10] = [
    "bool",
    "bytes",
    "double",
    "duration",
    "dyn",
    "int",
    "string",
    "timestamp",
    "type",
    "uint",
];

fn failed(from: &str, to: &str) -> Fault {
    Fault::new(format!("type conversion error from '{from}' to '{to}'"))
}

fn int<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let overflow = || Fault::new("integer overflow");
    Ok(Value::Int(match args {
        [Value::Int(value)] => *value,
        [Value::Uint(value)] => i64::try_from(*value).map_err(|_| overflow())?,
        [Value::Double(value)] => {
            let limit = i64::MAX as f64;
            match *value > -limit && *value < limit {
                true => *value as i64,
                false => return Err(overflow()),
            }
        }
        [Value::Duration(nanos)] => *nanos,
        [Value::Timestamp(time)] => time.seconds(),
        [Value::String(text)] => parse_int(text).ok_or_else(|| failed("string", "int"))?,
        _ => return Err(no_overload("int", args)),
    }))
}

/// Parses a number as Go does: no spaces, an optional sign, decimal digits.
fn parse_int(text: &str) -> Option<i64> {
    text.parse().ok()
}

fn uint<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    let overflow = || Fault::new("unsigned integer overflow");
    Ok(Value::Uint(match args {
        [Value::Uint(value)] => *value,
        [Value::Int(value)] => u64::try_from(*value).map_err(|_| overflow())?,
        [Value::Double(value)] => match *value >= 0.0 && *value < u64::MAX as f64 {
            true => *value as u64,
            false => return Err(overflow()),
        },
        [Value::String(text)] => match text.starts_with('+') {
            true => return Err(failed("string", "uint")),
            false => text.parse().map_err(|_| failed("string", "uint"))?,
        },
        _ => return Err(no_overload("uint", args)),
    }))
}

fn double<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Double(match args {
        [Value::Double(value)] => *value,
        [Value::Int(value)] => *value as f64,
        [Value::Uint(value)] => *value as f64,
        [Value::String(text)] => parse_double(text).ok_or_else(|| failed("string", "double"))?,
        _ => return Err(no_overload("double", args)),
    }))
}

/// Parses a number as Go does: a number that is too large is an error.
pub(crate) fn parse_double(text: &str) -> Option<f64> {
    let value: f64 = text.parse().ok()?;
    let is_word = text.contains(|c: char| c.is_ascii_alphabetic() && !matches!(c, 'e' | 'E'));
    (is_word || value.is_finite()).then_some(value)
}

fn string<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [value] => match to_text(value) {
            Some(text) => text,
            None => Err(no_overload("string", args)),
        },
        _ => Err(no_overload("string", args)),
    }
}

/// Converts a value to a text. Returns `None` if its type has no conversion.
pub(crate) fn to_text<'a>(value: &Value<'a>) -> Option<Outcome<'a>> {
    Some(Ok(match value {
        Value::String(_) => value.clone(),
        Value::Bool(value) => Value::text(value.to_string()),
        Value::Int(value) => Value::text(value.to_string()),
        Value::Uint(value) => Value::text(value.to_string()),
        Value::Double(value) => Value::text(format_double(*value)),
        Value::Duration(nanos) => Value::text(time::format_duration(*nanos)),
        Value::Timestamp(time) => Value::text(time.to_string()),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Value::text(text),
            Err(_) => {
                let message = "invalid UTF-8 in bytes, cannot convert to string";
                return Some(Err(Fault::new(message)));
            }
        },
        Value::Object(Object::Ip(ip)) => Value::text(ip.to_string()),
        Value::Object(Object::Cidr(cidr)) => Value::text(cidr.to_string()),
        _ => return None,
    }))
}

/// Formats a number as Go's `%g` does.
pub(crate) fn format_double(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let exponential = format!("{value:e}");
    let (digits, exponent) = exponential.split_once('e').unwrap_or((&exponential, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if value == 0.0 || (-4..6).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

fn bytes<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    match args {
        [Value::Bytes(_)] => args.first().cloned().ok_or_else(Fault::no_such_overload),
        [Value::String(text)] => Ok(Value::Bytes(Arc::from(text.as_bytes()))),
        _ => Err(no_overload("bytes", args)),
    }
}

fn boolean<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Bool(match args {
        [Value::Bool(value)] => *value,
        [Value::String(text)] => match &**text {
            "1" | "t" | "T" | "TRUE" | "true" | "True" => true,
            "0" | "f" | "F" | "FALSE" | "false" | "False" => false,
            _ => return Err(failed("string", "bool")),
        },
        _ => return Err(no_overload("bool", args)),
    }))
}

fn duration<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Duration(match args {
        [Value::Duration(nanos)] => *nanos,
        [Value::Int(_)] => return Err(failed("int", "google.protobuf.Duration")),
        [Value::String(text)] => time::parse_duration(text)
            .ok_or_else(|| failed("string", "google.protobuf.Duration"))?,
        _ => return Err(no_overload("duration", args)),
    }))
}

fn timestamp<'a>(args: &[Value<'a>]) -> Outcome<'a> {
    Ok(Value::Timestamp(match args {
        [Value::Timestamp(time)] => *time,
        [Value::Int(seconds)] => time::from_seconds(*seconds)?,
        [Value::String(text)] => {
            time::parse_timestamp(text).map_err(|is_overflow| match is_overflow {
                true => Fault::new("timestamp overflow"),
                false => failed("string", "google.protobuf.Timestamp"),
            })?
        }
        _ => return Err(no_overload("timestamp", args)),
    }))
}
