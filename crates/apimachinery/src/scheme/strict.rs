//! A deserializer over JSON that records unknown fields and the location of an error.

use std::cell::RefCell;

use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, Error as _, IntoDeserializer, MapAccess, SeqAccess,
    VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_json::{Error, Value};

use super::Format;

/// Results of decoding an object: the unknown fields, and the location of an error.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Whether the object was decoded from protobuf. In protobuf, Go writes every struct that is
    /// not a pointer, even if the struct is empty, so an empty struct does not count as an unknown
    /// field.
    from_protobuf: bool,
    unknown: RefCell<Vec<String>>,
    failed: RefCell<Option<String>>,
}

impl Findings {
    pub(super) fn of(format: Format) -> Self {
        Self {
            from_protobuf: format == Format::Protobuf,
            ..Self::default()
        }
    }

    /// Returns the paths of the fields that the type does not have, in the order of the object.
    pub(super) fn unknown(self) -> Vec<String> {
        self.unknown.into_inner()
    }

    /// Returns the path of the innermost field with an error; empty if the error is that of the
    /// whole object.
    pub(super) fn failed(self) -> String {
        self.failed.into_inner().unwrap_or_default()
    }

    /// Records the path of an error, unless the path of an inner field is already recorded.
    fn locate<T>(&self, path: Path<'_>, result: Result<T, Error>) -> Result<T, Error> {
        if result.is_err() {
            self.failed
                .borrow_mut()
                .get_or_insert_with(|| path.to_string());
        }
        result
    }
}

/// Reports whether the value is null, or an object whose fields are all empty at any depth.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(fields) => fields.values().all(is_empty),
        _ => false,
    }
}

/// Path of a value in the object.
#[derive(Debug, Clone, Copy)]
enum Path<'a> {
    Root,
    Field(&'a Self, &'a str),
    Item(&'a Self, usize),
}

impl std::fmt::Display for Path<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Path::Root, name) => out.write_str(name),
            Self::Field(parent, name) => write!(out, "{parent}.{name}"),
            Self::Item(parent, at) => write!(out, "{parent}[{at}]"),
        }
    }
}

/// Deserializer of one value of the object.
#[derive(Debug, Clone, Copy)]
pub(super) struct Strict<'de, 'a> {
    value: &'de Value,
    path: Path<'a>,
    findings: &'a Findings,
}

impl<'de, 'a> Strict<'de, 'a> {
    pub(super) fn new(value: &'de Value, findings: &'a Findings) -> Self {
        Self {
            value,
            path: Path::Root,
            findings,
        }
    }

    fn at<'b>(&'b self, value: &'de Value, path: Path<'b>) -> Strict<'de, 'b> {
        Strict {
            value,
            path,
            findings: self.findings,
        }
    }
}

impl<'de> Deserializer<'de> for Strict<'de, '_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Object(object) => visitor.visit_map(Fields {
                parent: self,
                fields: object.iter(),
                value: None,
            }),
            Value::Array(items) => visitor.visit_seq(Items {
                parent: self,
                items: items.iter().enumerate(),
            }),
            scalar => scalar.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        match self.value {
            Value::String(variant) => visitor.visit_enum(variant.as_str().into_deserializer()),
            Value::Object(object) if object.len() == 1 => match object.iter().next() {
                Some((variant, value)) => visitor.visit_enum(Variant {
                    parent: self,
                    variant,
                    value,
                }),
                None => Err(Error::custom("expected a variant")),
            },
            _ => Err(Error::custom(
                "expected the name of a variant, or an object with one variant",
            )),
        }
    }

    /// Records the field as unknown: serde calls this method for fields that a type does not have.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        let is_type_meta = matches!(self.path, Path::Field(Path::Root, "apiVersion" | "kind"));
        let is_unset = self.findings.from_protobuf && is_empty(self.value);
        if !is_type_meta && !is_unset {
            let mut unknown = self.findings.unknown.borrow_mut();
            unknown.push(self.path.to_string());
        }
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string
        bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier
    }
}

struct Fields<'de, 'a> {
    parent: Strict<'de, 'a>,
    fields: serde_json::map::Iter<'de>,
    value: Option<(&'de str, &'de Value)>,
}

impl<'de> MapAccess<'de> for Fields<'de, '_> {
    type Error = Error;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Error> {
        let Some((name, value)) = self.fields.next() else {
            return Ok(None);
        };
        self.value = Some((name, value));

        let key = serde::de::value::BorrowedStrDeserializer::new(name);
        seed.deserialize(key).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Error> {
        let Some((name, value)) = self.value.take() else {
            return Err(Error::custom("a value was requested before its key"));
        };
        let path = Path::Field(&self.parent.path, name);
        let result = seed.deserialize(self.parent.at(value, path));
        self.parent.findings.locate(path, result)
    }
}

struct Items<'de, 'a> {
    parent: Strict<'de, 'a>,
    items: std::iter::Enumerate<std::slice::Iter<'de, Value>>,
}

impl<'de> SeqAccess<'de> for Items<'de, '_> {
    type Error = Error;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Error> {
        let Some((at, value)) = self.items.next() else {
            return Ok(None);
        };
        let path = Path::Item(&self.parent.path, at);
        let result = seed.deserialize(self.parent.at(value, path));
        self.parent.findings.locate(path, result).map(Some)
    }
}

struct Variant<'de, 'a> {
    parent: Strict<'de, 'a>,
    variant: &'de str,
    value: &'de Value,
}

impl<'de, 'a> EnumAccess<'de> for Variant<'de, 'a> {
    type Error = Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Error> {
        let variant = serde::de::value::BorrowedStrDeserializer::<Error>::new(self.variant);
        Ok((seed.deserialize(variant)?, self))
    }
}

impl<'de> VariantAccess<'de> for Variant<'de, '_> {
    type Error = Error;

    fn unit_variant(self) -> Result<(), Error> {
        serde::Deserialize::deserialize(self.value)
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Error> {
        let path = Path::Field(&self.parent.path, self.variant);
        let result = seed.deserialize(self.parent.at(self.value, path));
        self.parent.findings.locate(path, result)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _length: usize, visitor: V) -> Result<V::Value, Error> {
        let path = Path::Field(&self.parent.path, self.variant);
        self.parent.at(self.value, path).deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        self.tuple_variant(0, visitor)
    }
}
