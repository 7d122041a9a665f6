//! Errors of the cache.

use std::sync::Arc;

use opkit_client::{Kind, ObjectKey, RequestError};

/// Error of reading one cached object. Other objects and the watch are not affected, and the next
/// version of the object is decoded again.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ObjectError {
    /// The object does not match its Rust type.
    #[error("cannot read {} {key} as the Rust type of its kind", kind.kind)]
    Unreadable {
        /// Kind of the object.
        kind: Kind,
        /// Key of the object.
        key: ObjectKey,
        /// Deserialization error.
        #[source]
        cause: serde_json::Error,
    },
    /// The body of the object was evicted to keep the memory budget; its metadata is still cached.
    #[error("{} {key} was evicted from the cache by its memory budget: read it with `Lister::fetch`", kind.kind)]
    Evicted {
        /// Kind of the object.
        kind: Kind,
        /// Key of the object.
        key: ObjectKey,
    },
}

/// Error of reading an object from the cache, or from the API if the object was evicted from the
/// cache.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FetchError {
    /// The cached object cannot be decoded.
    #[error(transparent)]
    Object(Arc<ObjectError>),
    /// The request to the API failed.
    #[error(transparent)]
    Request(Box<RequestError>),
    /// The API's response is not an object of the kind.
    #[error("cannot read the API's response for {} {key}", kind.kind)]
    Read {
        /// Kind of the object.
        kind: Box<Kind>,
        /// Key of the object.
        key: ObjectKey,
        /// Parse error of the response.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// Error of a read through a [`CachedClient`](crate::CachedClient).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheReadError {
    /// The kind has no informer.
    #[error(
        "{} is not cached: start its informer, allow live reads, or read it with `CachedClient::live`",
        kind.kind
    )]
    NotCached {
        /// Kind that was read.
        kind: Box<Kind>,
    },
    /// The first list of the kind takes too long.
    #[error(transparent)]
    Sync(#[from] SyncError),
    /// The informer of the kind has stopped, so its objects may be out of date.
    #[error("the cache of {} has stopped", kind.kind)]
    Stopped {
        /// Kind that was read.
        kind: Box<Kind>,
    },
    /// The object cannot be read from the cache or, if the object was evicted, from the API.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// The request to the API failed.
    #[error(transparent)]
    Request(#[from] RequestError),
}

/// Error of waiting for the first list of an informer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SyncError {
    /// The first list was not complete within the timeout.
    #[error("the cache has no complete list of {} after {seconds} s{}", kind.kind, last(last_error))]
    Timeout {
        /// Kind of the informer that is not synced.
        kind: Box<Kind>,
        /// Timeout, in seconds.
        seconds: u64,
        /// Last error of the informer's list or watch requests, if one failed.
        last_error: Option<String>,
    },
}

fn last(error: &Option<String>) -> String {
    error
        .as_ref()
        .map(|error| format!(": {error}"))
        .unwrap_or_default()
}
