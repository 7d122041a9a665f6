//! Formats values as Go's `fmt` and `encoding/json` do, because Kubernetes' messages contain values
//! in these formats.

use serde_json::{Map, Value};

/// Formats a string as Go's `%q` does.
pub(crate) fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{07}' => out.push_str("\\a"),
            '\u{08}' => out.push_str("\\b"),
            '\u{0b}' => out.push_str("\\v"),
            '\u{0c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => {
                out.push_str(&format!("\\x{:02x}", c as u32));
            }
            c if c.is_control() || (c.is_whitespace() && c != ' ') => {
                out.push_str(&format!("\\u{:04x}", c as u32));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Formats a float as Go's `%v` does: with the fewest digits that parse back to the same value, and
/// with an exponent below 1e-4 and from 1e21 on.
pub(crate) fn float(value: f64) -> String {
    let exponential = format!("{value:e}");
    let exponent: i32 = exponential
        .split_once('e')
        .and_then(|(_, e)| e.parse().ok())
        .unwrap_or(0);
    if value == 0.0 || (-4..21).contains(&exponent) {
        return format!("{value}");
    }
    let digits = exponential.split_once('e').map_or("", |(digits, _)| digits);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

/// Formats a value as Kubernetes' `field.Error` does: a string as `%q`, another scalar as `%v`, and
/// the rest as JSON.
pub(crate) fn value(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Bool(flag) => flag.to_string(),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => integer.to_string(),
            None => number.as_f64().map_or_else(|| number.to_string(), float),
        },
        Value::Null | Value::Array(_) | Value::Object(_) => json(value),
    }
}

/// Formats a value as Go's `%v` does, such as `map[a:1 b:[x y]]`.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => self::value(value),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => format!("map[{}]", entries(fields, plain).join(" ")),
    }
}

/// Formats a value as Go's `%#v` does, such as `map[string]interface {}{"a":1}`.
pub(crate) fn syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(_) | Value::Bool(_) | Value::Number(_) => self::value(value),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(fields) => {
            let quoted = fields.iter().map(|(name, value)| (quote(name), value));
            let entries = quoted.map(|(name, value)| format!("{name}:{}", syntax(value)));
            format!(
                "map[string]interface {{}}{{{}}}",
                entries.collect::<Vec<_>>().join(", ")
            )
        }
    }
}

/// Returns the Go type of a value as Go's `%T` prints it.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn entries(fields: &Map<String, Value>, print: fn(&Value) -> String) -> Vec<String> {
    fields
        .iter()
        .map(|(name, value)| format!("{name}:{}", print(value)))
        .collect()
}

/// Formats a value as compact JSON, and escapes the characters that Go's encoder escapes for HTML.
pub(crate) fn json(value: &Value) -> String {
    let plain = value.to_string();
    if !plain.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return plain;
    }
    let mut out = String::with_capacity(plain.len() + 16);
    for c in plain.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                out.push_str(&format!("\\u{:04x}", c as u32));
            }
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests;
