//! One event of a watch, taken apart: what happened, and the bytes of the object it happened to,
//! which whoever keeps the object reads.

use kube::core::Status;
use opkit_apimachinery::protobuf::{self, ProtobufError, WatchEventParts};
use opkit_client::Encoding;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::sink::Raw;

/// What one event of a watch says. The object is still bytes.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) struct WatchEvent<'a> {
    pub(crate) kind: EventKind,
    /// As protobuf, with its envelope.
    object: &'a [u8],
    encoding: Encoding,
}

/// What happened.
#[derive(Debug, PartialEq, Eq, Clone, Copy, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum EventKind {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
}

/// What a bookmark says.
#[derive(Debug, PartialEq, Eq, Default)]
pub(crate) struct Bookmark {
    pub(crate) resource_version: String,
    /// Whether it says that a streaming list is complete.
    pub(crate) ends_list: bool,
}

/// An event that is none.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EventError {
    /// In JSON.
    #[error("an event of the watch cannot be read")]
    Json(#[source] serde_json::Error),
    /// In protobuf.
    #[error("an event of the watch cannot be read")]
    Protobuf(#[source] ProtobufError),
    /// Of a kind that nobody knows.
    #[error("{kind:?} is no kind of event")]
    Kind { kind: String },
}

#[derive(Deserialize)]
struct Line<'a> {
    r#type: EventKind,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// How Go writes the begin of an event. With it the object need not be looked through to find where
/// it ends: whoever reads it does that.
const BEGINS: [(&[u8], EventKind); 3] = [
    (br#"{"type":"MODIFIED","object":"#, EventKind::Modified),
    (br#"{"type":"ADDED","object":"#, EventKind::Added),
    (br#"{"type":"DELETED","object":"#, EventKind::Deleted),
];

impl<'a> WatchEvent<'a> {
    /// Reads one line or one frame of a watch.
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
        for (begin, kind) in BEGINS {
            if let Some(object) = line.strip_prefix(begin)
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

    /// The object, for whoever keeps it.
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

    /// What a bookmark says.
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

        let Object { metadata } = self.object()?;
        let end = metadata.annotations.unwrap_or_default().initial_events_end;
        Ok(Bookmark {
            resource_version: metadata.resource_version,
            ends_list: end == "true",
        })
    }

    /// What an error says.
    pub(crate) fn status(&self) -> Result<Status, EventError> {
        self.object()
    }

    fn object<T: Deserialize<'a>>(&self) -> Result<T, EventError> {
        match self.encoding {
            Encoding::Protobuf => protobuf::from_slice(self.object).map_err(EventError::Protobuf),
            _ => serde_json::from_slice(self.object).map_err(EventError::Json),
        }
    }
}

#[cfg(test)]
mod tests;
