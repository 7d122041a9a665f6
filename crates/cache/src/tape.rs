//! The tape: the compact binary form of a cached object.
//!
//! One byte string per object. Names of fields, and strings that several objects share, are kept
//! once per kind ([`strings`]) and stand in the tape as small numbers; UIDs, times, digests and
//! decimal numbers are packed. It is written straight from the wire bytes, JSON ([`json`]) or
//! anything that serde reads ([`visit`]), and read back through a serde `Deserializer`
//! ([`deserialize`]), so any Rust type comes out of it without a tree in between. Metadata is
//! read in place ([`meta`]).
//!
//! A value begins with a byte whose low four bits are its tag and whose high four bits are a
//! small number, or 15 if the number follows as a varint. Maps and lists end with [`END`]; they
//! carry no length, so that parts can be left out by copying the rest ([`project`]).

pub(crate) mod deserialize;
pub(crate) mod diff;
pub(crate) mod encoder;
pub(crate) mod head;
pub(crate) mod json;
pub(crate) mod meta;
mod packed;
pub(crate) mod project;
pub(crate) mod reader;
pub(crate) mod strings;
pub(crate) mod visit;

/// What a value is; the low four bits of its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Tag {
    /// The end of a list or map; as the whole byte 0.
    End = 0,
    Null = 1,
    False = 2,
    True = 3,
    /// A number that is not negative.
    Unsigned = 4,
    /// A negative number n as -1 - n.
    Negative = 5,
    /// Eight bytes, little endian.
    Float = 6,
    /// Its length, then its bytes.
    Text = 7,
    /// A string of the kind's [`strings`].
    Shared = 8,
    /// A string that is a decimal number.
    Decimal = 9,
    /// A string that is a UUID: 16 bytes.
    Uuid = 10,
    /// A string that is a time of whole seconds in UTC: seconds since 1970.
    Time = 11,
    /// A string that ends in hexadecimal digits: how many bytes, those, and what is before, a
    /// string of its own.
    Digest = 12,
    /// Its small number is how many items it has, or 15 for more than 14.
    List = 13,
    /// Its small number is 0.
    Map = 14,
}

/// The end of a list or map. No other value begins with this byte.
pub(crate) const END: u8 = 0;

/// How deep values may nest; serde_json's limit.
pub(crate) const DEPTH_MAX: usize = 128;

impl Tag {
    #[inline]
    fn of(byte: u8) -> Option<Self> {
        Some(match byte & 0x0f {
            0 => Self::End,
            1 => Self::Null,
            2 => Self::False,
            3 => Self::True,
            4 => Self::Unsigned,
            5 => Self::Negative,
            6 => Self::Float,
            7 => Self::Text,
            8 => Self::Shared,
            9 => Self::Decimal,
            10 => Self::Uuid,
            11 => Self::Time,
            12 => Self::Digest,
            13 => Self::List,
            14 => Self::Map,
            _ => return None,
        })
    }
}

/// A tape with nothing but the metadata of another.
pub(crate) fn metadata_only(tape: &[u8], vocabulary: &strings::Vocabulary) -> Option<Vec<u8>> {
    let mut reader = reader::Reader::new(tape, vocabulary);
    if reader.next().ok()? != reader::Item::Map {
        return None;
    }
    loop {
        let from = reader.at;
        let name = reader.name().ok()??;
        reader.skip().ok()?;
        if name == "metadata" {
            let mut out = vec![Tag::Map as u8];
            out.extend_from_slice(tape.get(from..reader.at)?);
            out.push(END);
            return Some(out);
        }
    }
}

#[cfg(test)]
mod tests;
