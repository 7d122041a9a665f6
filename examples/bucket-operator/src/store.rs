//! What the operator knows of an object store: a small trait, so that tests, and this example, need
//! no real one.

mod memory;

use std::{future::Future, pin::Pin, time::Duration};

pub use memory::MemoryStore;

/// What a call to the store answers, in time.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// An object store, as far as the operator needs it. Every call may be repeated.
pub trait ObjectStore: Send + Sync + 'static {
    /// Makes the bucket, or brings it to these settings, and answers what that took.
    fn put<'a>(&'a self, name: &'a str, settings: Settings) -> Answer<'a, Put>;

    /// Deletes the bucket of this owner. The store empties it first, which takes its time.
    fn delete<'a>(&'a self, name: &'a str, owner: &'a str) -> Answer<'a, Deletion>;

    /// Waits for the next call of the store's web hook, and answers the owner of the bucket that
    /// somebody changed.
    fn changed(&self) -> Answer<'_, String>;
}

/// How a bucket shall be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Whose it is, as `namespace/name`. The store keeps it as a tag: two operators, or two
    /// objects, never fight for a bucket.
    pub owner: String,
    /// Whether former versions of objects are kept.
    pub versioning: bool,
    /// How much may be in it.
    pub quota_gib: i32,
}

/// What a [`put`](ObjectStore::put) had to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Put {
    /// There was none.
    Created,
    /// Its settings differed.
    Updated,
    /// It was as it shall be.
    Unchanged,
}

/// How far a deletion is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deletion {
    /// There is no such bucket of this owner any more.
    Done,
    /// It is being emptied.
    Pending,
}

/// Why the store did not do it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// It has too much to do.
    #[error("the store asks to come back in {0:?}")]
    Throttled(Duration),
    /// No bucket can have this name.
    #[error("{0:?} is no name for a bucket: 3 to 63 letters, digits and dashes")]
    InvalidName(String),
    /// The bucket is another's.
    #[error("the bucket {name} belongs to {owner}")]
    Taken {
        /// The bucket.
        name: String,
        /// Whose it is.
        owner: String,
    },
    /// Anything else.
    #[error("the store is not available")]
    Unavailable,
}

impl StoreError {
    /// The reason for a condition or an event.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Throttled(_) => "Throttled",
            Self::InvalidName(_) => "InvalidName",
            Self::Taken { .. } => "NameTaken",
            Self::Unavailable => "StoreUnavailable",
        }
    }
}
