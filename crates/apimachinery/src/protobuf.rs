//! Kubernetes' protobuf, read as the JSON that Go would have written.
//!
//! kubectl and client-go send built-in kinds as `application/vnd.kubernetes.protobuf`: four magic
//! bytes, then a `runtime.Unknown` that names the kind and holds its message. [`decode`] turns
//! that into the [`Value`] which the same client would have sent as JSON. It knows no kind by
//! itself: numbers, JSON names and types come from one table, generated from the sources of
//! Kubernetes (`cargo xtask protobuf`), and the wire format is read by hand.
//!
//! Protobuf says less than JSON: an empty list is not on the wire at all, so it is absent here
//! as well. Values that Go's JSON leaves out when empty are left out, and so are empty structs
//! that Go would print as `{}`; what is a pointer in Go is kept whatever it holds.
//!
//! It does not write protobuf, and it does not know custom resources, which are never sent so.

mod leaf;
mod message;
mod table;
mod wire;

use serde_json::Value;

pub use crate::error::ProtobufError;
use message::Decoder;
use table::Table;
use wire::{Datum, Reader};

/// The media type of such a body.
pub const CONTENT_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// What every body begins with.
pub const MAGIC: &[u8] = b"k8s\0";

/// Reads an enveloped object of a built-in kind.
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
/// Bytes that are not an envelope, a kind that is not in the table, and a message that does not
/// read as its kind's; the latter names the message and the field.
pub fn decode(bytes: &[u8]) -> Result<Value, ProtobufError> {
    let table = Table::shared()?;
    Decoder { table }.envelope(bytes, 0)
}

impl Decoder<'_> {
    /// Reads an envelope, which may itself stand inside of an object.
    fn envelope(&self, bytes: &[u8], depth: usize) -> Result<Value, ProtobufError> {
        let bytes = bytes.strip_prefix(MAGIC).ok_or(ProtobufError::NoMagic)?;
        let unknown = Unknown::read(bytes)?;
        if !unknown.content_encoding.is_empty() {
            return Err(ProtobufError::Encoding {
                what: unknown.content_encoding.to_owned(),
            });
        }
        match unknown.content_type {
            "" | CONTENT_TYPE => {}
            "application/json" => {
                return serde_json::from_slice(unknown.raw).map_err(|error| {
                    malformed("runtime.Unknown", "raw", format!("is not JSON: {error}"))
                });
            }
            other => {
                return Err(ProtobufError::Encoding {
                    what: other.to_owned(),
                });
            }
        }
        let message = self
            .table
            .kind(unknown.api_version, unknown.kind)
            .ok_or_else(|| ProtobufError::UnknownKind {
                api_version: unknown.api_version.to_owned(),
                kind: unknown.kind.to_owned(),
            })?;
        let mut object = self.message(message, unknown.raw, depth)?;
        if let Value::Object(fields) = &mut object {
            fields.insert("apiVersion".to_owned(), unknown.api_version.into());
            fields.insert("kind".to_owned(), unknown.kind.into());
        }
        Ok(object)
    }
}

/// A `runtime.Unknown` with its `TypeMeta`.
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
            let (number, datum) = item.map_err(|reason| malformed(NAME, "", reason))?;
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
            match item.map_err(|reason| malformed(NAME, "", reason))? {
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
        .map_err(|reason| malformed(message, field, reason))
}

/// An error at a field of a message; the field is empty when it is not known which.
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
