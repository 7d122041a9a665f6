//! A serde deserializer over the bytes of a message.

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::fields::{Fields, Found, is_empty};
use super::table::{Cardinality, Field, Form, Message, MessageType, Table, Type};
use super::value::Value;
use super::wire::{Datum, Reader};
use super::{Envelope, malformed};
use crate::error::ProtobufError;

/// Implements all methods but `deserialize_any` for a deserializer whose value is never null.
macro_rules! never_null {
    () => {
        fn deserialize_option<V: Visitor<'de>>(
            self,
            visitor: V,
        ) -> Result<V::Value, ProtobufError> {
            visitor.visit_some(self)
        }

        fn deserialize_newtype_struct<V: Visitor<'de>>(
            self,
            _name: &'static str,
            visitor: V,
        ) -> Result<V::Value, ProtobufError> {
            visitor.visit_newtype_struct(self)
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
            tuple_struct map struct enum identifier
        }
    };
}

/// Maximum nesting depth of messages. The schemas of custom resources nest deepest. The limit is
/// that of the JSON parser, so that an object is accepted in both formats.
pub(super) const DEPTH_MAX: usize = 128;

/// A serde deserializer of a protobuf message without its envelope.
///
/// The deserializer reads the wire bytes directly: strings are borrowed, fields need no allocation,
/// and ignored fields are skipped without being decoded. The visitor gets the same fields as from
/// the JSON of the object; the documentation of the [module](super) lists the fields that are
/// omitted.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::protobuf::{Deserializer, MessageType};
/// use serde::Deserialize;
///
/// #[derive(Deserialize)]
/// struct Named<'a> {
///     #[serde(borrow)]
///     metadata: Metadata<'a>,
/// }
/// #[derive(Deserialize)]
/// struct Metadata<'a> {
///     name: &'a str,
/// }
///
/// let message = MessageType::of("v1", "Namespace").ok_or("no such kind")?;
/// let named = Named::deserialize(Deserializer::new(message, b"\x0a\x03\x0a\x01a"))?;
/// assert_eq!(named.metadata.name, "a");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Deserializer<'de> {
    type_: MessageType,
    bytes: &'de [u8],
    type_meta: Option<(&'de str, &'de str)>,
    /// Number of levels of messages that may still nest in this message.
    depth: usize,
}

impl<'de> Deserializer<'de> {
    /// Creates a deserializer for the bytes of a message of this type.
    pub fn new(message: MessageType, bytes: &'de [u8]) -> Self {
        Self {
            type_: message,
            bytes,
            type_meta: None,
            depth: DEPTH_MAX,
        }
    }

    /// Creates a deserializer for the message in an envelope, with the envelope's `apiVersion` and
    /// `kind`.
    ///
    /// # Errors
    ///
    /// If the kind is not a built-in kind, or the content of the envelope is not protobuf.
    pub fn enveloped(envelope: &Envelope<'de>) -> Result<Self, ProtobufError> {
        let (api_version, kind) = (envelope.api_version, envelope.kind);
        if !envelope.is_protobuf() {
            return Err(ProtobufError::Encoding {
                what: envelope.content_type.to_owned(),
            });
        }
        let message =
            MessageType::of(api_version, kind).ok_or_else(|| ProtobufError::UnknownKind {
                api_version: api_version.to_owned(),
                kind: kind.to_owned(),
            })?;
        Ok(Self::new(message, envelope.raw).with_type_meta(api_version, kind))
    }

    /// Sets the `apiVersion` and `kind` that the visitor gets before the other fields. Use this
    /// method for the items of a list, whose messages contain neither.
    #[must_use]
    pub fn with_type_meta(mut self, api_version: &'de str, kind: &'de str) -> Self {
        self.type_meta = Some((api_version, kind));
        self
    }

    pub(super) fn nested(self, depth: usize) -> Self {
        Self { depth, ..self }
    }

    /// Returns the field that holds the JSON value of a list or choice message: the field with the
    /// highest number among those in the bytes.
    fn only_field(&self, fields: &mut Fields<'de>) -> Result<Option<Found<'de>>, ProtobufError> {
        let message = self.type_.message;
        let mut highest = 0;
        for item in Reader::new(self.bytes) {
            let (number, _) = item.map_err(|error| malformed(message.name, "", error))?;
            if message.field(number).is_some() {
                highest = highest.max(number);
            }
        }
        while let Some((field, datum)) = fields.next()? {
            if field.number == highest {
                return Ok(Some((field, datum)));
            }
        }
        Ok(None)
    }
}

impl<'de> serde::Deserializer<'de> for Deserializer<'de> {
    type Error = ProtobufError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProtobufError> {
        let MessageType { table, message } = self.type_;
        let Some(depth) = self.depth.checked_sub(1) else {
            let reason = format!("is nested deeper than {DEPTH_MAX} messages");
            return Err(malformed(message.name, "", reason));
        };
        let mut fields = Fields::open(table, message, self.bytes)?;
        let context = Context {
            table,
            message,
            depth,
        };
        if message.form == Form::Message {
            return visitor.visit_map(MessageAccess {
                context,
                fields,
                type_meta: self.type_meta,
                kind: None,
                current: None,
            });
        }
        match self.only_field(&mut fields)? {
            Some((field, datum)) => FieldValue {
                context,
                fields: &mut fields,
                field,
                first: datum,
            }
            .deserialize_any(visitor),
            None if message.form == Form::List => visitor.visit_seq(EmptyList),
            None => visitor.visit_unit(),
        }
    }

    never_null!();
}

/// The message to which a value belongs, and the remaining nesting depth.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context {
    pub(super) table: &'static Table,
    pub(super) message: &'static Message,
    /// Number of levels of messages that may still nest in this message.
    pub(super) depth: usize,
}

impl Context {
    fn value<'de>(self, field: &'static Field, datum: Datum<'de>) -> Value<'de> {
        Value {
            context: self,
            field,
            datum,
        }
    }
}

/// Serde `MapAccess` to the fields of a message.
struct MessageAccess<'de> {
    context: Context,
    fields: Fields<'de>,
    /// The `apiVersion` and `kind` to return before the fields. When the `apiVersion` is returned,
    /// the kind moves from `type_meta` to the field `kind`.
    type_meta: Option<(&'de str, &'de str)>,
    kind: Option<&'de str>,
    current: Option<Current<'de>>,
}

/// The value of the key that was returned last.
enum Current<'de> {
    Text(&'de str),
    Field(Found<'de>),
    /// The first value of this list or map field was returned; further values may follow.
    Taken(&'static Field),
}

impl<'de> MapAccess<'de> for MessageAccess<'de> {
    type Error = ProtobufError;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ProtobufError> {
        if let Some((api_version, kind)) = self.type_meta.take() {
            self.current = Some(Current::Text(api_version));
            self.kind = Some(kind);
            return seed.deserialize(key("apiVersion")).map(Some);
        }
        if let Some(kind) = self.kind.take() {
            self.current = Some(Current::Text(kind));
            return seed.deserialize(key("kind")).map(Some);
        }
        if let Some(Current::Taken(field)) = self.current.take() {
            while self.fields.next_of(field)?.is_some() {}
        }
        while let Some((field, datum)) = self.fields.next()? {
            let Context { table, depth, .. } = self.context;
            if field.omit_empty
                && field.cardinality == Cardinality::One
                && is_empty(table, field.type_, datum, depth)
            {
                continue;
            }
            self.current = Some(Current::Field((field, datum)));
            return seed.deserialize(key(field.name)).map(Some);
        }
        Ok(None)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, ProtobufError> {
        match self.current.take() {
            Some(Current::Text(text)) => seed.deserialize(key(text)),
            Some(Current::Field((field, datum))) => {
                let context = self.context;
                let value = if field.cardinality == Cardinality::One {
                    seed.deserialize(context.value(field, datum))
                } else {
                    self.current = Some(Current::Taken(field));
                    seed.deserialize(FieldValue {
                        context,
                        fields: &mut self.fields,
                        field,
                        first: datum,
                    })
                };
                value.map_err(|error| error.located(context.message.name, field.name))
            }
            _ => Err(ProtobufError::custom(
                "a value was requested before its key",
            )),
        }
    }
}

fn key(text: &str) -> BorrowedStrDeserializer<'_, ProtobufError> {
    BorrowedStrDeserializer::new(text)
}

/// All values of a field: one value, a list or a map.
struct FieldValue<'a, 'de> {
    context: Context,
    fields: &'a mut Fields<'de>,
    field: &'static Field,
    first: Datum<'de>,
}

impl<'de> serde::Deserializer<'de> for FieldValue<'_, 'de> {
    type Error = ProtobufError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ProtobufError> {
        let iter = FieldIter {
            context: self.context,
            fields: self.fields,
            field: self.field,
            first: Some(self.first),
        };
        match self.field.cardinality {
            Cardinality::List => visitor.visit_seq(ListAccess { iter, packed: None }),
            Cardinality::Map => visitor.visit_map(EntryAccess { iter, value: None }),
            Cardinality::One | Cardinality::Inline => self
                .context
                .value(self.field, self.first)
                .deserialize_any(visitor),
        }
    }

    never_null!();
}

/// Iterator over the values of one field.
struct FieldIter<'a, 'de> {
    context: Context,
    fields: &'a mut Fields<'de>,
    field: &'static Field,
    first: Option<Datum<'de>>,
}

impl<'de> FieldIter<'_, 'de> {
    fn next(&mut self) -> Result<Option<Datum<'de>>, ProtobufError> {
        match self.first.take() {
            Some(datum) => Ok(Some(datum)),
            None => self.fields.next_of(self.field),
        }
    }

    fn malformed(&self, reason: impl Into<String>) -> ProtobufError {
        malformed(self.context.message.name, self.field.name, reason)
    }
}

struct ListAccess<'a, 'de> {
    iter: FieldIter<'a, 'de>,
    /// Reader of packed numbers: several numbers in one value. Kubernetes does not write packed
    /// numbers, but every protobuf decoder has to accept them.
    packed: Option<Reader<'de>>,
}

impl<'de> SeqAccess<'de> for ListAccess<'_, 'de> {
    type Error = ProtobufError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, ProtobufError> {
        let datum = loop {
            if let Some(packed) = &mut self.packed
                && !packed.is_empty()
            {
                let bits = packed
                    .varint()
                    .map_err(|error| self.iter.malformed(error))?;
                break Datum::Varint(bits);
            }
            match self.iter.next()? {
                None => return Ok(None),
                Some(Datum::Bytes(bytes)) if self.iter.field.type_.is_varint() => {
                    self.packed = Some(Reader::new(bytes));
                }
                Some(datum) => break datum,
            }
        };
        seed.deserialize(self.iter.context.value(self.iter.field, datum))
            .map(Some)
    }
}

/// Serde `MapAccess` to the entries of a map. Each entry is a message with the key in field 1 and
/// the value in field 2; a missing field is an empty key or value.
struct EntryAccess<'a, 'de> {
    iter: FieldIter<'a, 'de>,
    value: Option<Datum<'de>>,
}

impl<'de> MapAccess<'de> for EntryAccess<'_, 'de> {
    type Error = ProtobufError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, ProtobufError> {
        let Some(datum) = self.iter.next()? else {
            return Ok(None);
        };
        let bytes = datum
            .bytes("an entry of a map")
            .map_err(|error| self.iter.malformed(error))?;
        let (mut name, mut value) = ("", None);
        for item in Reader::new(bytes) {
            match item.map_err(|error| self.iter.malformed(error))? {
                (1, datum) => name = datum.text().map_err(|error| self.iter.malformed(error))?,
                (2, datum) => value = Some(datum),
                _ => {}
            }
        }
        self.value = Some(value.unwrap_or(match self.iter.field.type_ {
            Type::Bool | Type::Int32 | Type::Int64 => Datum::Varint(0),
            Type::Double => Datum::Fixed64(0),
            _ => Datum::Bytes(&[]),
        }));
        seed.deserialize(key(name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, ProtobufError> {
        match self.value.take() {
            Some(datum) => seed.deserialize(self.iter.context.value(self.iter.field, datum)),
            None => Err(ProtobufError::custom(
                "a value was requested before its key",
            )),
        }
    }
}

/// Serde `SeqAccess` to an empty list.
struct EmptyList;

impl<'de> SeqAccess<'de> for EmptyList {
    type Error = ProtobufError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        _seed: T,
    ) -> Result<Option<T::Value>, ProtobufError> {
        Ok(None)
    }
}
