//! One event of a watch: its type, and the bytes of its object. The sink decodes the object.

use kube::core::Status;
use opkit_apimachinery::protobuf::{self, ProtobufError, WatchEventParts};
use opkit_client::Encoding;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::sink::Raw;

/// Watch event whose object is not decoded.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) struct WatchEvent<'a> {
    pub(crate) kind: EventKind,
    /// Bytes of the object. In protobuf, the bytes include the envelope that Kubernetes adds.
    object: &'a [u8],
    encoding: Encoding,
}

/// Type of a watch event.
#[derive(Debug, PartialEq, Eq, Clone, Copy, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum EventKind {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
}

/// Content of a bookmark event.
#[derive(Debug, PartialEq, Eq, Default)]
pub(crate) struct Bookmark {
    pub(crate) resource_version: String,
    /// Whether the bookmark marks the end of a streaming list.
    pub(crate) ends_list: bool,
}

/// Error of parsing a watch event.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EventError {
    /// The event is not valid JSON.
    #[error("cannot parse a watch event as JSON")]
    Json(#[source] serde_json::Error),
    /// The event is not valid protobuf.
    #[error("cannot parse a watch event as protobuf")]
    Protobuf(#[source] ProtobufError),
    /// The event has an unknown type.
    #[error("{kind:?} is not a valid watch event type")]
    Kind { kind: String },
}

#[derive(Deserialize)]
struct Line<'a> {
    r#type: EventKind,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// Starts of events as Go writes them, with the types of the events. The end of an object after
/// such a start is found by the decoder of the object, without a separate scan.
const PREFIXES: [(&[u8], EventKind); 3] = [
    (br#"{"type":"MODIFIED","object":"#, EventKind::Modified),
    (br#"{"type":"ADDED","object":"#, EventKind::Added),
    (br#"{"type":"DELETED","object":"#, EventKind::Deleted),
];

impl<'a> WatchEvent<'a> {
    /// Parses one line (JSON) or one frame (protobuf) of a watch.
    pub(crate) fn read(bytes: &'a [u8], encoding: Encoding) -> Result<Self, EventError> {
        match encoding {
            Encoding::Protobuf => Self::from_frame(bytes),
            _ => Self::from_line(bytes).map_err(EventError::Json),
        }
    }

    fn from_line(line: &'a [u8]) -> Result<Self, serde_json::Error> {
        let event = |kind, object| WatchEvent {
            kind,
            object,
            encoding: Encoding::Json,
        };
        for (prefix, kind) in PREFIXES {
            if let Some(object) = line.strip_prefix(prefix)
                && let Some(object) = object.strip_suffix(b"}")
            {
                return Ok(event(kind, object));
            }
        }
        let line: Line<'a> = serde_json::from_slice(line)?;
        Ok(event(line.r#type, line.object.get().as_bytes()))
    }

    fn from_frame(frame: &'a [u8]) -> Result<Self, EventError> {
        let parts = WatchEventParts::read(frame).map_err(EventError::Protobuf)?;
        let kind = match parts.type_ {
            "ADDED" => EventKind::Added,
            "MODIFIED" => EventKind::Modified,
            "DELETED" => EventKind::Deleted,
            "BOOKMARK" => EventKind::Bookmark,
            "ERROR" => EventKind::Error,
            kind => {
                let kind = kind.to_owned();
                return Err(EventError::Kind { kind });
            }
        };
        Ok(WatchEvent {
            kind,
            object: parts.object,
            encoding: Encoding::Protobuf,
        })
    }

    /// Returns the bytes of the object, for the sink.
    pub(crate) fn raw(&self) -> Result<Raw<'a>, EventError> {
        if self.encoding != Encoding::Protobuf {
            return Ok(Raw::Json(self.object));
        }
        let envelope = protobuf::envelope(self.object).map_err(EventError::Protobuf)?;
        Ok(match envelope.is_protobuf() {
            true => Raw::Protobuf(envelope.raw),
            false => Raw::Json(envelope.raw),
        })
    }

    /// Decodes the object of a bookmark event.
    pub(crate) fn bookmark(&self) -> Result<Bookmark, EventError> {
        #[derive(Deserialize)]
        struct Object {
            metadata: Meta,
        }

        #[derive(Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        struct Meta {
            resource_version: String,
            annotations: Option<Annotations>,
        }

        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Annotations {
            #[serde(rename = "k8s.io/initial-events-end")]
            initial_events_end: String,
        }

        let Object { metadata } = self.decode()?;
        let end = metadata.annotations.unwrap_or_default().initial_events_end;
        Ok(Bookmark {
            resource_version: metadata.resource_version,
            ends_list: end == "true",
        })
    }

    /// Decodes the object of an error event.
    pub(crate) fn status(&self) -> Result<Status, EventError> {
        self.decode()
    }

    /// Decodes the object. Converts protobuf into a JSON value first: bookmarks and errors are
    /// rare, and the protobuf decoder is not compiled for their types.
    fn decode<T: DeserializeOwned>(&self) -> Result<T, EventError> {
        match self.encoding {
            Encoding::Protobuf => {
                let object = protobuf::decode(self.object).map_err(EventError::Protobuf)?;
                serde_json::from_value(object).map_err(EventError::Json)
            }
            _ => serde_json::from_slice(self.object).map_err(EventError::Json),
        }
    }
}

#[cfg(test)]
mod tests;
