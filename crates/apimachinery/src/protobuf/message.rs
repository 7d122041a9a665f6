//! From the bytes of a message to JSON, as the table says.

use serde_json::{Map, Value};

use super::table::{Cardinality, Field, Form, Message, Table, Type};
use super::wire::{Datum, Reader};
use super::{MAGIC, leaf, malformed};
use crate::error::ProtobufError;

/// How deep messages may nest. Schemas of custom resources are the deepest objects there are,
/// and they must also pass as JSON, whose reader stops at the same depth.
const DEPTH_MAX: usize = 128;

/// Reads messages of a table.
#[derive(Debug)]
pub(super) struct Decoder<'t> {
    pub(super) table: &'t Table,
}

impl Decoder<'_> {
    /// Reads a message in its own form.
    pub(super) fn message(
        &self,
        message: &Message,
        bytes: &[u8],
        depth: usize,
    ) -> Result<Value, ProtobufError> {
        let mut fields = Map::new();
        match message.form {
            Form::Message => {
                self.fill(message, bytes, depth, &mut fields)?;
                Ok(Value::Object(fields))
            }
            Form::List => {
                self.fill(message, bytes, depth, &mut fields)?;
                let items = fields.into_iter().next().map(|(_, items)| items);
                Ok(items.unwrap_or_else(|| Value::Array(Vec::new())))
            }
            Form::Choice => {
                let last = self.fill(message, bytes, depth, &mut fields)?;
                let name = message
                    .field(last)
                    .map(|field| field.name)
                    .unwrap_or_default();
                Ok(fields.remove(name).unwrap_or(Value::Null))
            }
        }
    }

    /// Reads the fields of a message into `out`, and tells the highest number it has seen.
    fn fill(
        &self,
        message: &Message,
        bytes: &[u8],
        depth: usize,
        out: &mut Map<String, Value>,
    ) -> Result<u32, ProtobufError> {
        if depth > DEPTH_MAX {
            let reason = format!("is nested deeper than {DEPTH_MAX} messages");
            return Err(malformed(message.name, "", reason));
        }
        let mut highest = 0;
        for item in Reader::new(bytes) {
            let (number, datum) = item.map_err(|reason| malformed(message.name, "", reason))?;
            // A newer client may know fields that we do not.
            if let Some(field) = message.field(number) {
                highest = highest.max(number);
                self.field(message, field, datum, depth, out)?;
            }
        }
        Ok(highest)
    }

    fn field(
        &self,
        message: &Message,
        field: &Field,
        datum: Datum<'_>,
        depth: usize,
        out: &mut Map<String, Value>,
    ) -> Result<(), ProtobufError> {
        let at = At {
            message: message.name,
            field: field.name,
        };
        match field.cardinality {
            Cardinality::One => {
                let value = self.value(at, field.type_, datum, depth)?;
                if field.omit_empty && is_empty(&value) {
                    out.remove(field.name);
                } else {
                    out.insert(field.name.to_owned(), value);
                }
            }
            Cardinality::List => {
                let list = out
                    .entry(field.name)
                    .or_insert_with(|| Value::Array(Vec::new()));
                if let Value::Array(items) = list {
                    match datum {
                        Datum::Bytes(bytes) if is_varint(field.type_) => {
                            packed(at, field.type_, bytes, items)?;
                        }
                        _ => items.push(self.value(at, field.type_, datum, depth)?),
                    }
                }
            }
            Cardinality::Map => {
                let (key, value) = self.entry(at, field.type_, datum, depth)?;
                let map = out
                    .entry(field.name)
                    .or_insert_with(|| Value::Object(Map::new()));
                if let Value::Object(entries) = map {
                    entries.insert(key, value);
                }
            }
            Cardinality::Inline => {
                let bytes = datum
                    .bytes("a message")
                    .map_err(|reason| at.error(reason))?;
                if let Type::Message(index) = field.type_
                    && let Some(inner) = self.table.message(index)
                {
                    self.fill(inner, bytes, depth + 1, out)?;
                }
            }
        }
        Ok(())
    }

    /// An entry of a map is a message of its own: the key is field 1, the value field 2, and
    /// what is not there is empty.
    fn entry(
        &self,
        at: At<'_>,
        type_: Type,
        datum: Datum<'_>,
        depth: usize,
    ) -> Result<(String, Value), ProtobufError> {
        let bytes = datum
            .bytes("an entry of a map")
            .map_err(|reason| at.error(reason))?;
        let (mut key, mut value) = ("", None);
        for item in Reader::new(bytes) {
            match item.map_err(|reason| at.error(reason))? {
                (1, datum) => key = datum.text().map_err(|reason| at.error(reason))?,
                (2, datum) => value = Some(self.value(at, type_, datum, depth)?),
                _ => {}
            }
        }
        let value = match value {
            Some(value) => value,
            None => {
                let empty = match type_ {
                    Type::Bool | Type::Int32 | Type::Int64 => Datum::Varint(0),
                    Type::Double => Datum::Fixed64(0),
                    _ => Datum::Bytes(&[]),
                };
                self.value(at, type_, empty, depth)?
            }
        };
        Ok((key.to_owned(), value))
    }

    fn value(
        &self,
        at: At<'_>,
        type_: Type,
        datum: Datum<'_>,
        depth: usize,
    ) -> Result<Value, ProtobufError> {
        let value = match (type_, datum) {
            (Type::Message(index), Datum::Bytes(bytes)) => {
                let message = self.table.message(index);
                let message = message.ok_or_else(|| at.error("is of no known message"))?;
                return self.message(message, bytes, depth + 1);
            }
            // An object inside of an object, such as an old revision, may have its own envelope.
            (Type::Json, Datum::Bytes(bytes)) => {
                let raw = leaf::raw(bytes).map_err(|reason| at.error(reason))?;
                if raw.starts_with(MAGIC) && depth < DEPTH_MAX {
                    return self.envelope(raw, depth + 1);
                }
                leaf::json(raw)
            }
            (Type::String, datum) => datum.text().map(Value::from),
            (Type::Bytes, Datum::Bytes(bytes)) => Ok(leaf::base64(bytes).into()),
            (Type::Double, Datum::Fixed64(bits)) => leaf::double(f64::from_bits(bits)),
            (Type::Quantity, Datum::Bytes(bytes)) => leaf::quantity(bytes),
            (Type::IntOrString, Datum::Bytes(bytes)) => leaf::int_or_string(bytes),
            (Type::Duration, Datum::Bytes(bytes)) => leaf::duration(bytes),
            (Type::Time, Datum::Bytes(bytes)) => leaf::time(bytes, "%Y-%m-%dT%H:%M:%SZ"),
            (Type::MicroTime, Datum::Bytes(bytes)) => leaf::time(bytes, "%Y-%m-%dT%H:%M:%S%.6fZ"),
            (type_, Datum::Varint(bits)) if is_varint(type_) => Ok(varint(type_, bits)),
            (_, datum) => Err(format!("is {}, which it cannot be", datum.name())),
        };
        value.map_err(|reason| at.error(reason))
    }
}

/// Where a value stands.
#[derive(Debug, Clone, Copy)]
struct At<'a> {
    message: &'a str,
    field: &'a str,
}

impl At<'_> {
    fn error(self, reason: impl Into<String>) -> ProtobufError {
        malformed(self.message, self.field, reason)
    }
}

fn is_varint(type_: Type) -> bool {
    matches!(type_, Type::Bool | Type::Int32 | Type::Int64)
}

/// Negative numbers are sign-extended to 64 bits on the wire, 32-bit ones as well.
fn varint(type_: Type, bits: u64) -> Value {
    match type_ {
        Type::Bool => Value::Bool(bits != 0),
        Type::Int32 => Value::from(bits.cast_signed() as i32),
        _ => Value::from(bits.cast_signed()),
    }
}

/// Several numbers in one value: Kubernetes does not write them so, but every reader takes them.
fn packed(
    at: At<'_>,
    type_: Type,
    bytes: &[u8],
    items: &mut Vec<Value>,
) -> Result<(), ProtobufError> {
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        let bits = reader.varint().map_err(|reason| at.error(reason))?;
        items.push(varint(type_, bits));
    }
    Ok(())
}

/// Whether Go's JSON would leave the value out, or show a struct without anything in it. A
/// quantity is text and never empty: Go prints `"0"`.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}
