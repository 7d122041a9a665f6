//! Interface between a reflector, which reads a collection, and the sink that stores the objects.

use std::time::Duration;

use opkit_client::Kind;

use crate::reflector::Counters;

/// Bytes of one object as received from the server.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Raw<'a> {
    /// A JSON object.
    Json(&'a [u8]),
    /// A protobuf message of the kind, without the envelope that Kubernetes adds.
    Protobuf(&'a [u8]),
}

/// Receiver of the objects that a reflector reads. All methods are called in order from one task,
/// and none of them blocks.
///
/// A list consists of `begin_list`, any number of `listed`, and `end_list`. During a streaming
/// list, `deleted` may be called as well: that object is then neither listed nor stored. After an
/// interrupted list, `begin_list` is called again. All other methods are called only between lists.
pub(crate) trait Sink: Send + 'static {
    /// Returns the kind of the objects.
    fn kind(&self) -> &Kind;

    /// Starts a list: the first one, or another one after a gap in the watch. Objects of an
    /// interrupted list stay stored; only a complete list deletes objects. Returns whether the list
    /// has to be a quorum read. That is the case if a list at the last seen version could be older
    /// than writes of this process that reads already show.
    fn begin_list(&mut self) -> bool;

    /// Stores one object of the list. An object that does not match its Rust type is stored as
    /// unreadable, without an error.
    ///
    /// # Errors
    /// If not even the object's name can be read. The sink is then unchanged.
    fn listed(&mut self, object: Raw<'_>) -> Result<(), HeadError>;

    /// Completes the list, whose version is `resource_version`. Objects that were not listed since
    /// `begin_list` are deleted. If the cluster was restored from a backup, the version can be
    /// lower than earlier ones; the list replaces the stored state in this case too.
    fn end_list(&mut self, resource_version: &str);

    /// Stores an object that was added or changed. Returns the resourceVersion of the object.
    ///
    /// # Errors
    /// Same as [`listed`](Sink::listed).
    fn changed(&mut self, object: Raw<'_>) -> Result<Option<String>, HeadError>;

    /// Removes a deleted object, given in its last state. Returns the resourceVersion of the
    /// deletion.
    ///
    /// # Errors
    /// Same as [`listed`](Sink::listed).
    fn deleted(&mut self, object: Raw<'_>) -> Result<Option<String>, HeadError>;

    /// Records that all events up to `resource_version` have been delivered.
    fn bookmark(&mut self, resource_version: &str);

    /// Sets the last error of the reflector; `None` after a success.
    fn set_last_error(&mut self, error: Option<String>);

    /// Sets the counters of the reflector. `now` is the time since the start of the reflector.
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
