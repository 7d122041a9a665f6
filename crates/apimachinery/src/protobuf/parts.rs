//! Lists and watch events, taken apart without decoding the objects in them.

use super::wire::{Datum, Flaw, Reader};
use super::{leaf, malformed};
use crate::error::ProtobufError;

/// A list, such as a `PodList`: its metadata, and its items as messages that nobody has decoded.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::protobuf::{Deserializer, ListParts, MessageType, encode, envelope};
/// use serde::Deserialize;
/// use serde_json::{Value, json};
///
/// let body = encode(&json!({
///     "apiVersion": "v1",
///     "kind": "ConfigMapList",
///     "metadata": {"resourceVersion": "7"},
///     "items": [{"data": {"a": "b"}}],
/// }))?;
/// let list = ListParts::read(envelope(&body)?.raw)?;
/// assert_eq!(list.resource_version, "7");
///
/// let message = MessageType::of("v1", "ConfigMap").ok_or("no such kind")?;
/// for item in list.items() {
///     let object = Value::deserialize(Deserializer::new(message, item))?;
///     assert_eq!(object["data"]["a"], "b");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ListParts<'a> {
    /// The version of the whole list.
    pub resource_version: &'a str,
    /// What to ask for the next page with; empty on the last page.
    pub continue_token: &'a str,
    /// How many objects are on later pages, if the server says so.
    pub remaining_item_count: Option<i64>,
    bytes: &'a [u8],
}

impl<'a> ListParts<'a> {
    /// Reads the message of a list: what is in its envelope.
    ///
    /// # Errors
    ///
    /// Bytes that are not the message of a list. The items themselves are not looked at.
    pub fn read(bytes: &'a [u8]) -> Result<Self, ProtobufError> {
        const NAME: &str = "list";
        let mut list = Self {
            resource_version: "",
            continue_token: "",
            remaining_item_count: None,
            bytes,
        };
        for item in Reader::new(bytes) {
            match item.map_err(|flaw| malformed(NAME, "", flaw))? {
                (1, Datum::Bytes(metadata)) => list
                    .metadata(metadata)
                    .map_err(|flaw| malformed("meta.v1.ListMeta", "", flaw))?,
                (1, _) => return Err(malformed(NAME, "metadata", "is not a message")),
                (2, Datum::Bytes(_)) => {}
                (2, _) => return Err(malformed(NAME, "items", "is not a message")),
                _ => {}
            }
        }
        Ok(list)
    }

    fn metadata(&mut self, bytes: &'a [u8]) -> Result<(), Flaw> {
        for item in Reader::new(bytes) {
            match item? {
                (2, datum) => self.resource_version = datum.text()?,
                (3, datum) => self.continue_token = datum.text()?,
                (4, Datum::Varint(bits)) => self.remaining_item_count = Some(bits.cast_signed()),
                (4, datum) => return Err(Flaw::Type(datum.name(), "a number")),
                _ => {}
            }
        }
        Ok(())
    }

    /// The items, each a message without an envelope.
    pub fn items(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        Reader::new(self.bytes).filter_map(|item| match item {
            Ok((2, Datum::Bytes(item))) => Some(item),
            _ => None,
        })
    }
}

/// An event of a watch: what has happened, and the object that nobody has decoded.
///
/// A watch in protobuf is a row of frames, each a length of four bytes, the highest first, and
/// as many bytes, which are a `meta.v1.WatchEvent` without an envelope.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::protobuf::{WatchEventParts, decode};
///
/// let object = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x05\x0a\x03\x0a\x01a";
/// let frame = WatchEventParts { type_: "ADDED", object }.to_vec();
///
/// let event = WatchEventParts::read(&frame)?;
/// assert_eq!(event.type_, "ADDED");
/// assert_eq!(decode(event.object)?["metadata"]["name"], "a");
/// # Ok::<(), opkit_apimachinery::protobuf::ProtobufError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchEventParts<'a> {
    /// `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`.
    pub type_: &'a str,
    /// The object, with its envelope.
    pub object: &'a [u8],
}

impl<'a> WatchEventParts<'a> {
    /// Reads an event: what is in a frame.
    ///
    /// # Errors
    ///
    /// Bytes that are not the message of an event. The object itself is not looked at.
    pub fn read(bytes: &'a [u8]) -> Result<Self, ProtobufError> {
        const NAME: &str = "meta.v1.WatchEvent";
        let mut event = Self {
            type_: "",
            object: &[],
        };
        for item in Reader::new(bytes) {
            match item.map_err(|flaw| malformed(NAME, "", flaw))? {
                (1, datum) => {
                    event.type_ = datum.text().map_err(|flaw| malformed(NAME, "type", flaw))?;
                }
                (2, datum) => {
                    let raw = datum.bytes("a message").and_then(leaf::raw);
                    event.object = raw.map_err(|flaw| malformed(NAME, "object", flaw))?;
                }
                _ => {}
            }
        }
        Ok(event)
    }

    /// Writes an event: what [`Self::read`] reads.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = super::wire::Writer::default();
        out.bytes(self.object);
        out.length_since(0, 1);
        out.length_since(0, 2);
        let type_ = out.mark();
        out.bytes(self.type_.as_bytes());
        out.length_since(type_, 1);
        out.finish()
    }
}
