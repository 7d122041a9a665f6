//! The fields of one message, in an order that a visitor can take.
//!
//! A visitor hears of each field once, with all that belongs to it. Kubernetes writes the fields
//! of a message by number, so the bytes can be walked as they are; every reader of protobuf must
//! take any order, though, and then the fields are sorted first.

use super::leaf;
use super::malformed;
use super::table::{Cardinality, Field, Form, INLINE_MAX, Message, Table, Type};
use super::wire::{Datum, Flaw, Reader};
use crate::error::ProtobufError;

/// A field of the table with a value, as it is found.
pub(super) type Found<'de> = (&'static Field, Datum<'de>);

/// Walks over the fields of a message, those of inline messages among them. Fields that the
/// table does not know are left out: a newer peer may know more than we do.
#[derive(Debug)]
pub(super) enum Fields<'de> {
    /// The bytes are in order.
    Wire {
        table: &'static Table,
        /// The message, and the inline messages in it that the walk is inside of.
        frames: [Frame<'de>; INLINE_MAX],
        level: usize,
    },
    /// They were not.
    Sorted(std::vec::IntoIter<Found<'de>>),
}

/// A message and what is left of its bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame<'de> {
    message: &'static Message,
    reader: Reader<'de>,
}

impl<'de> Fields<'de> {
    /// Looks at the tags of a message, and decides how to walk over it.
    pub(super) fn open(
        table: &'static Table,
        message: &'static Message,
        bytes: &'de [u8],
    ) -> Result<Self, ProtobufError> {
        let is_sorted =
            is_sorted(table, message, bytes).map_err(|flaw| malformed(message.name, "", flaw))?;
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
        // Of a field that has one value the last counts.
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

    /// The next field.
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
            let (number, datum) = item.map_err(|flaw| malformed(frame.message.name, "", flaw))?;
            let Some(field) = frame.message.field(number) else {
                continue;
            };
            let Some(inner) = inline(table, field) else {
                return Ok(Some((field, datum)));
            };
            let bytes = datum
                .bytes("a message")
                .map_err(|flaw| malformed(frame.message.name, inner.name, flaw))?;
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

    /// The next value of a field that has just been found and may have several.
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
                    // Anything else, flaws among it, is left to `next`.
                    _ => Ok(None),
                }
            }
        }
    }
}

/// The message whose fields stand in for the field.
#[inline]
fn inline(table: &'static Table, field: &Field) -> Option<&'static Message> {
    match field.type_ {
        Type::Message(index) if field.cardinality == Cardinality::Inline => table.message(index),
        _ => None,
    }
}

/// Whether each field's values stand together, and fields with one value have no more.
fn is_sorted(table: &'static Table, message: &Message, bytes: &[u8]) -> Result<bool, Flaw> {
    let mut last = 0;
    let mut reader = Reader::new(bytes);
    let repeats = |number: u32| {
        let field = message.field(number);
        field.is_none_or(|field| matches!(field.cardinality, Cardinality::List | Cardinality::Map))
    };
    if !message.has_inline {
        while !reader.is_empty() {
            let number = reader.pass_over()?;
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

/// Gathers the fields of a message and of its inline messages. The numbers on the way to a field
/// are what they are sorted by.
fn collect<'de>(
    table: &'static Table,
    message: &'static Message,
    bytes: &'de [u8],
    path: &mut Vec<u32>,
    found: &mut Vec<(u64, &'static Field, Datum<'de>)>,
) -> Result<(), ProtobufError> {
    for item in Reader::new(bytes) {
        let (number, datum) = item.map_err(|flaw| malformed(message.name, "", flaw))?;
        let Some(field) = message.field(number) else {
            continue;
        };
        path.push(number);
        match inline(table, field) {
            Some(inner) => {
                let bytes = datum
                    .bytes("a message")
                    .map_err(|flaw| malformed(message.name, inner.name, flaw))?;
                collect(table, inner, bytes, path, found)?;
            }
            None => found.push((order(path), field, datum)),
        }
        path.pop();
    }
    Ok(())
}

/// The place of a field among all: its number, then that inside of the inline message. Numbers
/// that the table has are below 2^16, and no path is longer than [`INLINE_MAX`].
fn order(path: &[u32]) -> u64 {
    let places = path.iter().copied().chain(std::iter::repeat(0));
    places
        .take(INLINE_MAX)
        .fold(0, |order, number| order << 16 | u64::from(number))
}

/// Whether the value of a field with the mark `?` is one that Go's JSON leaves out. A quantity is
/// text and never empty: Go prints `"0"`. What does not read is not empty, so that
/// reading it says what is wrong.
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
    // What is too deep is not empty: reading it says so.
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
