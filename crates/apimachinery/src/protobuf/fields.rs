//! Iterates over the fields of a message in the order of their numbers.
//!
//! A serde visitor expects each field once, with all values of the field. Kubernetes writes the
//! fields of a message in the order of their numbers, so the bytes are usually read as they are. A
//! protobuf decoder must accept any order, so in other cases the fields are sorted first.

use super::leaf;
use super::malformed;
use super::table::{Cardinality, Field, Form, INLINE_MAX, Message, Table, Type};
use super::wire::{Datum, Reader, WireError};
use crate::error::ProtobufError;

/// A field of a message, and one value of the field.
pub(super) type Found<'de> = (&'static Field, Datum<'de>);

/// Iterator over the fields of a message, including the fields of inline messages. Fields that are
/// not in the table of messages are skipped, because the sender may use a newer version of the API.
#[derive(Debug)]
pub(super) enum Fields<'de> {
    /// The fields are in the order of their numbers, and are read directly from the bytes.
    Wire {
        table: &'static Table,
        /// The message that is being read, followed by its inline messages that are being read.
        frames: [Frame<'de>; INLINE_MAX],
        level: usize,
    },
    /// The fields were not in the order of their numbers, so they were decoded and sorted.
    Sorted(std::vec::IntoIter<Found<'de>>),
}

/// A message, and the reader of its remaining bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame<'de> {
    message: &'static Message,
    reader: Reader<'de>,
}

impl<'de> Fields<'de> {
    /// Creates the iterator. Fields that are not in the order of their numbers are sorted first.
    pub(super) fn open(
        table: &'static Table,
        message: &'static Message,
        bytes: &'de [u8],
    ) -> Result<Self, ProtobufError> {
        let is_sorted =
            is_sorted(table, message, bytes).map_err(|error| malformed(message.name, "", error))?;
        if !is_sorted {
            return Self::sort(table, message, bytes);
        }
        let reader = Reader::new(bytes);
        Ok(Self::Wire {
            table,
            frames: [Frame { message, reader }; INLINE_MAX],
            level: 0,
        })
    }

    fn sort(
        table: &'static Table,
        message: &'static Message,
        bytes: &'de [u8],
    ) -> Result<Self, ProtobufError> {
        let mut found = Vec::new();
        collect(table, message, bytes, &mut Vec::new(), &mut found)?;
        found.sort_by_key(|(order, ..)| *order);
        // If a field has one value but occurs several times, the last value is used.
        found.dedup_by(|later, kept| {
            let is_same = later.0 == kept.0 && later.1.cardinality == Cardinality::One;
            if is_same {
                kept.2 = later.2;
            }
            is_same
        });
        let found: Vec<Found<'de>> = found
            .into_iter()
            .map(|(_, field, datum)| (field, datum))
            .collect();
        Ok(Self::Sorted(found.into_iter()))
    }

    /// Returns the next field.
    #[inline]
    pub(super) fn next(&mut self) -> Result<Option<Found<'de>>, ProtobufError> {
        let (table, frames, level) = match self {
            Self::Sorted(found) => return Ok(found.next()),
            Self::Wire {
                table,
                frames,
                level,
            } => (*table, frames, level),
        };
        while let Some(frame) = frames.get_mut(*level) {
            let Some(item) = frame.reader.next() else {
                if *level == 0 {
                    return Ok(None);
                }
                *level -= 1;
                continue;
            };
            let (number, datum) = item.map_err(|error| malformed(frame.message.name, "", error))?;
            let Some(field) = frame.message.field(number) else {
                continue;
            };
            let Some(inner) = inline(table, field) else {
                return Ok(Some((field, datum)));
            };
            let bytes = datum
                .bytes("a message")
                .map_err(|error| malformed(frame.message.name, inner.name, error))?;
            *level += 1;
            if let Some(frame) = frames.get_mut(*level) {
                *frame = Frame {
                    message: inner,
                    reader: Reader::new(bytes),
                };
            }
        }
        Err(malformed("an inline message", "", "is nested too deep"))
    }

    /// Returns the next value of the field that `next` has just returned.
    #[inline]
    pub(super) fn next_of(
        &mut self,
        field: &'static Field,
    ) -> Result<Option<Datum<'de>>, ProtobufError> {
        match self {
            Self::Sorted(found) => {
                let same = found.as_slice().first();
                let same = same.is_some_and(|(next, _)| std::ptr::eq(*next, field));
                Ok(if same {
                    found.next().map(|(_, datum)| datum)
                } else {
                    None
                })
            }
            Self::Wire { frames, level, .. } => {
                let Some(frame) = frames.get_mut(*level) else {
                    return Ok(None);
                };
                let mut ahead = frame.reader;
                match ahead.next() {
                    Some(Ok((number, datum))) if number == field.number => {
                        frame.reader = ahead;
                        Ok(Some(datum))
                    }
                    // Any other field, and an error, is left to `next`.
                    _ => Ok(None),
                }
            }
        }
    }
}

/// Returns the inline message that the field holds, or `None` if the field is not inline.
#[inline]
fn inline(table: &'static Table, field: &Field) -> Option<&'static Message> {
    match field.type_ {
        Type::Message(index) if field.cardinality == Cardinality::Inline => table.message(index),
        _ => None,
    }
}

/// Reports whether the fields are in the order of their numbers, and only lists and maps repeat a
/// number.
fn is_sorted(table: &'static Table, message: &Message, bytes: &[u8]) -> Result<bool, WireError> {
    let mut last = 0;
    let mut reader = Reader::new(bytes);
    let repeats = |number: u32| {
        let field = message.field(number);
        field.is_none_or(|field| matches!(field.cardinality, Cardinality::List | Cardinality::Map))
    };
    if !message.has_inline {
        while !reader.is_empty() {
            let number = reader.skip_field()?;
            if number <= last && (number < last || !repeats(number)) {
                return Ok(false);
            }
            last = number;
        }
        return Ok(true);
    }
    for item in reader {
        let (number, datum) = item?;
        if number <= last && (number < last || !repeats(number)) {
            return Ok(false);
        }
        last = number;
        if let Some(inner) = message.field(number).and_then(|field| inline(table, field))
            && !is_sorted(table, inner, datum.bytes("a message")?)?
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Collects the fields of a message and of its inline messages. Each field gets a sort key from the
/// field numbers on the path to the field.
fn collect<'de>(
    table: &'static Table,
    message: &'static Message,
    bytes: &'de [u8],
    path: &mut Vec<u32>,
    found: &mut Vec<(u64, &'static Field, Datum<'de>)>,
) -> Result<(), ProtobufError> {
    for item in Reader::new(bytes) {
        let (number, datum) = item.map_err(|error| malformed(message.name, "", error))?;
        let Some(field) = message.field(number) else {
            continue;
        };
        path.push(number);
        match inline(table, field) {
            Some(inner) => {
                let bytes = datum
                    .bytes("a message")
                    .map_err(|error| malformed(message.name, inner.name, error))?;
                collect(table, inner, bytes, path, found)?;
            }
            None => found.push((order(path), field, datum)),
        }
        path.pop();
    }
    Ok(())
}

/// Returns the sort key of a field from the field numbers on its path: the number of each enclosing
/// inline message, then the number of the field. Field numbers are below 2^16, and no path is
/// longer than [`INLINE_MAX`].
fn order(path: &[u32]) -> u64 {
    let places = path.iter().copied().chain(std::iter::repeat(0));
    places
        .take(INLINE_MAX)
        .fold(0, |order, number| order << 16 | u64::from(number))
}

/// Reports whether a value is empty, so that Go's JSON omits it if its field is `omitempty`. A
/// quantity is never empty: Go prints `"0"`. A value that cannot be decoded does not count as
/// empty, so that decoding the value returns the error.
pub(super) fn is_empty(table: &'static Table, type_: Type, datum: Datum<'_>, depth: usize) -> bool {
    match (type_, datum) {
        (Type::Message(index), Datum::Bytes(bytes)) => {
            let message = table.message(index);
            message.is_some_and(|message| is_empty_message(table, message, bytes, depth))
        }
        (Type::String | Type::Bytes | Type::Time | Type::MicroTime, Datum::Bytes(bytes)) => {
            bytes.is_empty()
        }
        (Type::Json, Datum::Bytes(bytes)) => {
            leaf::raw(bytes).is_ok_and(|raw| raw.is_empty() || raw == b"null")
        }
        (Type::IntOrString, Datum::Bytes(bytes)) => {
            let value = leaf::int_or_string(bytes);
            value.is_ok_and(|value| {
                matches!(
                    value,
                    leaf::IntOrString::Int(0) | leaf::IntOrString::String("")
                )
            })
        }
        (Type::Double, Datum::Fixed64(bits)) => f64::from_bits(bits) == 0.0,
        (Type::Int32, Datum::Varint(bits)) => bits as u32 == 0,
        (Type::Bool | Type::Int64, Datum::Varint(bits)) => bits == 0,
        _ => false,
    }
}

fn is_empty_message(
    table: &'static Table,
    message: &'static Message,
    bytes: &[u8],
    depth: usize,
) -> bool {
    if bytes.is_empty() {
        return true;
    }
    // A message that is nested too deeply does not count as empty, so that decoding it returns an
    // error.
    let Some(depth) = depth.checked_sub(1) else {
        return false;
    };
    Reader::new(bytes).all(|item| {
        let Ok((number, datum)) = item else {
            return false;
        };
        let Some(field) = message.field(number) else {
            return true;
        };
        match field.cardinality {
            Cardinality::One => {
                message.form == Form::Message
                    && !field.is_pointer
                    && is_empty(table, field.type_, datum, depth)
            }
            Cardinality::Inline => is_empty(table, field.type_, datum, depth),
            Cardinality::List | Cardinality::Map => false,
        }
    })
}
