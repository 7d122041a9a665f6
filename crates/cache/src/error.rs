//! What can go wrong in the cache.

use std::sync::Arc;

use opkit_client::{Kind, ObjectKey, RequestError};

/// Why a cached object cannot be had. It is an error of that one object: the watch goes on, and the
/// next version of the object is tried again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// It does not fit its Rust type.
    #[error("cannot read {} {key} as the Rust type of its kind", kind.kind)]
    Unreadable {
        /// The kind.
        kind: Kind,
        /// The object.
        key: ObjectKey,
        /// Where it does not fit.
        #[source]
        cause: serde_json::Error,
    },
    /// Its body has given way to the memory budget; its metadata is still there.
    #[error("{} {key} is not in memory, for its cache has a budget: `Lister::fetch` reads it", kind.kind)]
    Evicted {
        /// The kind.
        kind: Kind,
        /// The object.
        key: ObjectKey,
    },
}

/// Why an object can neither be had from the cache nor from the API.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The cache has it and cannot give it.
    #[error(transparent)]
    Object(Arc<ObjectError>),
    /// The API does not give it.
    #[error(transparent)]
    Request(Box<RequestError>),
    /// The API's answer is not an object.
    #[error("cannot read the answer for {} {key}", kind.kind)]
    Read {
        /// The kind.
        kind: Box<Kind>,
        /// The object.
        key: ObjectKey,
        /// Why.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Why a [`CachedClient`](crate::CachedClient) does not answer a read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The kind has no informer.
    #[error(
        "{} is not cached: start its informer, allow live reads, or read it with `CachedClient::live`",
        kind.kind
    )]
    NotCached {
        /// The kind.
        kind: Box<Kind>,
    },
    /// The object cannot be had.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The API does not answer.
    #[error(transparent)]
    Request(#[from] RequestError),
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
