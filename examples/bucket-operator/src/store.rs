//! Interface of the object store: a small trait, so that tests, and this example, need no real one.

mod memory;

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

pub use memory::MemoryStore;

/// Future result of a call to the store.
pub type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Object store, limited to the calls that the operator needs. Every call is idempotent.
pub trait ObjectStore: Send + Sync + 'static {
    /// Creates the bucket, or updates its settings, and returns which of both was necessary.
    fn put<'a>(&'a self, name: &'a str, settings: Settings) -> StoreFuture<'a, Put>;

    /// Deletes the bucket of this owner. The store empties it first, which takes several calls.
    fn delete<'a>(&'a self, name: &'a str, owner: &'a str) -> StoreFuture<'a, Deletion>;

    /// Waits for the next call of the store's web hook, and returns the owner of the bucket that
    /// was changed.
    fn changed(&self) -> StoreFuture<'_, String>;
}

/// Settings of a bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Owner of the bucket, as `namespace/name`. The store keeps it as a tag, so that two
    /// operators, or two objects, never write the same bucket.
    pub owner: String,
    /// Whether previous versions of objects are kept.
    pub versioning: bool,
    /// Maximum size of the bucket's content, in GiB.
    pub quota_gib: i32,
}

/// Effect of a [`put`](ObjectStore::put).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// The bucket did not exist and was created.
    Created,
    /// The settings differed and were updated.
    Updated,
    /// The settings were already as requested.
    Unchanged,
}

/// Progress of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// The owner has no such bucket any more.
    Done,
    /// The bucket is being emptied.
    Pending,
}

/// Error of a call to the store.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The store is overloaded.
    #[error("the store is overloaded, retry in {0:?}")]
    Throttled(Duration),
    /// The name is not valid for a bucket.
    #[error("{0:?} is not a valid bucket name: use 3 to 63 letters, digits and dashes")]
    InvalidName(String),
    /// The bucket belongs to another owner.
    #[error("the bucket {name} belongs to {owner}")]
    Taken {
        /// Name of the bucket.
        name: String,
        /// Owner of the bucket.
        owner: String,
    },
    /// Any other failure.
    #[error("the store is not available")]
    Unavailable,
}

impl StoreError {
    /// Returns the reason for a condition or an event.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Throttled(_) => "Throttled",
            Self::InvalidName(_) => "InvalidName",
            Self::Taken { .. } => "NameTaken",
            Self::Unavailable => "StoreUnavailable",
        }
    }
}
