//! Bytes to objects: pages of a list and lines of a watch, each object decoded by itself, so that
//! one that does not fit its type spoils nothing else.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kube::core::Status;
use opkit_client::ObjectKey;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::DecodeError;
use crate::object::Codec;
use crate::store::{Entry, Version};

/// A page of a list with its objects still undecoded.
#[derive(Deserialize)]
pub(crate) struct Page<'a> {
    #[serde(default)]
    pub(crate) metadata: PageMeta,
    /// Go writes an empty list as null.
    #[serde(borrow, default)]
    pub(crate) items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PageMeta {
    pub(crate) resource_version: Option<String>,
    #[serde(rename = "continue")]
    pub(crate) continue_token: Option<String>,
}

/// What one line of a watch says.
#[derive(Debug)]
pub(crate) enum Step {
    Upsert {
        key: ObjectKey,
        entry: Entry,
        resource_version: Option<String>,
    },
    Remove {
        key: ObjectKey,
        uid: Option<String>,
        resource_version: Option<String>,
    },
    Bookmark {
        resource_version: Option<String>,
    },
    Failed(Box<Status>),
}

#[derive(Deserialize)]
struct Line<'a> {
    r#type: Type,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(rename_all = "UPPERCASE")]
enum Type {
    Added,
    Modified,
    Deleted,
    Bookmark,
    Error,
}

/// The part of any object that says which one it is.
#[derive(Deserialize)]
struct Head {
    metadata: HeadMeta,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct HeadMeta {
    namespace: Option<String>,
    name: String,
    uid: Option<String>,
    resource_version: Option<String>,
}

/// Reads one line of a watch.
pub(crate) fn read_line(codec: &Codec, line: &[u8]) -> Result<Step, serde_json::Error> {
    let line: Line<'_> = serde_json::from_slice(line)?;
    let head = || serde_json::from_str::<Head>(line.object.get()).map(|head| head.metadata);
    Ok(match line.r#type {
        Type::Added | Type::Modified => {
            let (key, entry) = read_object(codec, line.object)?;
            let resource_version = match &entry {
                Entry::Object(object) => object.object_meta().resource_version.clone(),
                Entry::Unreadable { version, .. } => version.resource_version.clone(),
            };
            Step::Upsert {
                key,
                entry,
                resource_version,
            }
        }
        Type::Deleted => {
            let HeadMeta {
                namespace,
                name,
                uid,
                resource_version,
            } = head()?;
            Step::Remove {
                key: ObjectKey { namespace, name },
                uid,
                resource_version,
            }
        }
        Type::Bookmark => Step::Bookmark {
            resource_version: head()?.resource_version,
        },
        Type::Error => Step::Failed(serde_json::from_str(line.object.get())?),
    })
}

/// Reads one object. An error only if not even its name can be read.
pub(crate) fn read_object(
    codec: &Codec,
    raw: &RawValue,
) -> Result<(ObjectKey, Entry), serde_json::Error> {
    // The type is the user's: a panic of its own is an error of this object as well.
    let decode = AssertUnwindSafe(|| (codec.decode)(raw.get().as_bytes()));
    let decoded = catch_unwind(decode)
        .unwrap_or_else(|_| Err(serde::de::Error::custom("its deserializer panicked")));
    match decoded {
        Ok(object) => Ok((ObjectKey::of(object.object_meta()), Entry::Object(object))),
        Err(cause) => {
            let HeadMeta {
                namespace,
                name,
                uid,
                resource_version,
            } = serde_json::from_str::<Head>(raw.get())?.metadata;
            let key = ObjectKey { namespace, name };
            let error = DecodeError {
                kind: codec.kind.clone(),
                key: key.clone(),
                cause,
            };
            let version = Version {
                uid,
                resource_version,
            };
            Ok((
                key,
                Entry::Unreadable {
                    error: Arc::new(error),
                    version,
                    last: None,
                },
            ))
        }
    }
}

#[cfg(test)]
mod tests;
