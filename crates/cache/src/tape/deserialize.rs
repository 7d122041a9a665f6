//! From a tape to any Rust type, through serde.

use serde::de::value::{BorrowedStrDeserializer, MapAccessDeserializer, StringDeserializer};
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, SeqAccess, Visitor,
};
use serde::{Deserialize, de};
use serde_json::Error;

use super::Tag;
use super::reader::{Damaged, Item, Reader};
use super::strings::Vocabulary;
use crate::object::Ignored;

/// serde_json's word for "the text as it is".
const RAW_VALUE: &str = "$serde_json::private::RawValue";

/// An object's `apiVersion` and `kind`, which its tape leaves out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Types<'a> {
    pub(crate) api_version: &'a str,
    pub(crate) kind: &'a str,
}

/// Reads the object of a tape as `T`. Notes in `ignored`, in order, which entries of maps `T` does
/// not look at: from where to where they are.
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

/// A deserializer of the value at a position.
pub(crate) struct TapeDeserializer<'de, 'r> {
    pub(crate) reader: &'r mut Reader<'de>,
    pub(crate) types: Option<Types<'de>>,
    /// Where to note entries of maps that are ignored.
    ignored: Option<&'r Ignored>,
    /// Where the entry of a map begins that this is the value of.
    entry: Option<usize>,
}

impl From<Damaged> for Error {
    fn from(damaged: Damaged) -> Self {
        Error::custom(damaged)
    }
}

impl<'de, 'r> TapeDeserializer<'de, 'r> {
    /// A deserializer of the value at `reader`.
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

    /// Passes over what a visitor has left of a list or map.
    fn finish(reader: &mut Reader<'de>) -> Result<(), Error> {
        while !reader.is_end() {
            reader.skip()?;
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
            Item::Text(std::borrow::Cow::Borrowed(text)) => visitor.visit_borrowed_str(text),
            Item::Text(std::borrow::Cow::Owned(text)) => visitor.visit_string(text),
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

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier
    }
}

struct Container<'de, 'r> {
    reader: &'r mut Reader<'de>,
    types: Option<Types<'de>>,
    /// How many of the entries of `types` were given out.
    entries: u8,
    /// How many items a list has, if that is known.
    items: Option<usize>,
    ignored: Option<&'r Ignored>,
    /// Where the present entry of a map begins.
    entry: usize,
}

impl<'de> SeqAccess<'de> for Container<'de, '_> {
    type Error = Error;

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
            return seed
                .deserialize(BorrowedStrDeserializer::new(name))
                .map(Some);
        }
        self.types = None;
        if self.reader.is_end() {
            return Ok(None);
        }
        self.entry = self.reader.at;
        match self.reader.name()? {
            Some(name) => seed
                .deserialize(BorrowedStrDeserializer::new(name))
                .map(Some),
            None => Ok(None),
        }
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        if let Some(types) = self.types {
            let text = if self.entries == 1 {
                types.api_version
            } else {
                types.kind
            };
            return seed.deserialize(BorrowedStrDeserializer::new(text));
        }
        seed.deserialize(TapeDeserializer {
            reader: self.reader,
            types: None,
            ignored: self.ignored,
            entry: Some(self.entry),
        })
    }
}

/// How serde_json wants to be given a raw value: a map of one entry with a name of its own.
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
