//! One event of a watch, taken apart: what happened, and the bytes of the object it happened to,
//! which whoever keeps the object reads.

use kube::core::Status;
use serde::Deserialize;
use serde_json::value::RawValue;

/// What one event of a watch says. Objects are still bytes.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
pub(crate) enum WatchEvent<'a> {
    Added(&'a [u8]),
    Modified(&'a [u8]),
    Deleted(&'a [u8]),
    Bookmark(&'a [u8]),
    Error(&'a [u8]),
}

/// What a bookmark says.
#[derive(Debug, PartialEq, Eq, Default)]
pub(crate) struct Bookmark {
    pub(crate) resource_version: String,
    /// Whether it says that a streaming list is complete.
    pub(crate) ends_list: bool,
}

#[derive(Deserialize)]
struct Line<'a> {
    r#type: Type,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "UPPERCASE")]
enum Type {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
}

type Make = for<'a> fn(&'a [u8]) -> WatchEvent<'a>;

/// How Go writes the begin of an event. With it the object need not be looked through to find where
/// it ends: whoever reads it does that.
const BEGINS: [(&[u8], Make); 3] = [
    (br#"{"type":"MODIFIED","object":"#, |object| {
        WatchEvent::Modified(object)
    }),
    (br#"{"type":"ADDED","object":"#, |object| {
        WatchEvent::Added(object)
    }),
    (br#"{"type":"DELETED","object":"#, |object| {
        WatchEvent::Deleted(object)
    }),
];

impl<'a> WatchEvent<'a> {
    /// Reads one line of a watch.
    pub(crate) fn from_json(line: &'a [u8]) -> Result<Self, serde_json::Error> {
        for (begin, make) in BEGINS {
            if let Some(object) = line.strip_prefix(begin)
                && let Some(object) = object.strip_suffix(b"}")
            {
                return Ok(make(object));
            }
        }
        let line: Line<'a> = serde_json::from_slice(line)?;
        let object = line.object.get().as_bytes();
        Ok(match line.r#type {
            Type::Added => WatchEvent::Added(object),
            Type::Modified => WatchEvent::Modified(object),
            Type::Deleted => WatchEvent::Deleted(object),
            Type::Bookmark => WatchEvent::Bookmark(object),
            Type::Error => WatchEvent::Error(object),
        })
    }
}

impl Bookmark {
    /// Reads the object of a bookmark.
    pub(crate) fn from_json(object: &[u8]) -> Result<Self, serde_json::Error> {
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

        let Object { metadata } = serde_json::from_slice(object)?;
        let end = metadata.annotations.unwrap_or_default().initial_events_end;
        Ok(Bookmark {
            resource_version: metadata.resource_version,
            ends_list: end == "true",
        })
    }
}

/// Reads the object of an error.
pub(crate) fn status_from_json(object: &[u8]) -> Result<Status, serde_json::Error> {
    serde_json::from_slice(object)
}

#[cfg(test)]
mod tests;
