//! The errors of Go's decoder for objects of built-in kinds: fields of wrong types, and malformed
//! quantities, times and binary data.

mod time;

use opkit_apimachinery::quantity::Quantity;
use opkit_apimachinery::schema::{SchemaType, Typed};
use serde_json::Value;

const QUANTITY: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const SUFFIX: &str = "unable to parse quantity's suffix";
const TIME: &str = "2006-01-02T15:04:05Z07:00";
const MICRO_TIME: &str = "2006-01-02T15:04:05.000000Z07:00";

/// Returns the error of Go's decoder for an object of a built-in kind. `name` is the name of the Go
/// type of the object.
pub(super) fn error(object: &Value, schema: &Typed<'_>, name: &str) -> Option<String> {
    let place = Place {
        container: name,
        path: String::new(),
    };
    check(object, schema, &place)
}

/// The place of a value: the Go struct that contains it, and the path of fields to it.
struct Place<'a> {
    container: &'a str,
    path: String,
}

impl Place<'_> {
    /// Returns the error for a value of the wrong type.
    fn mismatch(&self, found: &str, wanted: &str) -> String {
        let into = match self.path.as_str() {
            "" => "value".to_owned(),
            path => format!("struct field {}.{path}", self.container),
        };
        format!("json: cannot unmarshal {found} into Go {into} of type {wanted}")
    }
}

fn check(value: &Value, schema: &Typed<'_>, place: &Place<'_>) -> Option<String> {
    if value.is_null() {
        return None;
    }
    let definition = schema.definition_name().unwrap_or_default();
    let last = definition.rsplit('.').next().unwrap_or_default();
    match last {
        "Quantity" => return quantity_error(value),
        "IntOrString" => return int_or_string_error(value),
        "RawExtension" | "FieldsV1" | "JSON" => return None,
        "Time" => return time_error(value, TIME),
        "MicroTime" => return time_error(value, MICRO_TIME),
        _ => {}
    }
    let found = json_kind(value);
    match (schema.schema().type_, value) {
        (None, _) => None,
        (Some(SchemaType::Object), Value::Object(fields)) => {
            let own = match last {
                "" => place.container,
                last => last,
            };
            fields.iter().find_map(|(name, value)| {
                if let Some(schema) = schema.property(name) {
                    let path = match place.path.as_str() {
                        "" => name.clone(),
                        path => format!("{path}.{name}"),
                    };
                    let container = own;
                    return check(value, &schema, &Place { container, path });
                }
                check(value, &schema.additional()?, place)
            })
        }
        (Some(SchemaType::Array), Value::Array(items)) => {
            let schema = schema.items()?;
            items.iter().find_map(|item| check(item, &schema, place))
        }
        (Some(SchemaType::String), Value::String(text)) => {
            let is_bytes = schema.schema().format.as_deref() == Some("byte");
            is_bytes.then(|| base64_error(text)).flatten()
        }
        (Some(SchemaType::Boolean), Value::Bool(_))
        | (Some(SchemaType::Number), Value::Number(_)) => None,
        (Some(SchemaType::Integer), Value::Number(number)) => {
            let fits = match (number.as_i64(), schema.schema().format.as_deref()) {
                (Some(number), Some("int32")) => i32::try_from(number).is_ok(),
                (number, _) => number.is_some(),
            };
            let found = format!("number {number}");
            (!fits).then(|| place.mismatch(&found, &go_type(schema)))
        }
        _ => Some(place.mismatch(found, &go_type(schema))),
    }
}

/// Returns the name of a JSON type as Go's decoder prints it.
pub(super) fn json_kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Returns the Go type of a field. The schema does not have the names of types of texts, such as
/// `v1.PullPolicy`.
fn go_type(schema: &Typed<'_>) -> String {
    if let Some(name) = schema.definition_name() {
        let mut parts = name.rsplit('.');
        let (last, version) = (parts.next(), parts.next());
        return format!(
            "{}.{}",
            version.unwrap_or_default(),
            last.unwrap_or_default()
        );
    }
    let format = schema.schema().format.as_deref();
    match schema.schema().type_ {
        Some(SchemaType::String) if format == Some("byte") => "[]uint8".to_owned(),
        Some(SchemaType::Integer) => format.unwrap_or("int64").to_owned(),
        Some(SchemaType::Number) => "float64".to_owned(),
        Some(SchemaType::Boolean) => "bool".to_owned(),
        Some(SchemaType::Array) => {
            let item = schema.items().map(|items| go_type(&items));
            format!("[]{}", item.unwrap_or_default())
        }
        Some(SchemaType::Object) => {
            let entry = schema.additional().map(|entry| go_type(&entry));
            format!("map[string]{}", entry.unwrap_or_default())
        }
        _ => "string".to_owned(),
    }
}

fn int_or_string_error(value: &Value) -> Option<String> {
    let found = match value {
        Value::String(_) => return None,
        Value::Number(number) => {
            let is_int = number.as_i64().is_some_and(|n| i32::try_from(n).is_ok());
            match is_int {
                true => return None,
                false => format!("number {number}"),
            }
        }
        other => json_kind(other).to_owned(),
    };
    Some(format!(
        "json: cannot unmarshal {found} into Go value of type int32"
    ))
}

fn quantity_error(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let text = text.trim();
    if Quantity::parse(text).is_some() {
        return None;
    }
    let number = text.strip_prefix(['+', '-']).unwrap_or(text);
    let suffix = number.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
    let letters = suffix.trim_start_matches(|c: char| "eEinumkKMGTP".contains(c));
    let digits = letters.strip_prefix(['+', '-']).unwrap_or(letters);
    let has_form = suffix.len() < number.len() && digits.chars().all(|c| c.is_ascii_digit());
    Some(if has_form { SUFFIX } else { QUANTITY }.to_owned())
}

fn time_error(value: &Value, layout: &str) -> Option<String> {
    match value {
        Value::String(text) => time::error(text, layout),
        other => {
            let found = json_kind(other);
            Some(format!(
                "json: cannot unmarshal {found} into Go value of type string"
            ))
        }
    }
}

/// Returns the error of Go's decoder for binary data.
fn base64_error(text: &str) -> Option<String> {
    let is_digit = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let bytes: Vec<(usize, u8)> = text
        .bytes()
        .enumerate()
        .filter(|(_, byte)| !matches!(byte, b'\r' | b'\n'))
        .collect();
    let digits = bytes.iter().take_while(|(_, byte)| is_digit(byte)).count();
    let rest = bytes.get(digits..).unwrap_or_default();
    let is_padding = rest.iter().all(|(_, byte)| *byte == b'=');
    let is_whole = bytes.len().is_multiple_of(4) && rest.len() <= 2;
    if is_padding && is_whole {
        return None;
    }
    let place = match rest.iter().find(|(_, byte)| *byte != b'=') {
        Some((place, _)) => *place,
        // Without padding, the error is at the start of the incomplete group of four digits.
        None if rest.is_empty() => bytes
            .get(digits / 4 * 4)
            .map_or(text.len(), |(place, _)| *place),
        None => text.len(),
    };
    Some(format!("illegal base64 data at input byte {place}"))
}

/// Returns the error of Go's decoder for a text that is not JSON.
pub(crate) fn syntax_error(text: &[u8]) -> String {
    let Err(error) = serde_json::from_slice::<Value>(text) else {
        return String::new();
    };
    if error.is_eof() {
        return "unexpected end of JSON input".to_owned();
    }
    // The parser reports the line and column of the character that it did not expect.
    let mut lines = text.split(|byte| *byte == b'\n');
    let line = lines
        .nth(error.line().saturating_sub(1))
        .unwrap_or_default();
    let column = error.column().saturating_sub(1);
    let rest = line.get(column..).unwrap_or_default();
    let found = String::from_utf8_lossy(rest).chars().next();
    let Some(found) = found else {
        return "unexpected end of JSON input".to_owned();
    };
    let shown = match found {
        '\'' => "'\\''".to_owned(),
        '"' => "'\"'".to_owned(),
        found => format!("'{found}'"),
    };
    let reason = error.to_string();
    let reason = reason.split(" at line").next().unwrap_or_default();
    if reason == "expected ident"
        && let Some(context) = in_literal(line, column)
    {
        return format!("invalid character {shown} {context}");
    }
    let context = match reason {
        "key must be a string" => "looking for beginning of object key string",
        "expected `:`" => "after object key",
        "expected `,` or `}`" => "after object key:value pair",
        "expected `,` or `]`" => "after array element",
        "trailing characters" => "after top-level value",
        "control character (\\u0000-\\u001F) found while parsing a string" => "in string literal",
        "invalid escape" => "in string escape code",
        _ => "looking for beginning of value",
    };
    format!("invalid character {shown} {context}")
}

/// Returns the words of Go's decoder for a character that is not the next one of `null`, `true` or
/// `false`. `column` is the index of the character in the line.
fn in_literal(line: &[u8], column: usize) -> Option<String> {
    let before = line.get(..column)?;
    let length = before
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_alphabetic());
    let length = length.count();
    let first = line.get(column - length)?;
    let literals = ["null", "true", "false"];
    let literal = literals
        .iter()
        .find(|literal| literal.as_bytes().first() == Some(first))?;
    let expected = char::from(*literal.as_bytes().get(length)?);
    Some(format!("in literal {literal} (expecting '{expected}')"))
}

#[cfg(test)]
mod tests;
