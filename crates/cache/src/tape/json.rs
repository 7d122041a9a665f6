//! Encoder of JSON text into a tape (the stored binary form), in one pass and without a tree.
//!
//! `metadata.managedFields` is left out while parsing, except for the entries of the requested
//! managers. `apiVersion` and `kind` are left out because the store knows them. The parser accepts
//! what serde_json accepts. The parser also accepts some invalid numbers and control characters,
//! which API servers do not write.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memchr2;

use super::DEPTH_MAX;
use super::encoder::Encoder;

/// Error of text that is not the JSON of an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {at}")]
pub(crate) struct InvalidJson {
    pub(crate) what: &'static str,
    pub(crate) at: usize,
}

/// Encodes the JSON object `json` into a tape (the stored binary form). Of `managedFields`, only
/// the entries whose manager satisfies `keeps` are kept. `unwanted` is the byte range of a
/// `managedFields` of which no entry is kept, if known; this range is skipped without parsing.
pub(crate) fn encode(
    json: &str,
    encoder: &mut Encoder<'_>,
    keeps: &dyn Fn(&str) -> bool,
    unwanted: Option<Range<usize>>,
) -> Result<(), InvalidJson> {
    let mut scanner = Scanner::new(json);
    scanner.unwanted = unwanted.unwrap_or_default();
    scanner.object(encoder, keeps)?;
    scanner.finish()
}

/// Position in JSON text.
#[derive(Debug, Clone)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    unwanted: Range<usize>,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Scanner {
            text,
            bytes: text.as_bytes(),
            at: 0,
            unwanted: 0..0,
        }
    }

    /// Returns an error unless the position is at the end of the text.
    pub(crate) fn finish(&mut self) -> Result<(), InvalidJson> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.error("trailing characters")),
        }
    }

    fn object(
        &mut self,
        encoder: &mut Encoder<'_>,
        keeps: &dyn Fn(&str) -> bool,
    ) -> Result<(), InvalidJson> {
        self.entries(
            encoder,
            |scanner, name, encoder| {
                Ok(match name {
                    "apiVersion" | "kind" => scanner.skip().map(|()| Entry::LeftOut)?,
                    "metadata" if scanner.peek() == Some(b'{') => {
                        encoder.name(name);
                        scanner.metadata(encoder, keeps).map(|()| Entry::Written)?
                    }
                    _ => Entry::Value,
                })
            },
            1,
        )
    }

    fn metadata(
        &mut self,
        encoder: &mut Encoder<'_>,
        keeps: &dyn Fn(&str) -> bool,
    ) -> Result<(), InvalidJson> {
        self.entries(
            encoder,
            |scanner, name, encoder| {
                if name != "managedFields" {
                    return Ok(Entry::Value);
                }
                scanner.managed_fields(encoder, keeps)?;
                Ok(Entry::LeftOut)
            },
            2,
        )
    }

    /// Writes `managedFields` if at least one of its entries is kept.
    fn managed_fields(
        &mut self,
        encoder: &mut Encoder<'_>,
        keeps: &dyn Fn(&str) -> bool,
    ) -> Result<(), InvalidJson> {
        if self.peek() != Some(b'[') {
            return self.skip();
        }
        if self.unwanted.start == self.at {
            self.at = self.unwanted.end;
            return Ok(());
        }
        self.at += 1;
        let mut list_start = None;
        let (mut first, mut items) = (true, 0);
        while self.item(&mut first, b']')? {
            let mut ahead = self.clone();
            let kept = ahead.manager()?.is_some_and(|manager| keeps(&manager));
            if !kept {
                self.at = ahead.at;
                continue;
            }
            if list_start.is_none() {
                encoder.name("managedFields");
                list_start = Some(encoder.begin_list());
            }
            self.value(encoder, 4)?;
            items += 1;
        }
        if let Some(start) = list_start {
            encoder.end_list(start, items);
        }
        Ok(())
    }

    /// Skips an entry of `managedFields` and returns its manager.
    fn manager(&mut self) -> Result<Option<Cow<'a, str>>, InvalidJson> {
        let mut manager = None;
        self.fields(|scanner, name| {
            if name == "manager" && scanner.peek() == Some(b'"') {
                manager = Some(scanner.string()?);
                return Ok(Field::Passed);
            }
            Ok(Field::Skip)
        })?;
        Ok(manager)
    }

    /// Reads a map. Calls `field` with each name. The result of `field` is whether it has read the
    /// value, the value is to be skipped, or the rest of the map is not needed.
    pub(crate) fn fields(
        &mut self,
        mut field: impl FnMut(&mut Self, &str) -> Result<Field, InvalidJson>,
    ) -> Result<(), InvalidJson> {
        if self.peek() != Some(b'{') {
            return self.skip();
        }
        self.at += 1;
        let mut first = true;
        while self.item(&mut first, b'}')? {
            let name = self.string()?;
            self.colon()?;
            match field(self, &name)? {
                Field::Passed => {}
                Field::Skip => self.skip()?,
                Field::Stop => return Ok(()),
            }
        }
        Ok(())
    }

    /// Reads a list. Calls `item` for each item, which has to read the item.
    pub(crate) fn items(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<(), InvalidJson>,
    ) -> Result<(), InvalidJson> {
        if self.peek() != Some(b'[') {
            return self.skip();
        }
        self.at += 1;
        let mut first = true;
        while self.item(&mut first, b']')? {
            item(self)?;
        }
        Ok(())
    }

    /// Writes the entries of a map. For each entry, first calls `special` with the name of the
    /// entry; an entry that `special` handles is not written here.
    fn entries(
        &mut self,
        encoder: &mut Encoder<'_>,
        special: impl Fn(&mut Self, &str, &mut Encoder<'_>) -> Result<Entry, InvalidJson>,
        depth: usize,
    ) -> Result<(), InvalidJson> {
        if self.peek() != Some(b'{') {
            return Err(self.error("expected an object"));
        }
        self.at += 1;
        encoder.begin_map();
        let mut first = true;
        while self.item(&mut first, b'}')? {
            let name = self.string()?;
            self.colon()?;
            if special(self, &name, encoder)? == Entry::Value {
                encoder.name(&name);
                self.value(encoder, depth)?;
            }
        }
        encoder.end();
        Ok(())
    }

    fn value(&mut self, encoder: &mut Encoder<'_>, depth: usize) -> Result<(), InvalidJson> {
        if depth >= DEPTH_MAX {
            return Err(self.error("nested too deeply"));
        }
        match self.peek() {
            Some(b'"') => {
                let text = self.string()?;
                encoder.text(&text);
            }
            Some(b'{') => {
                self.at += 1;
                encoder.begin_map();
                let mut first = true;
                while self.item(&mut first, b'}')? {
                    self.name(encoder)?;
                    self.colon()?;
                    self.value(encoder, depth + 1)?;
                }
                encoder.end();
            }
            Some(b'[') => {
                self.at += 1;
                let start = encoder.begin_list();
                let (mut first, mut items) = (true, 0);
                while self.item(&mut first, b']')? {
                    self.value(encoder, depth + 1)?;
                    items += 1;
                }
                encoder.end_list(start, items);
            }
            Some(b't') => self.word("true").map(|()| encoder.bool(true))?,
            Some(b'f') => self.word("false").map(|()| encoder.bool(false))?,
            Some(b'n') => self.word("null").map(|()| encoder.null())?,
            Some(_) => self.number(encoder)?,
            None => return Err(self.error("the text ends too early")),
        }
        Ok(())
    }

    /// Writes the name of a map entry. Usually the name is the expected one; it is then written
    /// without a search for its end and without a lookup.
    fn name(&mut self, encoder: &mut Encoder<'_>) -> Result<(), InvalidJson> {
        if let Some((id, expected)) = encoder.expected() {
            let rest = self.bytes.get(self.at + 1..).unwrap_or_default();
            if self.peek() == Some(b'"')
                && rest.get(..expected.len()) == Some(expected.as_bytes())
                && rest.get(expected.len()) == Some(&b'"')
            {
                self.at += expected.len() + 2;
                encoder.expected_name(id);
                return Ok(());
            }
        }
        let name = self.string()?;
        encoder.name(&name);
        Ok(())
    }

    fn number(&mut self, encoder: &mut Encoder<'_>) -> Result<(), InvalidJson> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let length = rest
            .iter()
            .take_while(|byte| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'))
            .count();
        let end = self.at + length;
        let text = self.text.get(self.at..end).unwrap_or_default();
        if let Ok(value) = text.parse::<u64>() {
            encoder.unsigned(value);
        } else if let Ok(value) = text.parse::<i64>() {
            encoder.signed(value);
        } else {
            match text.parse::<f64>() {
                Ok(value) if value.is_finite() => encoder.float(value),
                _ => return Err(self.error("expected a value")),
            }
        }
        self.at = end;
        Ok(())
    }

    /// Skips the next value and returns its byte range.
    pub(crate) fn passed(&mut self) -> Result<Range<usize>, InvalidJson> {
        self.peek();
        let start = self.at;
        self.skip()?;
        Ok(start..self.at)
    }

    /// Skips the next value.
    pub(crate) fn skip(&mut self) -> Result<(), InvalidJson> {
        let mut depth = 0usize;
        loop {
            match self.peek() {
                Some(b'"') => self.skip_string()?,
                Some(b'{' | b'[') => {
                    depth += 1;
                    self.at += 1;
                    continue;
                }
                Some(b'}' | b']') => {
                    depth = depth
                        .checked_sub(1)
                        .ok_or_else(|| self.error("expected a value"))?;
                    self.at += 1;
                }
                Some(b',' | b':') if depth > 0 => {
                    self.at += 1;
                    continue;
                }
                Some(_) => {
                    let rest = self.bytes.get(self.at..).unwrap_or_default();
                    let scalar = |byte: &&u8| {
                        byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.')
                    };
                    let length = rest.iter().take_while(scalar).count();
                    if length == 0 {
                        return Err(self.error("expected a value"));
                    }
                    self.at += length;
                }
                None => return Err(self.error("the text ends too early")),
            }
            if depth == 0 {
                return Ok(());
            }
        }
    }

    /// Returns the next value, which must be a string. The string is copied only if it has escapes.
    pub(crate) fn string(&mut self) -> Result<Cow<'a, str>, InvalidJson> {
        if self.peek() != Some(b'"') {
            return Err(self.error("expected a string"));
        }
        let start = self.at + 1;
        let rest = self.bytes.get(start..).unwrap_or_default();
        match memchr2(b'"', b'\\', rest) {
            Some(length) if rest.get(length) == Some(&b'"') => {
                self.at = start + length + 1;
                let text = self.text.get(start..start + length).unwrap_or_default();
                Ok(Cow::Borrowed(text))
            }
            Some(_) => {
                let from = self.at;
                self.skip_string()?;
                let quoted = self.text.get(from..self.at).unwrap_or_default();
                // Escapes are rare, and serde_json supports all of them.
                let text = serde_json::from_str(quoted);
                text.map(Cow::Owned).map_err(|_| InvalidJson {
                    what: "invalid string",
                    at: from,
                })
            }
            None => Err(self.error("a string has no end")),
        }
    }

    fn skip_string(&mut self) -> Result<(), InvalidJson> {
        let mut at = self.at + 1;
        loop {
            let rest = self.bytes.get(at..).unwrap_or_default();
            match memchr2(b'"', b'\\', rest) {
                Some(length) if rest.get(length) == Some(&b'"') => {
                    self.at = at + length + 1;
                    return Ok(());
                }
                // Skips the escaped character.
                Some(length) => at += length + 2,
                None => return Err(self.error("a string has no end")),
            }
        }
    }

    /// Reports whether a list or map has another item, and skips the separator before it.
    pub(crate) fn item(&mut self, first: &mut bool, end: u8) -> Result<bool, InvalidJson> {
        match self.peek() {
            Some(byte) if byte == end => {
                self.at += 1;
                return Ok(false);
            }
            Some(_) if *first => {}
            Some(b',') => {
                self.at += 1;
                // A trailing comma is not valid.
                if self.peek() == Some(end) {
                    return Err(self.error("expected a value"));
                }
            }
            _ => return Err(self.error("expected a comma")),
        }
        *first = false;
        Ok(true)
    }

    fn colon(&mut self) -> Result<(), InvalidJson> {
        if self.peek() != Some(b':') {
            return Err(self.error("expected a colon"));
        }
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, word: &'static str) -> Result<(), InvalidJson> {
        let end = self.at + word.len();
        if self.bytes.get(self.at..end) != Some(word.as_bytes()) {
            return Err(self.error("expected a value"));
        }
        self.at = end;
        Ok(())
    }

    /// Returns the next byte that is not white space.
    #[inline]
    pub(crate) fn peek(&mut self) -> Option<u8> {
        loop {
            match self.bytes.get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                byte => return byte.copied(),
            }
        }
    }

    fn error(&self, what: &'static str) -> InvalidJson {
        InvalidJson { what, at: self.at }
    }
}

/// How an entry of a map was handled.
#[derive(Debug, PartialEq, Eq)]
enum Entry {
    /// The entry was not handled, because it is an ordinary entry.
    Value,
    Written,
    LeftOut,
}

/// How to continue after a field of a map.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Field {
    /// Skip the value of the field.
    Skip,
    /// The value of the field has already been read.
    Passed,
    /// Stop reading the map, and leave the position where it is.
    Stop,
}
