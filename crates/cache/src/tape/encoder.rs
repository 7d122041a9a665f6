//! Encoder that writes a tape (the stored binary form of an object) value by value.

use super::packed::{self, Packed};
use super::strings::{Interner, Vocabulary};
use super::{END, Tag};

/// Value of `last_name` before the first field name is written.
const NO_NAME: u32 = u32::MAX;

/// Writer of one tape. The caller has to end each list and map that it begins.
#[derive(Debug)]
pub(crate) struct Encoder<'a> {
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) vocabulary: &'a Vocabulary,
    pub(crate) interner: &'a mut Interner,
    /// Hash of the object's key; see [`Interner::value`].
    object: u32,
    last_name: u32,
}

impl<'a> Encoder<'a> {
    pub(crate) fn new(
        out: &'a mut Vec<u8>,
        vocabulary: &'a Vocabulary,
        interner: &'a mut Interner,
        object: u32,
    ) -> Self {
        Encoder {
            out,
            vocabulary,
            interner,
            object,
            last_name: NO_NAME,
        }
    }

    pub(crate) fn null(&mut self) {
        self.out.push(Tag::Null as u8);
    }

    pub(crate) fn bool(&mut self, value: bool) {
        let tag = if value { Tag::True } else { Tag::False };
        self.out.push(tag as u8);
    }

    pub(crate) fn unsigned(&mut self, value: u64) {
        self.number(Tag::Unsigned, value);
    }

    pub(crate) fn signed(&mut self, value: i64) {
        match u64::try_from(value) {
            Ok(value) => self.unsigned(value),
            // -1 - n of a negative number never overflows.
            Err(_) => self.number(Tag::Negative, value.wrapping_neg().wrapping_sub(1) as u64),
        }
    }

    pub(crate) fn float(&mut self, value: f64) {
        self.out.push(Tag::Float as u8);
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    pub(crate) fn text(&mut self, text: &str) {
        let packed = packed::pack(text);
        match &packed {
            Some(Packed::Decimal(number)) => return self.number(Tag::Decimal, *number),
            Some(Packed::Time(seconds)) => return self.number(Tag::Time, *seconds),
            Some(Packed::Uuid(uuid)) => {
                self.out.push(Tag::Uuid as u8);
                self.out.extend_from_slice(uuid);
                return;
            }
            Some(Packed::Digest { .. }) | None => {}
        }
        let shared = self
            .interner
            .value(self.vocabulary, self.last_name, text, self.object);
        match (shared, packed) {
            (Some(id), _) => self.number(Tag::Interned, u64::from(id)),
            (None, Some(Packed::Digest { before, digits })) => {
                self.number(Tag::Digest, digits.len() as u64 / 2);
                self.out.extend(packed::digest_bytes(digits));
                // Without its digits it is the same in many objects, or empty.
                self.text(before);
            }
            (None, _) => self.plain(text),
        }
    }

    fn plain(&mut self, text: &str) {
        self.number(Tag::Text, text.len() as u64);
        self.out.extend_from_slice(text.as_bytes());
    }

    /// Begins a list. Pass the returned position to [`end_list`](Encoder::end_list).
    pub(crate) fn begin_list(&mut self) -> usize {
        self.out.push(Tag::List as u8 | 0xf0);
        self.out.len() - 1
    }

    /// Ends the list that begins at `start` and has this number of items.
    pub(crate) fn end_list(&mut self, start: usize, items: usize) {
        self.end();
        // A reader that knows the number of items can allocate once.
        if let (Some(byte), 0..15) = (self.out.get_mut(start), items) {
            *byte = Tag::List as u8 | (items as u8) << 4;
        }
    }

    pub(crate) fn begin_map(&mut self) {
        self.out.push(Tag::Map as u8);
    }

    /// Ends the map begun last.
    pub(crate) fn end(&mut self) {
        self.out.push(END);
    }

    /// Returns the ID and text of the field name that is likely to be next.
    /// [`Encoder::expected_name`] writes that name.
    pub(crate) fn expected(&self) -> Option<(u32, &'a str)> {
        let id = self.interner.expected(self.last_name)?;
        Some((id, self.vocabulary.names.get(id)?))
    }

    /// Writes the field name with the ID that [`Encoder::expected`] returned.
    pub(crate) fn expected_name(&mut self, id: u32) {
        self.number(Tag::Interned, u64::from(id));
        self.last_name = id;
    }

    /// Writes the name of a map entry. The caller has to write the value of the entry next.
    pub(crate) fn name(&mut self, name: &str) {
        match self.interner.name(self.vocabulary, self.last_name, name) {
            Some(id) => self.expected_name(id),
            None => self.plain(name),
        }
    }

    fn number(&mut self, tag: Tag, number: u64) {
        if number < 15 {
            self.out.push(tag as u8 | (number as u8) << 4);
            return;
        }
        self.out.push(tag as u8 | 0xf0);
        let mut rest = number - 15;
        while rest >= 0x80 {
            self.out.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        self.out.push(rest as u8);
    }
}
