//! Reader of a tape (the stored binary form of an object), value by value.
//!
//! The functions of the reader are called for each field of a Rust type, from code in the user's
//! crate. They are marked `inline`, because otherwise each would be a call into another crate.
//!
//! Tapes are written only by this crate, but are read as untrusted input: an invalid tape is an
//! error, never a panic.

use std::borrow::Cow;

use super::packed::Short;
use super::strings::Vocabulary;
use super::{END, Tag, packed};

/// Error of an invalid tape (stored binary form), which is a bug in this crate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the stored form of the object is not valid")]
pub(crate) struct Damaged;

/// Position in a tape (stored binary form). A copy of the `Reader` can read ahead.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) at: usize,
    pub(crate) vocabulary: &'a Vocabulary,
}

/// One value of a tape. After a list or map is read, the next values are its items.
#[derive(Debug, PartialEq)]
pub(crate) enum Item<'a> {
    Null,
    Bool(bool),
    Unsigned(u64),
    Signed(i64),
    Float(f64),
    Text(Cow<'a, str>),
    /// List, with its number of items if there are fewer than 15.
    List(Option<usize>),
    Map,
    /// End of the innermost list or map.
    End,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8], vocabulary: &'a Vocabulary) -> Self {
        Reader {
            bytes,
            at: 0,
            vocabulary,
        }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Result<Item<'a>, Damaged> {
        let byte = self.byte()?;
        Ok(match Tag::of(byte).ok_or(Damaged)? {
            Tag::End => Item::End,
            Tag::Null => Item::Null,
            Tag::False => Item::Bool(false),
            Tag::True => Item::Bool(true),
            Tag::Unsigned => Item::Unsigned(self.number(byte)?),
            Tag::Negative => {
                Item::Signed(-1 - i64::try_from(self.number(byte)?).map_err(|_| Damaged)?)
            }
            Tag::Float => {
                let bytes = self.take(8)?.try_into().map_err(|_| Damaged)?;
                Item::Float(f64::from_le_bytes(bytes))
            }
            Tag::List => Item::List(Some(usize::from(byte >> 4)).filter(|items| *items < 15)),
            Tag::Map => Item::Map,
            tag => Item::Text(self.text_of(tag, byte)?),
        })
    }

    /// Returns the name of the next entry of a map, or `None` at its end.
    #[inline]
    pub(crate) fn name(&mut self) -> Result<Option<&'a str>, Damaged> {
        let byte = self.byte()?;
        match Tag::of(byte).ok_or(Damaged)? {
            Tag::End => Ok(None),
            Tag::Interned => {
                let id = u32::try_from(self.number(byte)?).map_err(|_| Damaged)?;
                self.vocabulary.names.get(id).map(Some).ok_or(Damaged)
            }
            Tag::Text => self.plain(byte).map(Some),
            _ => Err(Damaged),
        }
    }

    /// Reports whether the innermost list or map ends at the current position.
    #[inline]
    pub(crate) fn is_end(&self) -> bool {
        self.bytes.get(self.at) == Some(&END)
    }

    /// Reports whether the next value is null.
    #[inline]
    pub(crate) fn is_null(&self) -> bool {
        self.bytes.get(self.at) == Some(&(Tag::Null as u8))
    }

    /// Skips the next value with everything inside.
    #[inline]
    pub(crate) fn skip(&mut self) -> Result<(), Damaged> {
        let mut depth = 0usize;
        // Names in maps are skipped like values, which have the same format, so open containers
        // need not be distinguished.
        loop {
            let byte = self.byte()?;
            match Tag::of(byte).ok_or(Damaged)? {
                Tag::List | Tag::Map => depth += 1,
                Tag::End => depth = depth.checked_sub(1).ok_or(Damaged)?,
                Tag::Null | Tag::False | Tag::True => {}
                Tag::Unsigned | Tag::Negative | Tag::Interned | Tag::Decimal | Tag::Time => {
                    self.number(byte)?;
                }
                Tag::Float => self.pass(8)?,
                Tag::Uuid => self.pass(16)?,
                Tag::Text => {
                    let length = self.number(byte)?;
                    self.pass(usize::try_from(length).map_err(|_| Damaged)?)?;
                }
                Tag::Digest => {
                    let length = self.number(byte)?;
                    self.pass(usize::try_from(length).map_err(|_| Damaged)?)?;
                    // The part before the digits follows as a value.
                    continue;
                }
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// Returns the next value if it is a string. Skips any other value and returns `None`.
    #[inline]
    pub(crate) fn text(&mut self) -> Result<Option<Cow<'a, str>>, Damaged> {
        match self.peek()? {
            Tag::Text | Tag::Interned | Tag::Decimal | Tag::Uuid | Tag::Time | Tag::Digest => {
                let byte = self.byte()?;
                self.text_of(Tag::of(byte).ok_or(Damaged)?, byte).map(Some)
            }
            _ => {
                self.skip()?;
                Ok(None)
            }
        }
    }

    /// Returns the next value as text if it is a string, number or boolean.
    pub(crate) fn scalar(&mut self) -> Result<Option<Cow<'a, str>>, Damaged> {
        Ok(match self.next()? {
            Item::Text(text) => Some(text),
            Item::Unsigned(number) => Some(number.to_string().into()),
            Item::Signed(number) => Some(number.to_string().into()),
            Item::Float(number) => Some(number.to_string().into()),
            Item::Bool(flag) => Some(flag.to_string().into()),
            Item::Null | Item::List(_) | Item::Map | Item::End => None,
        })
    }

    /// Returns the tag of the next value.
    #[inline]
    pub(crate) fn peek(&self) -> Result<Tag, Damaged> {
        Tag::of(*self.bytes.get(self.at).ok_or(Damaged)?).ok_or(Damaged)
    }

    #[inline]
    fn text_of(&mut self, tag: Tag, byte: u8) -> Result<Cow<'a, str>, Damaged> {
        let mut text = String::new();
        match tag {
            Tag::Text => return self.plain(byte).map(Cow::Borrowed),
            Tag::Interned => {
                let id = u32::try_from(self.number(byte)?).map_err(|_| Damaged)?;
                return self
                    .vocabulary
                    .values
                    .get(id)
                    .map(Cow::Borrowed)
                    .ok_or(Damaged);
            }
            Tag::Decimal | Tag::Time | Tag::Uuid => {
                text.push_str(self.short_of(tag, byte)?.as_str());
            }
            Tag::Digest => {
                let length = usize::try_from(self.number(byte)?).map_err(|_| Damaged)?;
                let digits = self.take(length)?;
                let byte = self.byte()?;
                // Digests do not nest: the part before the digits does not end in digits.
                let before = match Tag::of(byte).ok_or(Damaged)? {
                    Tag::Digest => return Err(Damaged),
                    tag => self.text_of(tag, byte)?,
                };
                text.reserve(before.len() + length * 2);
                text.push_str(&before);
                packed::write_digits(digits, &mut text);
            }
            _ => return Err(Damaged),
        }
        Ok(Cow::Owned(text))
    }

    /// Returns the next value if it is a packed string other than a digest (hexadecimal digits).
    #[inline]
    pub(super) fn short(&mut self) -> Result<Option<Short>, Damaged> {
        match self.peek()? {
            tag @ (Tag::Decimal | Tag::Time | Tag::Uuid) => {
                let byte = self.byte()?;
                self.short_of(tag, byte).map(Some)
            }
            _ => Ok(None),
        }
    }

    #[inline]
    fn short_of(&mut self, tag: Tag, byte: u8) -> Result<Short, Damaged> {
        Ok(match tag {
            Tag::Decimal => Short::decimal(self.number(byte)?),
            Tag::Time => Short::time(self.number(byte)?),
            _ => Short::uuid(self.take(16)?),
        })
    }

    #[inline]
    fn plain(&mut self, byte: u8) -> Result<&'a str, Damaged> {
        let length = usize::try_from(self.number(byte)?).map_err(|_| Damaged)?;
        std::str::from_utf8(self.take(length)?).map_err(|_| Damaged)
    }

    #[inline]
    fn byte(&mut self) -> Result<u8, Damaged> {
        let byte = *self.bytes.get(self.at).ok_or(Damaged)?;
        self.at += 1;
        Ok(byte)
    }

    #[inline]
    fn take(&mut self, count: usize) -> Result<&'a [u8], Damaged> {
        let end = self.at.checked_add(count).ok_or(Damaged)?;
        let taken = self.bytes.get(self.at..end).ok_or(Damaged)?;
        self.at = end;
        Ok(taken)
    }

    #[inline]
    fn pass(&mut self, count: usize) -> Result<(), Damaged> {
        self.take(count).map(drop)
    }

    #[inline]
    fn number(&mut self, byte: u8) -> Result<u64, Damaged> {
        let small = byte >> 4;
        if small < 15 {
            return Ok(u64::from(small));
        }
        let (mut number, mut shift) = (0u64, 0u32);
        loop {
            let byte = self.byte()?;
            if shift > 63 {
                return Err(Damaged);
            }
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return number.checked_add(15).ok_or(Damaged);
            }
            shift += 7;
        }
    }
}
