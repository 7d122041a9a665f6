//! Decodes a tape into any Rust type, through serde.

use std::borrow::Cow;

use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer, StringDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, Expected, IntoDeserializer, MapAccess, SeqAccess,
    Unexpected, Visitor,
};
use serde::{Deserialize, de};
use serde_json::Error;

use super::Tag;
use super::reader::{Damaged, Item, Reader};
use super::strings::Vocabulary;
use crate::object::Ignored;

/// Name of the newtype with which serde_json requests the raw text of a value.
const RAW_VALUE: &str = "$serde_json::private::RawValue";

/// `apiVersion` and `kind` of an object, which are not stored in its tape.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Types<'a> {
    pub(crate) api_version: &'a str,
    pub(crate) kind: &'a str,
}

/// Decodes the object of a tape (stored binary form) as `T`. Records in `ignored`, in order, the
/// byte ranges of the map entries that `T` does not read.
pub(crate) fn decode<'de, T: Deserialize<'de>>(
    tape: &'de [u8],
    vocabulary: &'de Vocabulary,
    types: Types<'de>,
    ignored: Option<&Ignored>,
) -> Result<T, Error> {
    let mut reader = Reader::new(tape, vocabulary);
    let mut deserializer = TapeDeserializer::new(&mut reader, Some(types));
    deserializer.ignored = ignored;
    T::deserialize(deserializer)
}

/// Deserializer of the value at a position in a tape (stored binary form).
pub(crate) struct TapeDeserializer<'de, 'r> {
    pub(crate) reader: &'r mut Reader<'de>,
    pub(crate) types: Option<Types<'de>>,
    /// Collector of the byte ranges of map entries that the Rust type does not read.
    ignored: Option<&'r Ignored>,
    /// Start of the map entry to which this value belongs.
    entry: Option<usize>,
}

impl From<Damaged> for Error {
    fn from(damaged: Damaged) -> Self {
        Self::custom(damaged)
    }
}

impl<'de, 'r> TapeDeserializer<'de, 'r> {
    /// Creates a deserializer of the value at `reader`.
    pub(crate) fn new(reader: &'r mut Reader<'de>, types: Option<Types<'de>>) -> Self {
        TapeDeserializer {
            reader,
            types,
            ignored: None,
            entry: None,
        }
    }

    fn container(&mut self) -> Container<'de, '_> {
        Container {
            reader: self.reader,
            types: self.types,
            entries: 0,
            items: None,
            ignored: self.ignored,
            entry: 0,
        }
    }

    /// Returns the error for a value of another type than `expected`.
    #[cold]
    fn unexpected(&mut self, expected: &dyn Expected) -> Error {
        let found = match self.reader.next() {
            Ok(Item::Null) => Unexpected::Unit,
            Ok(Item::Bool(value)) => Unexpected::Bool(value),
            Ok(Item::Unsigned(value)) => Unexpected::Unsigned(value),
            Ok(Item::Signed(value)) => Unexpected::Signed(value),
            Ok(Item::Float(value)) => Unexpected::Float(value),
            Ok(Item::Text(text)) => {
                return Error::invalid_type(Unexpected::Str(&text), expected);
            }
            Ok(Item::List(_)) => Unexpected::Seq,
            Ok(Item::Map) => Unexpected::Map,
            Ok(Item::End) | Err(_) => return Damaged.into(),
        };
        Error::invalid_type(found, expected)
    }

    /// Ends the reading of a list or map. Items that the visitor has not read are an error, for
    /// instance the second variant of an enum that must have only one.
    fn finish(reader: &mut Reader<'de>) -> Result<(), Error> {
        if !reader.is_end() {
            return Err(Error::custom("a list or map has more items than expected"));
        }
        reader.next()?;
        Ok(())
    }
}

impl<'de> Deserializer<'de> for TapeDeserializer<'de, '_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        if let Some(short) = self.reader.short()? {
            return visitor.visit_str(short.as_str());
        }
        match self.reader.next()? {
            Item::Null => visitor.visit_unit(),
            Item::Bool(value) => visitor.visit_bool(value),
            Item::Unsigned(value) => visitor.visit_u64(value),
            Item::Signed(value) => visitor.visit_i64(value),
            Item::Float(value) => visitor.visit_f64(value),
            Item::Text(Cow::Borrowed(text)) => visitor.visit_borrowed_str(text),
            Item::Text(Cow::Owned(text)) => visitor.visit_string(text),
            Item::List(items) => {
                let mut list = self.container();
                list.items = items;
                let value = visitor.visit_seq(list)?;
                Self::finish(self.reader)?;
                Ok(value)
            }
            Item::Map => {
                let value = visitor.visit_map(self.container())?;
                Self::finish(self.reader)?;
                Ok(value)
            }
            Item::End => Err(Damaged.into()),
        }
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        if self.reader.is_null() {
            self.reader.next()?;
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if name != RAW_VALUE {
            return visitor.visit_newtype_struct(self);
        }
        let value = serde_json::Value::deserialize(self)?;
        let raw = RawText {
            text: Some(value.to_string()),
        };
        visitor.visit_map(raw)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        mut self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        if self.reader.peek()? != Tag::Map {
            let Some(text) = self.reader.text()? else {
                return Err(Error::custom(
                    "invalid type: expected a string or an object",
                ));
            };
            return visitor.visit_enum(IntoDeserializer::<Error>::into_deserializer(text));
        }
        self.reader.next()?;
        let value = visitor.visit_enum(MapAccessDeserializer::new(self.container()))?;
        Self::finish(self.reader)?;
        Ok(value)
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.reader.skip()?;
        if let (Some(ignored), Some(entry)) = (self.ignored, self.entry) {
            ignored.borrow_mut().push(entry..self.reader.at);
        }
        visitor.visit_unit()
    }

    // These follow serde_json's rules: the value must have the requested type. Each of them is
    // small, so that a large type is built in place and not moved from call to call.

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.reader.peek()? {
            Tag::List => self.deserialize_seq(visitor),
            _ => self.deserialize_map(visitor),
        }
    }

    #[inline]
    fn deserialize_map<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        if self.reader.peek()? != Tag::Map {
            return Err(self.unexpected(&visitor));
        }
        self.reader.next()?;
        let value = visitor.visit_map(self.container())?;
        Self::finish(self.reader)?;
        Ok(value)
    }

    #[inline]
    fn deserialize_seq<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        if self.reader.peek()? != Tag::List {
            return Err(self.unexpected(&visitor));
        }
        let mut list = self.container();
        if let Item::List(items) = list.reader.next()? {
            list.items = items;
        }
        let value = visitor.visit_seq(list)?;
        Self::finish(self.reader)?;
        Ok(value)
    }

    fn deserialize_str<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        if let Some(short) = self.reader.short()? {
            return visitor.visit_str(short.as_str());
        }
        match self.reader.peek()? {
            Tag::Text | Tag::Interned | Tag::Digest => match self.reader.text()? {
                Some(Cow::Borrowed(text)) => visitor.visit_borrowed_str(text),
                Some(Cow::Owned(text)) => visitor.visit_string(text),
                None => Err(Damaged.into()),
            },
            _ => Err(self.unexpected(&visitor)),
        }
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        self.deserialize_str(visitor)
    }

    fn deserialize_bool<V: Visitor<'de>>(mut self, visitor: V) -> Result<V::Value, Error> {
        match self.reader.peek()? {
            tag @ (Tag::True | Tag::False) => {
                self.reader.next()?;
                visitor.visit_bool(tag == Tag::True)
            }
            _ => Err(self.unexpected(&visitor)),
        }
    }

    serde::forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char bytes byte_buf unit unit_struct tuple
        tuple_struct
    }
}

struct Container<'de, 'r> {
    reader: &'r mut Reader<'de>,
    types: Option<Types<'de>>,
    /// Number of entries of `types` (`apiVersion` and `kind`) that were returned so far.
    entries: u8,
    /// Number of items of a list, if known.
    items: Option<usize>,
    ignored: Option<&'r Ignored>,
    /// Start of the current map entry.
    entry: usize,
}

impl<'de> SeqAccess<'de> for Container<'de, '_> {
    type Error = Error;

    #[inline]
    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        if self.reader.is_end() {
            return Ok(None);
        }
        let value = TapeDeserializer {
            reader: self.reader,
            types: None,
            ignored: self.ignored,
            entry: None,
        };
        seed.deserialize(value).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        self.items
    }
}

impl<'de> MapAccess<'de> for Container<'de, '_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        if self.types.is_some() && self.entries < 2 {
            self.entries += 1;
            let name = if self.entries == 1 {
                "apiVersion"
            } else {
                "kind"
            };
            return seed.deserialize(TextDeserializer { text: name }).map(Some);
        }
        self.types = None;
        if self.reader.is_end() {
            return Ok(None);
        }
        self.entry = self.reader.at;
        match self.reader.name()? {
            Some(name) => seed.deserialize(TextDeserializer { text: name }).map(Some),
            None => Ok(None),
        }
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        if let Some(types) = self.types {
            let text = if self.entries == 1 {
                types.api_version
            } else {
                types.kind
            };
            return seed.deserialize(TextDeserializer { text });
        }
        seed.deserialize(TapeDeserializer {
            reader: self.reader,
            types: None,
            ignored: self.ignored,
            entry: Some(self.entry),
        })
    }
}

/// Deserializer of the name of a map entry, or of an `apiVersion` or `kind`. Decodes text, and the
/// other types that serde_json accepts as map keys.
#[derive(Clone, Copy)]
struct TextDeserializer<'de> {
    text: &'de str,
}

/// Implements methods that parse a number or boolean from text, as serde_json does for map keys.
macro_rules! deserialize_parsed {
    ($($deserialize:ident $visit:ident)*) => {$(
        fn $deserialize<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match serde_json::from_str(self.text) {
                Ok(value) => visitor.$visit(value),
                Err(_) => Err(Error::invalid_type(Unexpected::Str(self.text), &visitor)),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for TextDeserializer<'de> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_borrowed_str(self.text)
    }

    deserialize_parsed! {
        deserialize_bool visit_bool
        deserialize_i8 visit_i8
        deserialize_i16 visit_i16
        deserialize_i32 visit_i32
        deserialize_i64 visit_i64
        deserialize_i128 visit_i128
        deserialize_u8 visit_u8
        deserialize_u16 visit_u16
        deserialize_u32 visit_u32
        deserialize_u64 visit_u64
        deserialize_u128 visit_u128
        deserialize_f32 visit_f32
        deserialize_f64 visit_f64
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        if name != RAW_VALUE {
            return visitor.visit_newtype_struct(self);
        }
        let text = Some(serde_json::Value::from(self.text).to_string());
        visitor.visit_map(RawText { text })
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        BorrowedStrDeserializer::new(self.text).deserialize_enum(name, variants, visitor)
    }

    serde::forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier
        ignored_any
    }
}

/// Raw JSON text of a value in the form that serde_json expects: a map with one specially named
/// entry.
struct RawText {
    text: Option<String>,
}

impl<'de> MapAccess<'de> for RawText {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        if self.text.is_none() {
            return Ok(None);
        }
        seed.deserialize(BorrowedStrDeserializer::new(RAW_VALUE))
            .map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let text = self
            .text
            .take()
            .ok_or_else(|| <Error as de::Error>::custom("no raw value"))?;
        seed.deserialize(StringDeserializer::new(text))
    }
}
