//! A serde deserializer over one value of a field.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserializer as _;
use serde::de::value::StrDeserializer;
use serde::de::{Error as _, IntoDeserializer, Visitor};
use serde::forward_to_deserialize_any;

use super::deserializer::{Context, Deserializer};
use super::leaf::{self, IntOrString, Precision};
use super::table::{Field, Form, MessageType, Type};
use super::wire::Datum;
use super::{MAGIC, envelope, malformed};
use crate::error::ProtobufError;

/// One encoded value of a field. A list or a map has several values.
#[derive(Debug, Clone, Copy)]
pub(super) struct Value<'de> {
    pub(super) context: Context,
    pub(super) field: &'static Field,
    pub(super) datum: Datum<'de>,
}

impl<'de> Value<'de> {
    fn malformed(&self, reason: impl Into<String>) -> ProtobufError {
        malformed(self.context.message.name, self.field.name, reason)
    }

    /// Reports whether the value is written as null in JSON.
    fn is_null(&self) -> bool {
        let Datum::Bytes(bytes) = self.datum else {
            return false;
        };
        match self.field.type_ {
            Type::Time | Type::MicroTime => bytes.is_empty(),
            Type::Json => leaf::raw(bytes).is_ok_and(<[u8]>::is_empty),
            Type::Message(index) => {
                let message = self.context.table.message(index);
                bytes.is_empty() && message.is_some_and(|message| message.form == Form::Choice)
            }
            _ => false,
        }
    }

    fn message<V: Visitor<'de>>(
        self,
        index: usize,
        bytes: &'de [u8],
        visitor: V,
    ) -> Result<V::Value, ProtobufError> {
        let Context { table, depth, .. } = self.context;
        let message = table.message(index);
        let message = message.ok_or_else(|| self.malformed("has an unknown message type"))?;
        Deserializer::new(MessageType { table, message }, bytes)
            .nested(depth)
            .deserialize_any(visitor)
    }

    /// Deserializes a value that is JSON inside protobuf. Empty bytes are null, as in Go. An
    /// embedded object, such as the data of a ControllerRevision, may have its own envelope.
    fn json<V: Visitor<'de>>(
        self,
        bytes: &'de [u8],
        visitor: V,
    ) -> Result<V::Value, ProtobufError> {
        let mut raw = leaf::raw(bytes).map_err(|error| self.malformed(error))?;
        if raw.starts_with(MAGIC) {
            let envelope = envelope(raw)?;
            if envelope.is_protobuf() {
                return Deserializer::enveloped(&envelope)?
                    .nested(self.context.depth)
                    .deserialize_any(visitor);
            }
            raw = envelope.raw;
        }
        if raw.is_empty() {
            return visitor.visit_unit();
        }
        let not_json = |error: serde_json::Error| match error.is_data() {
            true => ProtobufError::custom(error),
            false => self.malformed(format!("is not JSON: {error}")),
        };
        let mut json = serde_json::Deserializer::from_slice(raw);
        let value = json.deserialize_any(visitor).map_err(not_json)?;
        json.end().map_err(not_json)?;
        Ok(value)
    }

    fn time<V: Visitor<'de>>(
        self,
        bytes: &[u8],
        precision: Precision,
        visitor: V,
    ) -> Result<V::Value, ProtobufError> {
        match leaf::time(bytes, precision).map_err(|reason| self.malformed(reason))? {
            Some(text) => visitor.visit_str(text.as_str()),
            None => visitor.visit_unit(),
        }
    }

    fn double<V: Visitor<'de>>(self, value: f64, visitor: V) -> Result<V::Value, ProtobufError> {
        match leaf::whole(value) {
            Some(whole) => visitor.visit_i64(whole),
            None if value.is_finite() => visitor.visit_f64(value),
            None => Err(self.malformed(format!("is {value}, which JSON cannot represent"))),
        }
    }
}

impl<'de> serde::Deserializer<'de> for Value<'de> {
    type Error = ProtobufError;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProtobufError> {
        match (self.field.type_, self.datum) {
            (Type::String, datum) => {
                visitor.visit_borrowed_str(datum.text().map_err(|error| self.malformed(error))?)
            }
            (Type::Message(index), Datum::Bytes(bytes)) => self.message(index, bytes, visitor),
            // Negative numbers are sign-extended to 64 bits on the wire, even those of 32 bits.
            (Type::Int32, Datum::Varint(bits)) => visitor.visit_i32(bits.cast_signed() as i32),
            (Type::Int64, Datum::Varint(bits)) => visitor.visit_i64(bits.cast_signed()),
            (Type::Bool, Datum::Varint(bits)) => visitor.visit_bool(bits != 0),
            (Type::Double, Datum::Fixed64(bits)) => self.double(f64::from_bits(bits), visitor),
            (Type::Bytes, Datum::Bytes(bytes)) => visitor.visit_string(STANDARD.encode(bytes)),
            (Type::Json, Datum::Bytes(bytes)) => self.json(bytes, visitor),
            (Type::Quantity, Datum::Bytes(bytes)) => visitor
                .visit_borrowed_str(leaf::quantity(bytes).map_err(|error| self.malformed(error))?),
            (Type::IntOrString, Datum::Bytes(bytes)) => {
                match leaf::int_or_string(bytes).map_err(|error| self.malformed(error))? {
                    IntOrString::Int(number) => visitor.visit_i32(number),
                    IntOrString::String(text) => visitor.visit_borrowed_str(text),
                }
            }
            (Type::Duration, Datum::Bytes(bytes)) => {
                visitor.visit_string(leaf::duration(bytes).map_err(|error| self.malformed(error))?)
            }
            (Type::Time, Datum::Bytes(bytes)) => self.time(bytes, Precision::Seconds, visitor),
            (Type::MicroTime, Datum::Bytes(bytes)) => {
                self.time(bytes, Precision::Microseconds, visitor)
            }
            (_, datum) => {
                Err(self.malformed(format!("is {}, which the field cannot hold", datum.name())))
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProtobufError> {
        if self.is_null() {
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, ProtobufError> {
        visitor.visit_newtype_struct(self)
    }

    /// Deserializes a string as the name of an enum variant.
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ProtobufError> {
        let text = match self.field.type_ {
            Type::String => self.datum.text().map_err(|error| self.malformed(error))?,
            _ => return self.deserialize_any(visitor),
        };
        let text: StrDeserializer<'_, ProtobufError> = text.into_deserializer();
        visitor.visit_enum(text)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(
        self,
        visitor: V,
    ) -> Result<V::Value, ProtobufError> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string
        bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier
    }
}
