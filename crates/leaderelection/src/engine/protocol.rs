//! Requests and responses of the election protocol.

/// Content of a Lease; client-go's `LeaderElectionRecord`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeaseRecord {
    /// Identity of the holder; empty if the Lease was released.
    pub(crate) holder: String,
    /// Duration of the Lease in seconds.
    pub(crate) lease_seconds: u32,
    /// Time of the acquisition in microseconds since 1970, by the holder's wall clock.
    pub(crate) acquire_time: i64,
    /// Time of the last renewal in microseconds since 1970, by the holder's wall clock.
    pub(crate) renew_time: i64,
    /// Number of changes of the holder.
    pub(crate) transitions: u32,
}

/// Record, with the `resourceVersion` of the Lease at the read or write of the record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredRecord {
    pub(crate) record: LeaseRecord,
    pub(crate) version: String,
}

/// Request for the Lease. At most one request is in flight; a new request replaces the previous
/// one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LeaseRequest {
    /// Reads the Lease.
    Get,
    /// Creates the Lease with a record.
    Create(LeaseRecord),
    /// Replaces the record of the Lease if its `resourceVersion` still is the given one.
    Update(LeaseRecord, String),
}

/// Result of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LeaseResponse {
    /// The read succeeded; `None` if the Lease does not exist.
    Read(Option<StoredRecord>),
    /// The write succeeded.
    Written(StoredRecord),
    /// The write had no effect: the Lease has changed, exists already, or was deleted.
    Conflict,
    /// The request timed out or was rejected. A write may have succeeded.
    Failed,
}
