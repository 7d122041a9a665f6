//! Reading and writing objects in the two forms that Kubernetes has.
//!
//! Built-in kinds are asked for and sent in protobuf, which the server reads and writes several
//! times faster; all others are JSON. A server may always answer in JSON.

use kube::core::WatchEvent;
use opkit_apimachinery::protobuf::{self, MessageType, ProtobufError, WatchEventParts};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Call, Encoding, Kind, Page, RequestError};

/// The `Accept` header for objects of a kind.
pub(crate) fn accept(kind: &Kind) -> &'static str {
    if is_built_in(kind) {
        "application/vnd.kubernetes.protobuf,application/json"
    } else {
        "application/json"
    }
}

/// Whether the protobuf table has the kind.
pub(crate) fn is_built_in(kind: &Kind) -> bool {
    MessageType::of(&kind.api_version(), &kind.kind).is_some()
}

/// Reads an answer.
pub(crate) fn decode<T: DeserializeOwned>(call: Box<Call>, page: &Page) -> Result<T, RequestError> {
    let object = match page.encoding {
        Encoding::Protobuf => protobuf::from_slice(&page.body).map_err(as_json_error),
        Encoding::Json => serde_json::from_slice(&page.body),
    };
    object.map_err(|cause| RequestError::Decode { call, cause })
}

/// Writes an object in protobuf, if its kind has that form. What the table does not know, such as a
/// field of a newer Kubernetes, is sent in JSON rather than lost.
pub(crate) fn to_protobuf<T: Serialize>(kind: &Kind, object: &T) -> Option<Vec<u8>> {
    if !is_built_in(kind) {
        return None;
    }
    protobuf::to_vec(object).ok()
}

/// Reads an event of a watch.
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
        "BOOKMARK" => protobuf::from_slice(object).map(WatchEvent::Bookmark),
        "ERROR" => protobuf::from_slice(object).map(WatchEvent::Error),
        other => {
            let message = format!("an event of a watch has the unknown type {other:?}");
            return Err(<serde_json::Error as serde::de::Error>::custom(message));
        }
    };
    event.map_err(as_json_error)
}

/// The one type that stands for "cannot be read" in errors is serde_json's.
fn as_json_error(error: ProtobufError) -> serde_json::Error {
    <serde_json::Error as serde::de::Error>::custom(crate::one_line(&error))
}

#[cfg(test)]
mod tests;
