//! Encodes JSON as protobuf messages, with the field numbers and types of the table of messages.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::compose::{ENVELOPE_END, envelope_start};
use super::deserializer::DEPTH_MAX;
use super::leaf::{self, Precision};
use super::table::{Cardinality, Field, Form, Message, MessageType, Table, Type};
use super::wire::Writer;
use crate::error::ProtobufError;

/// Encodes an object of a built-in kind, or a list of such objects, as protobuf in an envelope.
///
/// The bytes are the same as those that Go's encoder writes.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::protobuf::{decode, encode};
/// use serde_json::json;
///
/// let mut object =
///     json!({"apiVersion": "v1", "kind": "Secret", "data": {"password": "c2VjcmV0"}});
/// let read = decode(&encode(&object)?)?;
/// // In Go, this struct is written even if it is empty.
/// object["metadata"] = json!({});
/// assert_eq!(read, object);
/// # Ok::<(), opkit_apimachinery::protobuf::ProtobufError>(())
/// ```
///
/// # Errors
///
/// If the object has no `apiVersion` or `kind`, if the kind is not built in, if the message lacks a
/// field of the object, or if a value does not fit its field. The error contains the name of the
/// field; no field is dropped silently.
pub fn encode(value: &Value) -> Result<Vec<u8>, ProtobufError> {
    let (api_version, kind) = type_meta(value)?;
    let message = encode_message(value)?;
    let start = envelope_start(api_version, kind, message.len());
    Ok([&start, message.as_slice(), ENVELOPE_END].concat())
}

/// Encodes an object of a built-in kind, or a list of such objects, as a protobuf message without
/// an envelope.
///
/// # Errors
///
/// The errors of [`encode()`].
pub fn encode_message(value: &Value) -> Result<Vec<u8>, ProtobufError> {
    let (api_version, kind) = type_meta(value)?;
    let MessageType { table, message } =
        MessageType::of(api_version, kind).ok_or_else(|| ProtobufError::UnknownKind {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
        })?;
    let mut encoder = Encoder {
        table,
        out: Writer::default(),
    };
    encoder.message(message, value, DEPTH_MAX)?;
    Ok(encoder.out.finish())
}

/// Returns the `apiVersion` and the `kind` of an object.
fn type_meta(value: &Value) -> Result<(&str, &str), ProtobufError> {
    let field = |field: &'static str| {
        let text = value.get(field).and_then(Value::as_str);
        text.ok_or(ProtobufError::NoTypeMeta { field })
    };
    Ok((field("apiVersion")?, field("kind")?))
}

/// Encoder of messages. Each message is written from its end to its start.
struct Encoder {
    table: &'static Table,
    out: Writer,
}

impl Encoder {
    fn message(
        &mut self,
        message: &Message,
        value: &Value,
        depth: usize,
    ) -> Result<(), ProtobufError> {
        let Some(depth) = depth.checked_sub(1) else {
            let reason = format!("is nested deeper than {DEPTH_MAX} messages");
            return Err(unwritable(message, None, reason));
        };
        match (message.form, value) {
            (Form::Message, Value::Object(object)) => {
                let written = self.fields(message, object, depth)?;
                let set = object.values().filter(|value| !value.is_null()).count();
                match written < set {
                    true => self.check_fields(message, object),
                    false => Ok(()),
                }
            }
            (Form::Message, Value::Null) => self.fields(message, &Map::new(), depth).map(drop),
            (Form::List, _) => match message.fields().next() {
                Some(field) => self.field(message, field, Some(value), depth),
                None => Ok(()),
            },
            (Form::Choice, _) => self.choice(message, value, depth),
            (Form::Message, other) => {
                let reason = format!("is {} and not an object", type_name(other));
                Err(unwritable(message, None, reason))
            }
        }
    }

    /// Returns an error if the object has a field that the message does not have.
    fn check_fields(
        &self,
        message: &Message,
        object: &Map<String, Value>,
    ) -> Result<(), ProtobufError> {
        for (name, value) in object {
            let is_type_meta = message.is_kind && (name == "apiVersion" || name == "kind");
            if !is_type_meta && !value.is_null() && !self.has_field(message, name) {
                return Err(ProtobufError::Unwritable {
                    field: format!("{}.{name}", message.name),
                    reason: "is not a field of the message".to_owned(),
                });
            }
        }
        Ok(())
    }

    fn has_field(&self, message: &Message, name: &str) -> bool {
        message.fields().any(|field| match field.type_ {
            Type::Message(index) if field.cardinality == Cardinality::Inline => {
                let inner = self.table.message(index);
                inner.is_some_and(|inner| self.has_field(inner, name))
            }
            _ => field.name == name,
        })
    }

    /// Writes the fields of a message, and returns the number of fields that the object sets.
    fn fields(
        &mut self,
        message: &Message,
        object: &Map<String, Value>,
        depth: usize,
    ) -> Result<usize, ProtobufError> {
        let mut written = 0;
        for field in message.fields().rev() {
            match field.type_ {
                Type::Message(index) if field.cardinality == Cardinality::Inline => {
                    let start = self.out.position();
                    if let Some(inner) = self.table.message(index) {
                        written += self.fields(inner, object, depth)?;
                    }
                    self.out.length_since(start, field.number);
                }
                _ => {
                    let value = object.get(field.name).filter(|value| !value.is_null());
                    written += usize::from(value.is_some());
                    self.field(message, field, value, depth)?;
                }
            }
        }
        Ok(written)
    }

    fn field(
        &mut self,
        message: &Message,
        field: &Field,
        value: Option<&Value>,
        depth: usize,
    ) -> Result<(), ProtobufError> {
        let value = value.unwrap_or(&Value::Null);
        match (field.cardinality, value) {
            // Bytes are a slice and not a pointer in Go; an unset slice is not written either.
            (Cardinality::One, Value::Null) if field.is_pointer || field.type_ == Type::Bytes => {
                // In JSON, an explicit null is a pointer that is not set.
                Ok(())
            }
            (Cardinality::List | Cardinality::Map, Value::Null) => Ok(()),
            (Cardinality::One, value) => self.value(message, field, field.number, value, depth),
            (Cardinality::List, Value::Array(items)) => {
                for item in items.iter().rev() {
                    self.value(message, field, field.number, item, depth)?;
                }
                Ok(())
            }
            (Cardinality::Map, Value::Object(entries)) => {
                let mut entries: Vec<_> = entries.iter().collect();
                entries.sort_unstable_by(|left, right| right.0.cmp(left.0));
                for (key, value) in entries {
                    let start = self.out.position();
                    self.value(message, field, 2, value, depth)?;
                    let text = self.out.position();
                    self.out.bytes(key.as_bytes());
                    self.out.length_since(text, 1);
                    self.out.length_since(start, field.number);
                }
                Ok(())
            }
            (cardinality, other) => {
                let expected = match cardinality {
                    Cardinality::List => "a list",
                    _ => "an object",
                };
                let reason = format!("is {} and not {expected}", type_name(other));
                Err(unwritable(message, Some(field), reason))
            }
        }
    }

    /// Writes the field of a choice message whose type fits the value. In a JSONSchemaPropsOrBool,
    /// a schema also sets the field `allows`.
    fn choice(
        &mut self,
        message: &Message,
        value: &Value,
        depth: usize,
    ) -> Result<(), ProtobufError> {
        let fits = |field: &Field| match value {
            Value::Array(_) => field.cardinality == Cardinality::List,
            Value::Bool(_) => field.type_ == Type::Bool,
            _ => field.cardinality == Cardinality::One && field.type_ != Type::Bool,
        };
        let mut written = false;
        for field in message.fields().rev() {
            if fits(field) {
                self.field(message, field, Some(value), depth)?;
                written = true;
            } else if field.type_ == Type::Bool {
                self.field(message, field, Some(&Value::Bool(written)), depth)?;
            }
        }
        match written {
            true => Ok(()),
            false => {
                let reason = format!("is {}, which the message cannot hold", type_name(value));
                Err(unwritable(message, None, reason))
            }
        }
    }

    /// Writes one value of a field with the tag of the field. Null is written as the zero value of
    /// the type.
    fn value(
        &mut self,
        message: &Message,
        field: &Field,
        number: u32,
        value: &Value,
        depth: usize,
    ) -> Result<(), ProtobufError> {
        let type_mismatch = |expected: &str| {
            let reason = format!("is {} and not {expected}", type_name(value));
            unwritable(message, Some(field), reason)
        };
        let text = || match value {
            Value::Null => Ok(""),
            other => other.as_str().ok_or_else(|| type_mismatch("a string")),
        };
        let not = |expected: &str| {
            unwritable(message, Some(field), format!("is not {expected}: {value}"))
        };
        if field.type_.is_varint() {
            let bits = match (field.type_, value) {
                (_, Value::Null) => 0,
                (Type::Bool, value) => {
                    u64::from(value.as_bool().ok_or_else(|| type_mismatch("a boolean"))?)
                }
                (type_, value) => {
                    let integer = integer(value).ok_or_else(|| type_mismatch("an integer"))?;
                    if type_ == Type::Int32 && i32::try_from(integer).is_err() {
                        return Err(not("an integer of 32 bits"));
                    }
                    integer.cast_unsigned()
                }
            };
            self.out.varint(bits);
            self.out.tag(number, 0);
            return Ok(());
        }
        let start = self.out.position();
        match field.type_ {
            Type::Double => {
                let double = match value {
                    Value::Null => 0.0,
                    value => value.as_f64().ok_or_else(|| type_mismatch("a number"))?,
                };
                self.out.bytes(&double.to_le_bytes());
                self.out.tag(number, 1);
                return Ok(());
            }
            Type::Message(index) => {
                let inner = self.table.message(index);
                let inner = inner.ok_or_else(|| not("of a known message"))?;
                self.message(inner, value, depth)?;
            }
            Type::String => self.out.bytes(text()?.as_bytes()),
            Type::Bytes => {
                let bytes = STANDARD.decode(text()?).map_err(|_| not("base64"))?;
                self.out.bytes(&bytes);
            }
            Type::Quantity => {
                let quantity = match value {
                    Value::Number(number) => number.to_string(),
                    Value::Null => "0".to_owned(),
                    _ => text()?.to_owned(),
                };
                self.out.bytes(quantity.as_bytes());
                self.out.length_since(start, 1);
            }
            Type::IntOrString => {
                let (is_text, number, text) = match value {
                    Value::String(text) => (1, 0, text.as_str()),
                    Value::Null => (0, 0, ""),
                    value => {
                        let number = integer(value)
                            .filter(|number| i32::try_from(*number).is_ok())
                            .ok_or_else(|| type_mismatch("a string or an integer of 32 bits"))?;
                        (0, number, "")
                    }
                };
                self.out.bytes(text.as_bytes());
                self.out.length_since(start, 3);
                self.out.varint(number.cast_unsigned());
                self.out.tag(2, 0);
                self.out.varint(is_text);
                self.out.tag(1, 0);
            }
            Type::Duration => {
                let nanoseconds = match text()? {
                    "" => 0,
                    text => leaf::parse_duration(text).ok_or_else(|| not("a duration"))?,
                };
                self.out.varint(nanoseconds.cast_unsigned());
                self.out.tag(1, 0);
            }
            Type::Time | Type::MicroTime => {
                let precision = match field.type_ {
                    Type::Time => Precision::Seconds,
                    _ => Precision::Microseconds,
                };
                if let Value::String(text) = value {
                    let (seconds, nanoseconds) =
                        leaf::parse_time(text, precision).ok_or_else(|| not("a time"))?;
                    self.out.varint(nanoseconds.cast_unsigned());
                    self.out.tag(2, 0);
                    self.out.varint(seconds.cast_unsigned());
                    self.out.tag(1, 0);
                } else if !value.is_null() {
                    return Err(type_mismatch("a time"));
                }
            }
            Type::Json => {
                if !value.is_null() {
                    self.out.bytes(value.to_string().as_bytes());
                    self.out.length_since(start, 1);
                }
            }
            Type::Bool | Type::Int32 | Type::Int64 => {}
        }
        self.out.length_since(start, number);
        Ok(())
    }
}

/// Returns the value as an integer. A number with a zero fraction, such as `1.0`, is an integer.
fn integer(value: &Value) -> Option<i64> {
    value
        .as_i64()
        .or_else(|| value.as_f64().and_then(leaf::whole))
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn unwritable(message: &Message, field: Option<&Field>, reason: String) -> ProtobufError {
    let field = match field {
        Some(field) => format!("{}.{}", message.name, field.name),
        None => message.name.to_owned(),
    };
    ProtobufError::Unwritable { field, reason }
}
