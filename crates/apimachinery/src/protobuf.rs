//! Kubernetes' protobuf encoding of built-in kinds, converted from and to the JSON of the same
//! object.
//!
//! kubectl and client-go send built-in kinds as `application/vnd.kubernetes.protobuf`: four magic
//! bytes, then an envelope, the message `runtime.Unknown`, which has the `apiVersion` and `kind`
//! and contains the encoded object. API servers send responses in this format as well. Field
//! numbers, JSON names and types come from one table, generated from the sources of Kubernetes
//! (`cargo xtask protobuf`); no kind has code of its own. The wire format is decoded and encoded
//! without a protobuf library.
//!
//! - [`from_slice`] and [`to_vec`] are for typed objects, [`decode`] and [`encode()`] for JSON.
//! - [`Deserializer`] decodes a message without its envelope directly from the wire bytes.
//! - [`ListParts`] and [`WatchEventParts`] split a list or a watch event without decoding the
//!   objects in it.
//! - [`encode_message`], [`envelope_start`] and [`append_item`] compose envelopes and lists from
//!   objects that are already encoded.
//!
//! Decoding returns the JSON that the same server would send: values that Go's JSON omits when
//! empty are omitted, an empty struct that is not a pointer in Go is `{}`, and a pointer that is
//! set is kept even if its value is empty. There is one difference to JSON: protobuf does not
//! encode an empty list, so the decoded object lacks the field where Go prints `null` or `[]`.
//! Encoding writes what Go writes: every field that is not a pointer, even if it is empty.
//!
//! Custom resources are not supported: Kubernetes never sends them as protobuf.

mod compose;
mod deserializer;
mod encode;
mod fields;
mod leaf;
mod parts;
mod table;
mod value;
mod wire;

use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use crate::error::ProtobufError;
pub use compose::{ENVELOPE_END, append_item, envelope_start, item_length};
pub use deserializer::Deserializer;
pub use encode::{encode, encode_message};
pub use parts::{ListParts, WatchEventParts};
pub use table::MessageType;
use wire::{Datum, Reader};

/// Media type of a protobuf body.
pub const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// First bytes of every protobuf body, before the envelope.
pub const MAGIC: &[u8] = b"k8s\0";

/// Decodes an object of a built-in kind in its protobuf envelope to JSON.
///
/// The result has the `apiVersion` and `kind` of the envelope.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::protobuf::decode;
/// use serde_json::json;
///
/// // A Namespace whose metadata holds the name "a".
/// let body = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x05\x0a\x03\x0a\x01a";
/// let expected = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}});
/// assert_eq!(decode(body)?, expected);
/// # Ok::<(), opkit_apimachinery::protobuf::ProtobufError>(())
/// ```
///
/// # Errors
///
/// If the bytes are not an envelope, the kind is not a built-in kind, or the message cannot be
/// decoded. In the last case the error contains the names of the message and the field.
pub fn decode(bytes: &[u8]) -> Result<Value, ProtobufError> {
    from_slice(bytes)
}

/// Decodes an object of a built-in kind in its protobuf envelope to the type `T`.
///
/// The visitor of the type gets the `apiVersion` and `kind` of the envelope before the other
/// fields.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::protobuf::from_slice;
/// use serde::Deserialize;
///
/// #[derive(Deserialize)]
/// struct Object<'a> {
///     kind: &'a str,
/// }
///
/// let body = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x05\x0a\x03\x0a\x01a";
/// assert_eq!(from_slice::<Object>(body)?.kind, "Namespace");
/// # Ok::<(), opkit_apimachinery::protobuf::ProtobufError>(())
/// ```
///
/// # Errors
///
/// The errors of [`decode`], and an error if the object does not fit the type.
pub fn from_slice<'de, T: Deserialize<'de>>(bytes: &'de [u8]) -> Result<T, ProtobufError> {
    let envelope = envelope(bytes)?;
    if envelope.is_protobuf() {
        return T::deserialize(Deserializer::enveloped(&envelope)?);
    }
    serde_json::from_slice(envelope.raw)
        .map_err(|error| malformed("runtime.Unknown", "raw", format!("is not JSON: {error}")))
}

/// Encodes an object of a built-in kind as protobuf in an envelope.
///
/// The `apiVersion` and `kind` are taken from the serialized object.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::protobuf::{from_slice, to_vec};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, PartialEq, Serialize, Deserialize)]
/// #[serde(rename_all = "camelCase")]
/// struct ConfigMap {
///     api_version: String,
///     kind: String,
///     immutable: bool,
/// }
///
/// let (api_version, kind) = ("v1".to_owned(), "ConfigMap".to_owned());
/// let object = ConfigMap { api_version, kind, immutable: true };
/// assert_eq!(from_slice::<ConfigMap>(&to_vec(&object)?)?, object);
/// # Ok::<(), opkit_apimachinery::protobuf::ProtobufError>(())
/// ```
///
/// # Errors
///
/// The errors of [`encode()`], and an error if the object cannot be serialized.
pub fn to_vec<T: Serialize + ?Sized>(object: &T) -> Result<Vec<u8>, ProtobufError> {
    let value = serde_json::to_value(object).map_err(|error| ProtobufError::Unwritable {
        field: "the object".to_owned(),
        reason: format!("does not serialize: {error}"),
    })?;
    encode(&value)
}

/// Envelope of an object, which has the kind, the encoding and the bytes of the object.
///
/// # Examples
///
/// ```
/// let body = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x05\x0a\x03\x0a\x01a";
/// let envelope = opkit_apimachinery::protobuf::envelope(body)?;
/// assert_eq!((envelope.api_version, envelope.kind), ("v1", "Namespace"));
/// assert_eq!(envelope.raw, b"\x0a\x03\x0a\x01a");
/// # Ok::<(), opkit_apimachinery::protobuf::ProtobufError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Envelope<'a> {
    /// Group and version of the object.
    pub api_version: &'a str,
    /// Kind of the object.
    pub kind: &'a str,
    /// Encoding of `raw`: [`CONTENT_TYPE`] or `application/json`. An empty content type means
    /// [`CONTENT_TYPE`].
    pub content_type: &'a str,
    /// The encoded object.
    pub raw: &'a [u8],
}

impl Envelope<'_> {
    /// Reports whether the object is a protobuf message rather than JSON.
    pub fn is_protobuf(&self) -> bool {
        matches!(self.content_type, "" | CONTENT_TYPE)
    }
}

/// Decodes the envelope of an object, but not the object in it.
///
/// # Errors
///
/// If the bytes are not an envelope, or the content is neither protobuf nor JSON.
pub fn envelope(bytes: &[u8]) -> Result<Envelope<'_>, ProtobufError> {
    let bytes = bytes.strip_prefix(MAGIC).ok_or(ProtobufError::NoMagic)?;
    let unknown = Unknown::read(bytes)?;
    let what = match (unknown.content_encoding, unknown.content_type) {
        ("", "" | CONTENT_TYPE | "application/json") => None,
        ("", content_type) => Some(content_type),
        (content_encoding, _) => Some(content_encoding),
    };
    if let Some(what) = what {
        return Err(ProtobufError::Encoding {
            what: what.to_owned(),
        });
    }
    Ok(Envelope {
        api_version: unknown.api_version,
        kind: unknown.kind,
        content_type: unknown.content_type,
        raw: unknown.raw,
    })
}

/// A decoded `runtime.Unknown`, the message of the envelope.
#[derive(Debug, Default)]
struct Unknown<'a> {
    api_version: &'a str,
    kind: &'a str,
    raw: &'a [u8],
    content_encoding: &'a str,
    content_type: &'a str,
}

impl<'a> Unknown<'a> {
    fn read(bytes: &'a [u8]) -> Result<Self, ProtobufError> {
        const NAME: &str = "runtime.Unknown";
        let mut unknown = Self::default();
        for item in Reader::new(bytes) {
            let (number, datum) = item.map_err(|error| malformed(NAME, "", error))?;
            match (number, datum) {
                (1, Datum::Bytes(type_meta)) => unknown.type_meta(type_meta)?,
                (2, Datum::Bytes(raw)) => unknown.raw = raw,
                (3, datum) => unknown.content_encoding = text(NAME, "contentEncoding", datum)?,
                (4, datum) => unknown.content_type = text(NAME, "contentType", datum)?,
                (1, _) => return Err(malformed(NAME, "typeMeta", "is not a message")),
                (2, _) => return Err(malformed(NAME, "raw", "is not bytes")),
                _ => {}
            }
        }
        Ok(unknown)
    }

    fn type_meta(&mut self, bytes: &'a [u8]) -> Result<(), ProtobufError> {
        const NAME: &str = "runtime.TypeMeta";
        for item in Reader::new(bytes) {
            match item.map_err(|error| malformed(NAME, "", error))? {
                (1, datum) => self.api_version = text(NAME, "apiVersion", datum)?,
                (2, datum) => self.kind = text(NAME, "kind", datum)?,
                _ => {}
            }
        }
        Ok(())
    }
}

fn text<'a>(message: &str, field: &str, datum: Datum<'a>) -> Result<&'a str, ProtobufError> {
    datum
        .text()
        .map_err(|error| malformed(message, field, error))
}

/// Creates an error with the names of the message and the field; `field` is empty if it is not
/// known.
fn malformed(message: &str, field: &str, reason: impl Into<String>) -> ProtobufError {
    let field = match field {
        "" => message.to_owned(),
        field => format!("{message}.{field}"),
    };
    ProtobufError::Malformed {
        field,
        reason: reason.into(),
    }
}

#[cfg(test)]
mod tests;
