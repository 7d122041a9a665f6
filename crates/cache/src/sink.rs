//! The seam between a reflector, which reads a collection, and whatever keeps it.

use std::time::Duration;

use opkit_client::Kind;

use crate::reflector::Counters;

/// The bytes of one object as they came.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Raw<'a> {
    /// A JSON object.
    Json(&'a [u8]),
    /// A bare protobuf message of the kind, without its envelope.
    Protobuf(&'a [u8]),
}

/// Where a reflector puts what it reads. All calls come in order from one task, and none blocks.
///
/// A list is `begin_list`, any number of `listed`, `end_list`. Between `begin_list` and `end_list`
/// of a streaming list `deleted` may come as well: the object is then neither listed nor stored. A
/// list that breaks off is followed by another `begin_list`. Other calls come only between lists.
pub(crate) trait Sink: Send + 'static {
    /// What is read.
    fn kind(&self) -> &Kind;

    /// A list begins: the first, or again after a gap. What a list that broke off has told stays;
    /// only a complete list deletes. Returns whether the list has to be a quorum read, because one
    /// as of the last version seen could be older than own writes that reads show already.
    fn begin_list(&mut self) -> bool;

    /// One object of the list. What does not fit its type is kept as such and is no error.
    ///
    /// # Errors
    /// Only if not even the object's name can be read. Nothing is changed then.
    fn listed(&mut self, object: Raw<'_>) -> Result<(), ReadError>;

    /// The list is complete and is of this version: what was not listed since `begin_list` is gone.
    /// The version may be lower than those told before: the cluster was restored, and the list is
    /// the truth.
    fn end_list(&mut self, resource_version: &str);

    /// An object was added or changed. Answers its resourceVersion.
    ///
    /// # Errors
    /// As [`listed`](Sink::listed).
    fn changed(&mut self, object: Raw<'_>) -> Result<Option<String>, ReadError>;

    /// An object was deleted; this is its last state. Answers its resourceVersion.
    ///
    /// # Errors
    /// As [`listed`](Sink::listed).
    fn deleted(&mut self, object: Raw<'_>) -> Result<Option<String>, ReadError>;

    /// All there was up to this version has been told.
    fn bookmark(&mut self, resource_version: &str);

    /// What went wrong last; `None` when all is well again.
    fn set_last_error(&mut self, error: Option<String>);

    /// What the reflector has done so far, `now` after it began.
    fn set_counters(&mut self, now: Duration, counters: &Counters);
}

/// An object whose name cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ReadError {
    /// It is not JSON, or has no name.
    #[error("cannot read the name of an object from its JSON")]
    Json(#[source] serde_json::Error),
}
