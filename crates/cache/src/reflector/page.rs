//! One page of a list, split into its objects. This module parses only the metadata of the list;
//! the sink parses the objects.

use bytes::Bytes;
use opkit_apimachinery::protobuf::{ListParts, ProtobufError, envelope};
use opkit_client::{Encoding, Response};
use serde::Deserialize;

use super::text::{object_end, skip_space, value_end};
use crate::sink::Raw;

/// Body of a response to a list request, and its encoding.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) body: Bytes,
    pub(crate) encoding: Encoding,
}

impl From<Response> for Page {
    fn from(response: Response) -> Self {
        let (body, encoding) = (response.body, response.encoding);
        Self { body, encoding }
    }
}

/// Reader that splits a page in JSON or protobuf into objects.
#[derive(Debug)]
pub(crate) enum Reader {
    Json(JsonPage),
    Protobuf(ProtobufPage),
}

impl Reader {
    /// Starts to read a page.
    ///
    /// # Errors
    /// If the page is declared as protobuf but is not valid. Invalid JSON is reported by
    /// [`next`](Self::next).
    pub(crate) fn new(page: Page) -> Result<Self, ProtobufError> {
        Ok(match page.encoding {
            Encoding::Protobuf => Self::Protobuf(ProtobufPage::new(&page.body)?),
            _ => Self::Json(JsonPage::new(page.body)),
        })
    }

    /// Returns the next object, or `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<Bytes>, PageError> {
        match self {
            Self::Json(page) => page.next(),
            Self::Protobuf(page) => Ok(page.items.next()),
        }
    }

    /// Returns the bytes of an object together with the encoding of this page, for the sink.
    pub(crate) fn raw<'a>(&self, object: &'a [u8]) -> Raw<'a> {
        match self {
            Self::Json(_) => Raw::Json(object),
            Self::Protobuf(_) => Raw::Protobuf(object),
        }
    }

    /// Returns the metadata of the list, which is complete only after the last object was read.
    pub(crate) fn into_meta(self) -> ListMeta {
        match self {
            Self::Json(page) => page.into_meta(),
            Self::Protobuf(page) => page.meta,
        }
    }
}

/// Page in protobuf.
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

/// Metadata of a list.
#[derive(Debug, Deserialize, Default, Clone, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ListMeta {
    pub(crate) resource_version: Option<String>,
    #[serde(rename = "continue")]
    pub(crate) continue_token: Option<String>,
}

/// Page in JSON, read one object at a time; see [`next`](JsonPage::next).
#[derive(Debug)]
pub(crate) struct JsonPage {
    body: Bytes,
    at: usize,
    position: Position,
    meta: ListMeta,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    /// Before the first byte of the list.
    Begin,
    /// Before a field of the list, or before the end of the list.
    Field,
    /// Before an item, or before the end of the items.
    Item,
    /// After the last byte that is read.
    End,
}

/// Error of a page that is not a list in JSON.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PageError {
    /// The JSON is not valid, or is not a list.
    #[error("{what} expected at byte {at} of the list")]
    Expected { what: &'static str, at: usize },
    /// The metadata of the list is not valid.
    #[error("cannot parse the metadata of the list")]
    Metadata(#[source] serde_json::Error),
}

impl JsonPage {
    pub(crate) fn new(body: Bytes) -> Self {
        Self {
            body,
            at: 0,
            position: Position::Begin,
            meta: ListMeta::default(),
        }
    }

    /// Returns the metadata of the list. The metadata is complete only after the last object was
    /// read, since the fields of a list have no fixed order.
    pub(crate) fn into_meta(self) -> ListMeta {
        self.meta
    }

    /// Returns the next object, or `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<Bytes>, PageError> {
        loop {
            match self.position {
                Position::Begin => {
                    self.expect(b'{', "an object")?;
                    self.position = Position::Field;
                }
                Position::Field => self.field()?,
                Position::Item => {
                    if let Some(item) = self.item()? {
                        return Ok(Some(item));
                    }
                }
                Position::End => return Ok(None),
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
            self.position = Position::End;
            return Ok(());
        }
        let name = self.value("a field")?;
        self.expect(b':', "a colon")?;
        match &*name {
            b"\"items\"" if self.peek() == Some(b'[') => {
                self.at = self.at.saturating_add(1);
                self.position = Position::Item;
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
                self.position = Position::Field;
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
