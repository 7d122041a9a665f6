//! What can go wrong in the cache.

use opkit_client::{Kind, ObjectKey};

/// An object that does not fit its Rust type. It is an error of that one object: the watch goes on,
/// and the next version of the object is tried again.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {} {key} as the Rust type of its kind", kind.kind)]
#[non_exhaustive]
pub struct DecodeError {
    /// The kind.
    pub kind: Kind,
    /// The object.
    pub key: ObjectKey,
    /// Where it does not fit.
    #[source]
    pub cause: serde_json::Error,
}

/// Informers that did not get their first list.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SyncError {
    /// The time was up.
    #[error("the cache has no complete list of {} after {seconds} s{}", kind.kind, last(last_error))]
    Timeout {
        /// The kind that is missing.
        kind: Box<Kind>,
        /// How long was waited.
        seconds: u64,
        /// What went wrong last, if anything did.
        last_error: Option<String>,
    },
}

fn last(error: &Option<String>) -> String {
    error
        .as_ref()
        .map(|error| format!(": {error}"))
        .unwrap_or_default()
}
