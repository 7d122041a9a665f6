//! The wire format: tags, varints, fixed numbers and lengths, without knowing what they mean.
//!
//! Groups, which proto2 has and Kubernetes never uses, are refused.

/// A value as it is on the wire.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Datum<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'a [u8]),
}

impl<'a> Datum<'a> {
    /// The text of a length-delimited value.
    pub(super) fn text(self) -> Result<&'a str, String> {
        std::str::from_utf8(self.bytes("a string")?).map_err(|_| "is not UTF-8".to_owned())
    }

    /// The bytes of a length-delimited value; `what` is what they should have been.
    pub(super) fn bytes(self, what: &str) -> Result<&'a [u8], String> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            other => Err(format!("is {} and not {what}", other.name())),
        }
    }

    /// What kind of value this is, for messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Varint(_) => "a varint",
            Self::Fixed64(_) => "a fixed 64-bit number",
            Self::Fixed32(_) => "a fixed 32-bit number",
            Self::Bytes(_) => "length-delimited",
        }
    }
}

/// Walks over the fields of a message: the number of each, and its value.
///
/// The first error ends the walk.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// A varint: seven bits a byte, the lowest first. The tenth byte may hold only the last bit.
    pub(super) fn varint(&mut self) -> Result<u64, String> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or("ends inside of a varint")?;
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
        Err("has a varint of more than 64 bits".to_owned())
    }

    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn field(&mut self) -> Result<(u32, Datum<'a>), String> {
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).unwrap_or_default();
        if number == 0 || number > 0x1fff_ffff {
            return Err(format!("has the impossible field number {}", tag >> 3));
        }
        let datum = match tag & 7 {
            0 => Datum::Varint(self.varint()?),
            1 => Datum::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = self.varint()?;
                let left = self.rest.len();
                let at = usize::try_from(length).unwrap_or(usize::MAX);
                let (bytes, rest) = self.rest.split_at_checked(at).ok_or_else(|| {
                    format!("field {number} has a length of {length}, but {left} bytes are left")
                })?;
                self.rest = rest;
                Datum::Bytes(bytes)
            }
            5 => Datum::Fixed32(u32::from_le_bytes(self.array()?)),
            other => {
                return Err(format!(
                    "field {number} is of the unsupported wire type {other}"
                ));
            }
        };
        Ok((number, datum))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (array, rest) = self
            .rest
            .split_first_chunk()
            .ok_or("ends inside of a fixed number")?;
        self.rest = rest;
        Ok(*array)
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<(u32, Datum<'a>), String>;

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

#[cfg(test)]
mod tests;
