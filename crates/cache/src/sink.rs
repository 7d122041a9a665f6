//! Interface between a reflector, which reads a collection, and the sink that stores it.

use std::time::Duration;

use opkit_client::Kind;

use crate::reflector::Counters;

/// Bytes of one object as received.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Raw<'a> {
    /// A JSON object.
    Json(&'a [u8]),
    /// A bare protobuf message of the kind, without its envelope.
    Protobuf(&'a [u8]),
}

/// Receiver of the objects that a reflector reads. All calls are made in order from one task, and
/// none blocks.
///
/// A list is `begin_list`, any number of `listed`, `end_list`. During a streaming list, `deleted`
/// may be called as well: that object is then neither listed nor stored. After an interrupted list,
/// `begin_list` is called again. All other calls are made only between lists.
pub(crate) trait Sink: Send + 'static {
    /// Returns the kind that is read.
    fn kind(&self) -> &Kind;

    /// Starts a list: the first one, or another one after a gap in the watch. Objects of an
    /// interrupted list stay stored; only a complete list deletes. Returns whether the list has to
    /// be a quorum read, because a list at the last seen version could be older than own writes
    /// that reads already show.
    fn begin_list(&mut self) -> bool;

    /// Stores one object of the list. An object that does not match its Rust type is stored as
    /// unreadable, without an error.
    ///
    /// # Errors
    /// If not even the object's name can be read. The sink is unchanged then.
    fn listed(&mut self, object: Raw<'_>) -> Result<(), HeadError>;

    /// Completes the list at this version: objects that were not listed since `begin_list` are
    /// deleted. The version can be lower than earlier ones if the cluster was restored from a
    /// backup; the list replaces the state then as well.
    fn end_list(&mut self, resource_version: &str);

    /// Stores an object that was added or changed. Returns its resourceVersion.
    ///
    /// # Errors
    /// Same as [`listed`](Sink::listed).
    fn changed(&mut self, object: Raw<'_>) -> Result<Option<String>, HeadError>;

    /// Removes a deleted object, given in its last state. Returns its resourceVersion.
    ///
    /// # Errors
    /// Same as [`listed`](Sink::listed).
    fn deleted(&mut self, object: Raw<'_>) -> Result<Option<String>, HeadError>;

    /// Records that all events up to this version have been delivered.
    fn bookmark(&mut self, resource_version: &str);

    /// Sets the last error; `None` after a success.
    fn set_last_error(&mut self, error: Option<String>);

    /// Sets the counters of the reflector; `now` is the time since its start.
    fn set_counters(&mut self, now: Duration, counters: &Counters);
}

/// Error of an object whose name cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum HeadError {
    /// The object is not valid JSON, or has no name.
    #[error("cannot read the name of an object from its JSON")]
    Json(#[source] serde_json::Error),
}
