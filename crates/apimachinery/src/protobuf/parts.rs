//! Splits lists and watch events without decoding the objects in them.

use super::wire::{Datum, Reader, WireError};
use super::{leaf, malformed};
use crate::error::ProtobufError;

/// A list, such as a `PodList`, split into its metadata and its items, which stay encoded.
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
    /// Resource version of the whole list.
    pub resource_version: &'a str,
    /// Token to request the next page; empty on the last page.
    pub continue_token: &'a str,
    /// Number of objects on later pages, if the server sent this number.
    pub remaining_item_count: Option<i64>,
    bytes: &'a [u8],
}

impl<'a> ListParts<'a> {
    /// Splits the message of a list, without the envelope.
    ///
    /// # Errors
    ///
    /// If the bytes are not the message of a list. The items are not decoded.
    pub fn read(bytes: &'a [u8]) -> Result<Self, ProtobufError> {
        const NAME: &str = "list";
        let mut list = Self {
            resource_version: "",
            continue_token: "",
            remaining_item_count: None,
            bytes,
        };
        for item in Reader::new(bytes) {
            match item.map_err(|error| malformed(NAME, "", error))? {
                (1, Datum::Bytes(metadata)) => list
                    .metadata(metadata)
                    .map_err(|error| malformed("meta.v1.ListMeta", "", error))?,
                (1, _) => return Err(malformed(NAME, "metadata", "is not a message")),
                (2, Datum::Bytes(_)) => {}
                (2, _) => return Err(malformed(NAME, "items", "is not a message")),
                _ => {}
            }
        }
        Ok(list)
    }

    fn metadata(&mut self, bytes: &'a [u8]) -> Result<(), WireError> {
        for item in Reader::new(bytes) {
            match item? {
                (2, datum) => self.resource_version = datum.text()?,
                (3, datum) => self.continue_token = datum.text()?,
                (4, Datum::Varint(bits)) => self.remaining_item_count = Some(bits.cast_signed()),
                (4, datum) => return Err(WireError::Type(datum.name(), "a number")),
                _ => {}
            }
        }
        Ok(())
    }

    /// Returns the items, each as a message without an envelope.
    pub fn items(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        Reader::new(self.bytes).filter_map(|item| match item {
            Ok((2, Datum::Bytes(item))) => Some(item),
            _ => None,
        })
    }
}

/// A watch event, split into its type and its object, which stays encoded.
///
/// A watch in protobuf is a sequence of frames. Each frame is a length of four bytes (big-endian),
/// followed by that many bytes of a `meta.v1.WatchEvent` without an envelope.
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
    /// Type of the event: `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK` or `ERROR`.
    pub type_: &'a str,
    /// The encoded object, in its envelope.
    pub object: &'a [u8],
}

impl<'a> WatchEventParts<'a> {
    /// Decodes an event from the content of one frame.
    ///
    /// # Errors
    ///
    /// If the bytes are not the message of an event. The object is not decoded.
    pub fn read(bytes: &'a [u8]) -> Result<Self, ProtobufError> {
        const NAME: &str = "meta.v1.WatchEvent";
        let mut event = Self {
            type_: "",
            object: &[],
        };
        for item in Reader::new(bytes) {
            match item.map_err(|error| malformed(NAME, "", error))? {
                (1, datum) => {
                    event.type_ = datum
                        .text()
                        .map_err(|error| malformed(NAME, "type", error))?;
                }
                (2, datum) => {
                    let raw = datum.bytes("a message").and_then(leaf::raw);
                    event.object = raw.map_err(|error| malformed(NAME, "object", error))?;
                }
                _ => {}
            }
        }
        Ok(event)
    }

    /// Encodes the event in the form that [`Self::read`] decodes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = super::wire::Writer::default();
        out.bytes(self.object);
        out.length_since(0, 1);
        out.length_since(0, 2);
        let type_ = out.position();
        out.bytes(self.type_.as_bytes());
        out.length_since(type_, 1);
        out.finish()
    }
}
