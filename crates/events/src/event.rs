//! An event: its type, the object that it is about, and the limits of the API.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use opkit_client::{Kind, Object, ObjectKey};

// How long things may be by the rules of the API, in bytes. What is longer is refused.
pub(crate) const CONTROLLER: usize = 63;
pub(crate) const INSTANCE: usize = 128;
pub(crate) const REASON: usize = 128;
pub(crate) const NOTE: usize = 1024;

/// Whether an event is good news.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// Something that was meant to happen.
    Normal,
    /// Something that somebody should look at.
    Warning,
}

impl EventType {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// In which API events are posted. Both show them to whoever lists events; what differs is how
/// repetitions are written, and which permission posting takes.
///
/// # Examples
/// ```
/// use opkit_events::EventApi;
///
/// assert_eq!(EventApi::default(), EventApi::EventsV1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum EventApi {
    /// `events.k8s.io/v1`, with a `series`; `core/v1` on a server that does not have it.
    #[default]
    EventsV1,
    /// `core/v1`, with `count`, `firstTimestamp` and `lastTimestamp`: for tools that read these.
    CoreV1,
}

/// Reference to the object that an event is about. It has the fields of a reference alone, so that
/// no event keeps an object in memory.
///
/// # Examples
/// ```
/// # use opkit_events as opkit;
/// use k8s_openapi::api::core::v1::Node;
/// use opkit::ObjectReference;
///
/// let mut node = Node::default();
/// node.metadata.name = Some("n1".to_owned());
/// assert_eq!(ObjectReference::of(&node).to_string(), "Node n1");
/// ```
#[derive(Debug, Clone)]
pub struct ObjectReference {
    /// Kind of the object.
    pub kind: Arc<Kind>,
    /// Namespace and name of the object.
    pub key: ObjectKey,
    /// UID of the object; empty if it is not known.
    pub uid: String,
    /// Version of the object that the event is about, if it is known.
    pub resource_version: Option<String>,
}

impl ObjectReference {
    /// Returns a reference to `object`, which was read from the cluster.
    pub fn of<K: Object>(object: &K) -> Self {
        let meta = object.meta();
        Self {
            kind: Arc::new(Kind::of::<K>()),
            key: ObjectKey::of(meta),
            uid: meta.uid.clone().unwrap_or_default(),
            resource_version: meta.resource_version.clone(),
        }
    }
}

impl fmt::Display for ObjectReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.kind, self.key)
    }
}

/// An event that waits to be posted.
#[derive(Debug, Clone)]
pub(crate) struct Recorded {
    pub(crate) about: ObjectReference,
    pub(crate) event_type: EventType,
    pub(crate) reason: String,
    pub(crate) note: String,
    pub(crate) at: Timestamp,
}

/// The name of the object and the time. Not every name of an object may be part of it: those of
/// roles have colons.
pub(crate) fn new_name(event: &Recorded) -> String {
    let object = cut(&event.about.key.name, 200);
    let at = event.at.as_nanosecond();
    if is_subdomain(object) {
        return format!("{object}.{at:x}");
    }
    let object = object.to_ascii_lowercase();
    let words = object.split(|char: char| !char.is_ascii_alphanumeric());
    let mut words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        words.push("event");
    }
    format!("{}.{at:x}", words.join("-"))
}

/// Whether a name is a DNS subdomain, as those of most objects are.
fn is_subdomain(name: &str) -> bool {
    let is_end = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.split('.').map(str::as_bytes).all(|label| {
        label.iter().all(|byte| is_end(byte) || *byte == b'-')
            && label.first().is_some_and(is_end)
            && label.last().is_some_and(is_end)
    })
}

/// The beginning of `text`, of at most `bytes` bytes.
pub(crate) fn cut(text: &str, bytes: usize) -> &str {
    let ends = (0..=bytes.min(text.len())).rev();
    ends.filter_map(|end| text.get(..end)).next().unwrap_or("")
}
