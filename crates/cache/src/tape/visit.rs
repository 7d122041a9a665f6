//! Encoder of anything that serde can deserialize into a tape (the stored binary form): protobuf
//! messages, JSON values, other tapes.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::DEPTH_MAX;
use super::encoder::Encoder;

/// Encodes the object that a deserializer reads into a tape (the stored binary form), with the same
/// rules as [`super::json::encode`].
pub(crate) fn encode<'de, D: Deserializer<'de>>(
    object: D,
    encoder: &mut Encoder<'_>,
    keeps: &dyn Fn(&str) -> bool,
) -> Result<(), D::Error> {
    let part = Part::Object;
    Seed {
        encoder,
        keeps,
        part,
        depth: 0,
    }
    .deserialize(object)
}

/// Part of an object to which a value belongs, such as the metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Object,
    Metadata,
    ManagedFields,
    Other,
}

struct Seed<'a, 'e> {
    encoder: &'a mut Encoder<'e>,
    keeps: &'a dyn Fn(&str) -> bool,
    part: Part,
    depth: usize,
}

impl<'de> DeserializeSeed<'de> for Seed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        if self.depth > DEPTH_MAX {
            return Err(D::Error::custom("nested too deeply"));
        }
        deserializer.deserialize_any(self)
    }
}

impl<'e> Seed<'_, 'e> {
    fn below(&mut self, part: Part) -> Seed<'_, 'e> {
        Seed {
            encoder: self.encoder,
            keeps: self.keeps,
            part,
            depth: self.depth + 1,
        }
    }

    /// Writes `managedFields` with the entries that are kept. Writes nothing if no entry is kept.
    fn managed_fields<'de, A: MapAccess<'de>>(&mut self, map: &mut A) -> Result<(), A::Error> {
        let start = self.encoder.out.len();
        self.encoder.name("managedFields");
        let empty = self.encoder.out.len() + 1;
        map.next_value_seed(self.below(Part::ManagedFields))?;
        // Only the start and the end of the list.
        if self.encoder.out.len() <= empty + 1 {
            self.encoder.out.truncate(start);
        }
        Ok(())
    }
}

impl<'de> Visitor<'de> for Seed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.encoder.null();
        Ok(())
    }

    fn visit_none<E>(self) -> Result<(), E> {
        self.encoder.null();
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.encoder.bool(value);
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        self.encoder.unsigned(value);
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.encoder.signed(value);
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.encoder.float(value);
        Ok(())
    }

    fn visit_str<E>(self, value: &str) -> Result<(), E> {
        self.encoder.text(value);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        let (start, mut kept) = (self.encoder.begin_list(), 0);
        loop {
            let written = match self.part {
                Part::ManagedFields => {
                    items.next_element_seed(ManagedFieldsEntry(self.below(Part::Other)))?
                }
                _ => items
                    .next_element_seed(self.below(Part::Other))?
                    .map(|()| true),
            };
            let Some(written) = written else { break };
            kept += usize::from(written);
        }
        self.encoder.end_list(start, kept);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<(), A::Error> {
        self.encoder.begin_map();
        while let Some(Name(name)) = entries.next_key()? {
            let part = match (self.part, &*name) {
                (Part::Object, "apiVersion" | "kind") => {
                    entries.next_value::<IgnoredAny>()?;
                    continue;
                }
                (Part::Metadata, "managedFields") => {
                    self.managed_fields(&mut entries)?;
                    continue;
                }
                (Part::Object, "metadata") => Part::Metadata,
                _ => Part::Other,
            };
            self.encoder.name(&name);
            entries.next_value_seed(self.below(part))?;
        }
        self.encoder.end();
        Ok(())
    }
}

/// Seed that encodes an entry of `managedFields`, and removes the entry again if its manager is not
/// kept.
struct ManagedFieldsEntry<'a, 'e>(Seed<'a, 'e>);

impl<'de> DeserializeSeed<'de> for ManagedFieldsEntry<'_, '_> {
    /// Whether the entry was kept.
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ManagedFieldsEntry<'_, '_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an entry of managedFields")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut entries: A) -> Result<bool, A::Error> {
        let start = self.0.encoder.out.len();
        let mut kept = None;
        self.0.encoder.begin_map();
        while let Some(Name(name)) = entries.next_key()? {
            if name == "manager" {
                let manager: Cow<'_, str> = entries.next_value()?;
                kept = Some((self.0.keeps)(&manager));
                self.0.encoder.name(&name);
                self.0.encoder.text(&manager);
            } else if kept == Some(false) {
                entries.next_value::<IgnoredAny>()?;
            } else {
                self.0.encoder.name(&name);
                entries.next_value_seed(self.0.below(Part::Other))?;
            }
        }
        self.0.encoder.end();
        if kept != Some(true) {
            self.0.encoder.out.truncate(start);
        }
        Ok(kept == Some(true))
    }
}

/// String, borrowed if the format allows it.
#[derive(Debug, Default)]
pub(crate) struct Name<'de>(pub(crate) Cow<'de, str>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for Name<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct NameVisitor;
        impl<'de> Visitor<'de> for NameVisitor {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(name)))
            }

            fn visit_str<E>(self, name: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(name.to_owned())))
            }
        }
        deserializer.deserialize_str(NameVisitor)
    }
}
