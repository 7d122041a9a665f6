//! Encoding and decoding of objects in JSON and in Kubernetes' protobuf.
//!
//! Built-in kinds are requested and sent in protobuf, which the server encodes and decodes several
//! times faster than JSON. All other kinds are requested and sent in JSON. A server may always
//! respond in JSON.

use kube::core::WatchEvent;
use opkit_apimachinery::protobuf::{self, MessageType, ProtobufError, WatchEventParts};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Encoding, Kind, ResponseFormat};

/// Returns the format in which whole objects of a kind are requested.
pub(crate) fn format(kind: &Kind) -> ResponseFormat {
    ResponseFormat {
        metadata_only: false,
        protobuf: is_built_in(kind),
    }
}

/// Reports whether the kind is built in and has a known protobuf encoding.
fn is_built_in(kind: &Kind) -> bool {
    MessageType::of(&kind.api_version(), &kind.kind).is_some()
}

/// Decodes the body of a response.
pub(crate) fn from_slice<T: DeserializeOwned>(
    body: &[u8],
    encoding: Encoding,
) -> Result<T, serde_json::Error> {
    match encoding {
        Encoding::Protobuf => protobuf::from_slice(body).map_err(as_json_error),
        Encoding::Json => serde_json::from_slice(body),
    }
}

/// Decodes the body of a response. Converts protobuf into a JSON value first, so that the protobuf
/// decoder is not compiled for each type that is decoded only rarely.
pub(crate) fn from_slice_by_value<T: DeserializeOwned>(
    body: &[u8],
    encoding: Encoding,
) -> Result<T, serde_json::Error> {
    match encoding {
        Encoding::Protobuf => {
            serde_json::from_value(protobuf::decode(body).map_err(as_json_error)?)
        }
        Encoding::Json => serde_json::from_slice(body),
    }
}

/// Encodes an object in protobuf. Returns `None` if the kind has no protobuf encoding, or if the
/// object has a field without a known protobuf encoding, such as a field of a newer Kubernetes. The
/// caller then sends JSON, so that no field is lost.
pub(crate) fn to_protobuf<T: Serialize>(kind: &Kind, object: &T) -> Option<Vec<u8>> {
    if !is_built_in(kind) {
        return None;
    }
    protobuf::to_vec(object).ok()
}

/// Decodes an event of a watch.
pub(crate) fn event<K: DeserializeOwned>(
    frame: &[u8],
    encoding: Encoding,
) -> Result<WatchEvent<K>, serde_json::Error> {
    if encoding == Encoding::Json {
        return serde_json::from_slice(frame);
    }
    let event = WatchEventParts::read(frame).map_err(as_json_error)?;
    let object = event.object;
    let event = match event.type_ {
        "ADDED" => protobuf::from_slice(object).map(WatchEvent::Added),
        "MODIFIED" => protobuf::from_slice(object).map(WatchEvent::Modified),
        "DELETED" => protobuf::from_slice(object).map(WatchEvent::Deleted),
        "BOOKMARK" => {
            return from_slice_by_value(object, encoding).map(WatchEvent::Bookmark);
        }
        "ERROR" => return from_slice_by_value(object, encoding).map(WatchEvent::Error),
        other => {
            let message = format!("an event of a watch has the unknown type {other:?}");
            return Err(<serde_json::Error as serde::de::Error>::custom(message));
        }
    };
    event.map_err(as_json_error)
}

/// Converts a protobuf decoding error into a JSON error, so that all decoding errors have the same
/// type.
fn as_json_error(error: ProtobufError) -> serde_json::Error {
    <serde_json::Error as serde::de::Error>::custom(crate::one_line(&error))
}

#[cfg(test)]
mod tests;
