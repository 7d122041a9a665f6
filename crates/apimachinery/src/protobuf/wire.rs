//! The wire format of protobuf: tags, varints, fixed-size numbers and lengths.
//!
//! This module does not know the meaning of fields. Groups, a feature of proto2 that Kubernetes
//! never uses, are rejected.

use std::fmt;

/// A value of a field on the wire.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Datum<'a> {
    Varint(u64),
    Fixed64(u64),
    /// A 32-bit number. Kubernetes has no such fields, so the value is not kept.
    Fixed32,
    Bytes(&'a [u8]),
}

impl<'a> Datum<'a> {
    /// Returns the text of a length-delimited value.
    pub(super) fn text(self) -> Result<&'a str, WireError> {
        std::str::from_utf8(self.bytes("a string")?).map_err(|_| WireError::Utf8)
    }

    /// Returns the bytes of a length-delimited value. `what` describes the expected value in the
    /// error.
    pub(super) fn bytes(self, what: &'static str) -> Result<&'a [u8], WireError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            other => Err(WireError::Type(other.name(), what)),
        }
    }

    /// Returns the wire type of the value, for error messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Varint(_) => "a varint",
            Self::Fixed64(_) => "a fixed 64-bit number",
            Self::Fixed32 => "a fixed 32-bit number",
            Self::Bytes(_) => "length-delimited",
        }
    }
}

/// An error in the wire bytes. The message is created only when the error is displayed, so that the
/// error needs no allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WireError {
    VarintEnds,
    VarintLong,
    FixedEnds,
    Number(u64),
    WireType(u32, u8),
    Length {
        number: u32,
        length: u64,
        left: usize,
    },
    Utf8,
    /// A value has the wrong type. The fields are the actual and the expected type.
    Type(&'static str, &'static str),
}

impl fmt::Display for WireError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::VarintEnds => out.write_str("ends inside of a varint"),
            Self::VarintLong => out.write_str("has a varint of more than 64 bits"),
            Self::FixedEnds => out.write_str("ends inside of a fixed number"),
            Self::Number(number) => write!(out, "has the invalid field number {number}"),
            Self::WireType(number, type_) => {
                write!(out, "field {number} has the unsupported wire type {type_}")
            }
            Self::Length {
                number,
                length,
                left,
            } => write!(
                out,
                "field {number} has a length of {length}, but {left} bytes are left"
            ),
            Self::Utf8 => out.write_str("is not UTF-8"),
            Self::Type(is, expected) => write!(out, "is {is} and not {expected}"),
        }
    }
}

impl From<WireError> for String {
    fn from(error: WireError) -> Self {
        error.to_string()
    }
}

/// Iterator over the fields of a message, which returns the number and the value of each field.
///
/// The iterator ends after the first error.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Reads a varint: seven bits per byte, the lowest bits first. The tenth byte holds only one
    /// bit.
    #[inline]
    pub(super) fn varint(&mut self) -> Result<u64, WireError> {
        // Nearly all tags and lengths have one or two bytes.
        match *self.rest {
            [byte, ref rest @ ..] if byte < 0x80 => {
                self.rest = rest;
                Ok(u64::from(byte))
            }
            [low, high, ref rest @ ..] if high < 0x80 => {
                self.rest = rest;
                Ok(u64::from(low & 0x7f) | u64::from(high) << 7)
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, WireError> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or(WireError::VarintEnds)?;
            self.rest = rest;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(WireError::VarintLong)
    }

    /// Reports whether all bytes have been read.
    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Skips a field and returns its number.
    #[inline]
    pub(super) fn skip_field(&mut self) -> Result<u32, WireError> {
        // Most fields have a one-byte tag and a one-byte length, and are skipped in one step.
        if let [tag, length, ref rest @ ..] = *self.rest
            && tag & 0x87 == 2
            && length < 0x80
            && tag >= 8
            && let Some((_, rest)) = rest.split_at_checked(usize::from(length))
        {
            self.rest = rest;
            return Ok(u32::from(tag >> 3));
        }
        self.field().map(|(number, _)| number)
    }

    // Always inline: the field then stays in registers, which makes decoding a Pod a third faster.
    #[inline(always)]
    fn field(&mut self) -> Result<(u32, Datum<'a>), WireError> {
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).unwrap_or_default();
        if number == 0 || number > 0x1fff_ffff {
            return Err(WireError::Number(tag >> 3));
        }
        let datum = match tag & 7 {
            0 => Datum::Varint(self.varint()?),
            1 => Datum::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = self.varint()?;
                let at = usize::try_from(length).unwrap_or(usize::MAX);
                let (bytes, rest) = self.rest.split_at_checked(at).ok_or(WireError::Length {
                    number,
                    length,
                    left: self.rest.len(),
                })?;
                self.rest = rest;
                Datum::Bytes(bytes)
            }
            5 => {
                self.array::<4>()?;
                Datum::Fixed32
            }
            other => return Err(WireError::WireType(number, other as u8)),
        };
        Ok((number, datum))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (array, rest) = self.rest.split_first_chunk().ok_or(WireError::FixedEnds)?;
        self.rest = rest;
        Ok(*array)
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<(u32, Datum<'a>), WireError>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

/// Writer of a message from its end to its start. A value is written before its length, so that the
/// length is known.
///
/// The bytes are at the end of a buffer, which grows at its start.
#[derive(Debug, Default)]
pub(super) struct Writer {
    buffer: Vec<u8>,
    /// Number of bytes at the start of the buffer that are not written yet.
    free: usize,
}

impl Writer {
    /// Returns the number of bytes written so far, to be passed to [`Self::length_since`] later.
    pub(super) fn position(&self) -> usize {
        self.buffer.len().saturating_sub(self.free)
    }

    /// Prepends bytes, without a tag or a length.
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        if bytes.len() > self.free {
            self.grow(bytes.len());
        }
        let start = self.free.saturating_sub(bytes.len());
        if let Some(place) = self.buffer.get_mut(start..self.free) {
            place.copy_from_slice(bytes);
            self.free = start;
        }
    }

    /// Doubles the buffer, and makes room for at least `needed` bytes.
    fn grow(&mut self, needed: usize) {
        let added = self.buffer.len().max(needed).max(512);
        let mut buffer = vec![0; added];
        buffer.append(&mut self.buffer);
        self.buffer = buffer;
        self.free += added;
    }

    /// Prepends a varint.
    pub(super) fn varint(&mut self, mut value: u64) {
        // A varint of 64 bits has at most 10 bytes.
        let mut bytes = [0; 10];
        let mut length = 0;
        for byte in &mut bytes {
            length += 1;
            *byte = value as u8 & 0x7f;
            value >>= 7;
            if value == 0 {
                break;
            }
            *byte |= 0x80;
        }
        self.bytes(bytes.get(..length).unwrap_or_default());
    }

    /// Prepends the tag of a field: its number and its wire type.
    pub(super) fn tag(&mut self, number: u32, wire_type: u8) {
        self.varint(u64::from(number) << 3 | u64::from(wire_type));
    }

    /// Prepends the tag of field `number` and the length of all bytes written since `start`.
    pub(super) fn length_since(&mut self, start: usize, number: u32) {
        self.varint(self.position().saturating_sub(start) as u64);
        self.tag(number, 2);
    }

    /// Returns the bytes of the message, first byte first.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.buffer.split_off(self.free.min(self.buffer.len()))
    }
}

#[cfg(test)]
mod tests;
