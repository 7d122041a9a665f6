//! Tape: the compact binary form of a cached object.
//!
//! A tape is one byte string per object. Field names, and strings that several objects share, are
//! stored once per kind ([`strings`]) and appear in the tape as small numbers. UIDs, times, digests
//! and decimal numbers are packed. A tape is written directly from the received bytes: from JSON
//! ([`json`]) or from anything that serde reads ([`visit`]). A tape is read through a serde
//! `Deserializer` ([`deserialize`]), so any Rust type can be decoded from it without an
//! intermediate tree. Metadata is read in place ([`meta`]).
//!
//! The first byte of a value has its tag in the low four bits. The high four bits are a small
//! number, or 15 if the number follows as a varint. Maps and lists end with [`END`]. Maps and lists
//! have no length in bytes, so that parts can be left out by copying the rest ([`project`]).

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

/// Type of a value: the low four bits of its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Tag {
    /// End of a list or map; the whole byte is 0.
    End = 0,
    Null = 1,
    False = 2,
    True = 3,
    /// Non-negative integer.
    Unsigned = 4,
    /// Negative integer n, stored as -1 - n.
    Negative = 5,
    /// 64-bit float: eight bytes, little endian.
    Float = 6,
    /// String: its length, then its bytes.
    Text = 7,
    /// String that is stored once for the kind; see [`strings`].
    Interned = 8,
    /// String of decimal digits, stored as a number.
    Decimal = 9,
    /// String that is a UUID, stored as 16 bytes.
    Uuid = 10,
    /// String that is a UTC time with whole seconds, stored as seconds since 1970.
    Time = 11,
    /// String that ends in hexadecimal digits, stored as the number of bytes, the bytes, and the
    /// part before the digits as another string value.
    Digest = 12,
    /// List. The high four bits of its first byte are the number of items, or 15 for more than 14
    /// items.
    List = 13,
    /// Map. The high four bits of its first byte are 0.
    Map = 14,
}

/// End of a list or map. No other value starts with this byte.
pub(crate) const END: u8 = 0;

/// Largest nesting depth of values, which is serde_json's limit.
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
            8 => Self::Interned,
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

/// Returns a tape that contains only the metadata of the object in `tape`.
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
