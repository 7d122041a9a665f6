//! A page of a list, cut into its objects one by one. Nothing is parsed but the list's own
//! metadata: the objects are parsed once, by whoever keeps them.

use bytes::Bytes;
use opkit_apimachinery::protobuf::{ListParts, ProtobufError, envelope};
use opkit_client::{Encoding, Page};
use serde::Deserialize;

use super::text::{object_end, skip_space, value_end};
use crate::sink::Raw;

/// Cuts a page into objects, whatever it is written in.
#[derive(Debug)]
pub(crate) enum Reader {
    Json(JsonPage),
    Protobuf(ProtobufPage),
}

impl Reader {
    /// Begins with a page.
    ///
    /// # Errors
    /// When it is said to be protobuf and is not. Of JSON this is noticed on the way.
    pub(crate) fn new(page: Page) -> Result<Self, ProtobufError> {
        Ok(match page.encoding {
            Encoding::Protobuf => Self::Protobuf(ProtobufPage::new(&page.body)?),
            _ => Self::Json(JsonPage::new(page.body)),
        })
    }

    /// The next object, or `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<Bytes>, PageError> {
        match self {
            Self::Json(page) => page.next(),
            Self::Protobuf(page) => Ok(page.items.next()),
        }
    }

    /// An object of this page, for whoever keeps it.
    pub(crate) fn raw<'a>(&self, object: &'a [u8]) -> Raw<'a> {
        match self {
            Self::Json(_) => Raw::Json(object),
            Self::Protobuf(_) => Raw::Protobuf(object),
        }
    }

    /// What the list says of itself; complete after the last object.
    pub(crate) fn into_meta(self) -> ListMeta {
        match self {
            Self::Json(page) => page.into_meta(),
            Self::Protobuf(page) => page.meta,
        }
    }
}

/// A page in protobuf.
#[derive(Debug)]
pub(crate) struct ProtobufPage {
    meta: ListMeta,
    items: std::vec::IntoIter<Bytes>,
}

impl ProtobufPage {
    fn new(body: &Bytes) -> Result<Self, ProtobufError> {
        let parts = ListParts::read(envelope(body)?.raw)?;
        let items: Vec<_> = parts.items().map(|item| body.slice_ref(item)).collect();
        Ok(Self {
            meta: ListMeta {
                resource_version: Some(parts.resource_version.to_owned()),
                continue_token: Some(parts.continue_token.to_owned()),
            },
            items: items.into_iter(),
        })
    }
}

/// What a list says of itself.
#[derive(Debug, Deserialize, Default, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ListMeta {
    pub(crate) resource_version: Option<String>,
    #[serde(rename = "continue")]
    pub(crate) continue_token: Option<String>,
}

/// Reads a page step by step; see [`next`](JsonPage::next).
#[derive(Debug)]
pub(crate) struct JsonPage {
    body: Bytes,
    at: usize,
    place: Place,
    meta: ListMeta,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Before the first byte.
    Begin,
    /// Before a field of the list, or its end.
    Field,
    /// Before an item, or the end of the items.
    Item,
    /// After the last byte that matters.
    End,
}

/// The page is not a list in JSON.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PageError {
    /// Something else stands where a part of a list should.
    #[error("{what} expected at byte {at} of the list")]
    Expected { what: &'static str, at: usize },
    /// The metadata of the list.
    #[error("the metadata of the list cannot be read")]
    Metadata(#[source] serde_json::Error),
}

impl JsonPage {
    pub(crate) fn new(body: Bytes) -> Self {
        Self {
            body,
            at: 0,
            place: Place::Begin,
            meta: ListMeta::default(),
        }
    }

    /// What the list says of itself; complete after the last object, since the fields of a list
    /// have no order.
    pub(crate) fn into_meta(self) -> ListMeta {
        self.meta
    }

    /// The next object, or `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<Bytes>, PageError> {
        loop {
            match self.place {
                Place::Begin => {
                    self.expect(b'{', "an object")?;
                    self.place = Place::Field;
                }
                Place::Field => self.field()?,
                Place::Item => {
                    if let Some(item) = self.item()? {
                        return Ok(Some(item));
                    }
                }
                Place::End => return Ok(None),
            }
        }
    }

    fn peek(&mut self) -> Option<u8> {
        self.at = skip_space(&self.body, self.at);
        self.body.get(self.at).copied()
    }

    fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), PageError> {
        if self.peek() != Some(byte) {
            return Err(self.expected(what));
        }
        self.at = self.at.saturating_add(1);
        Ok(())
    }

    fn expected(&self, what: &'static str) -> PageError {
        PageError::Expected { what, at: self.at }
    }

    /// Skips a comma, if there is one.
    fn comma(&mut self) {
        if self.peek() == Some(b',') {
            self.at = self.at.saturating_add(1);
        }
    }

    fn field(&mut self) -> Result<(), PageError> {
        self.comma();
        if self.peek() == Some(b'}') {
            self.place = Place::End;
            return Ok(());
        }
        let name = self.value("a field")?;
        self.expect(b':', "a colon")?;
        match &*name {
            b"\"items\"" if self.peek() == Some(b'[') => {
                self.at = self.at.saturating_add(1);
                self.place = Place::Item;
            }
            b"\"metadata\"" => {
                let value = self.value("the metadata")?;
                self.meta = serde_json::from_slice(&value).map_err(PageError::Metadata)?;
            }
            // Go writes an empty list of items as null.
            _ => drop(self.value("a value")?),
        }
        Ok(())
    }

    fn item(&mut self) -> Result<Option<Bytes>, PageError> {
        self.comma();
        match self.peek() {
            Some(b']') => {
                self.at = self.at.saturating_add(1);
                self.place = Place::Field;
                Ok(None)
            }
            Some(b'{') => {
                let end = object_end(&self.body, self.at);
                let end = end.ok_or_else(|| self.expected("the whole object"))?;
                let item = self.body.slice(self.at..end);
                self.at = end;
                Ok(Some(item))
            }
            _ => Err(self.expected("an object")),
        }
    }

    fn value(&mut self, what: &'static str) -> Result<Bytes, PageError> {
        self.at = skip_space(&self.body, self.at);
        let end = value_end(&self.body, self.at).ok_or_else(|| self.expected(what))?;
        let value = self.body.slice(self.at..end);
        self.at = end;
        Ok(value)
    }
}

#[cfg(test)]
mod tests;
