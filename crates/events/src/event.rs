//! An event, its type, a reference to its object, and the length limits of the API.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use opkit_client::{Kind, Object, ObjectKey};

// Maximum lengths of event fields in bytes. The API server rejects events with longer fields.

/// Maximum length of `reportingController`.
pub(crate) const CONTROLLER_MAX_BYTES: usize = 63;
/// Maximum length of `reportingInstance`.
pub(crate) const INSTANCE_MAX_BYTES: usize = 128;
/// Maximum length of `reason`.
pub(crate) const REASON_MAX_BYTES: usize = 128;
/// Maximum length of `note`.
pub(crate) const NOTE_MAX_BYTES: usize = 1024;
/// Maximum length of the part of an event's name that is the name of its object. The whole name has
/// at most 253 bytes and ends with the time of the event.
const OBJECT_NAME_MAX_BYTES: usize = 200;

/// Type of an event, as in its `type` field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// Something expected happened.
    Normal,
    /// Something happened that needs attention.
    Warning,
}

impl EventType {
    /// Returns the value of the event's `type` field.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// API in which events are created. Events of both APIs appear in every list of events. The APIs
/// differ in the fields for repeated events and in the permission that an operator needs.
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
    /// `events.k8s.io/v1`, whose field `series` counts repeated events. If the server does not have
    /// `events.k8s.io`, events are created in `core/v1`.
    #[default]
    EventsV1,
    /// `core/v1`, whose fields `count`, `firstTimestamp` and `lastTimestamp` describe repeated
    /// events, for tools that read these fields.
    CoreV1,
}

/// Reference to the object that an event is about. An event holds a reference instead of the object
/// so that it does not keep the object in memory.
///
/// # Examples
/// ```
/// # mod opkit { pub use opkit_events as events; }
/// use k8s_openapi::api::core::v1::Node;
/// use opkit::events::ObjectReference;
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
    /// UID of the object; empty if the UID is not known.
    pub uid: String,
    /// Resource version of the object at the time of the event, if it is known.
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
pub(crate) struct RecordedEvent {
    pub(crate) about: ObjectReference,
    pub(crate) event_type: EventType,
    pub(crate) reason: String,
    pub(crate) note: String,
    pub(crate) at: Timestamp,
}

/// Returns a name for an event, from the name of its object and the time. Characters that are not
/// valid in the name of an event, such as the colons in names of roles, are replaced with dashes.
pub(crate) fn new_name(event: &RecordedEvent) -> String {
    let object = truncate(&event.about.key.name, OBJECT_NAME_MAX_BYTES);
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

/// Reports whether a name is a valid DNS subdomain, as the names of most objects are.
fn is_subdomain(name: &str) -> bool {
    let is_end = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.split('.').map(str::as_bytes).all(|label| {
        label.iter().all(|byte| is_end(byte) || *byte == b'-')
            && label.first().is_some_and(is_end)
            && label.last().is_some_and(is_end)
    })
}

/// Returns `text`, truncated at a character boundary to at most `max_bytes` bytes.
pub(crate) fn truncate(text: &str, max_bytes: usize) -> &str {
    let ends = (0..=max_bytes.min(text.len())).rev();
    ends.filter_map(|end| text.get(..end)).next().unwrap_or("")
}
