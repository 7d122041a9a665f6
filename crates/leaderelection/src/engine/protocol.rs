//! What is said about the lease, to the server and back.

/// What a Lease says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    /// Who holds it; empty when it was released.
    pub(crate) holder: String,
    pub(crate) lease_seconds: u32,
    /// Microseconds since 1970, as the holder's time of day had it.
    pub(crate) acquire_time: i64,
    pub(crate) renew_time: i64,
    /// How often the holder changed.
    pub(crate) transitions: u32,
}

/// A record, and the resourceVersion at which it was read or written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stored {
    pub(crate) record: Record,
    pub(crate) version: String,
}

/// What is to be sent. At most one request is under way; a new one replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    Get,
    Create(Record),
    /// Replaces the lease, if it still has the version at which the record that this one follows
    /// was seen.
    Update(Record, String),
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    /// What was read; none if there is no lease.
    Read(Option<Stored>),
    /// The write was done.
    Written(Stored),
    /// The write was not done: the lease has changed, exists already, or is gone.
    Conflict,
    /// Nothing is known: no answer in time, or a refusal. A write may have been done.
    Failed,
}
