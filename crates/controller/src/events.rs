//! Kubernetes Events about reconciled objects, posted in the background.
//!
//! Recording never waits: a full queue drops the event and counts it. What is posted of events that
//! repeat each other, or come in crowds, [`correlator`] says; [`poster`] posts, in the API of
//! `events.k8s.io` or in that of `core`, as [`body`] writes them.

mod body;
mod correlator;
mod lru;
mod poster;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use opkit_client::{Kind, Object, ObjectKey, RestClient};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use tokio::sync::mpsc;

use self::poster::EventPoster;
use crate::hostname::hostname;
use crate::owner::Owner;

/// How many events may wait to be posted; client-go's figure.
const WAITING: usize = 1000;

// How long things may be by the rules of the API, in bytes. What is longer is refused.
const CONTROLLER: usize = 63;
const INSTANCE: usize = 128;
const REASON: usize = 128;
const NOTE: usize = 1024;

/// Whether an event is good news.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// Something that was meant to happen.
    Normal,
    /// Something that somebody should look at.
    Warning,
}

impl EventType {
    fn as_str(self) -> &'static str {
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
/// use opkit_controller::{EventApi, ManagerOptions};
///
/// let mut options = ManagerOptions::default();
/// assert_eq!(options.event_api, EventApi::EventsV1);
/// options.event_api = EventApi::CoreV1;
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

/// The object that an event is about: the fields of a reference alone, so that no event keeps an
/// object in memory.
#[derive(Debug, Clone)]
pub(crate) struct Regarding {
    kind: Arc<Kind>,
    key: ObjectKey,
    uid: String,
    resource_version: Option<String>,
}

impl From<&Owner> for Regarding {
    fn from(owner: &Owner) -> Self {
        Self {
            kind: owner.kind.clone(),
            key: owner.key.key().clone(),
            uid: owner.uid().into_owned(),
            resource_version: owner.resource_version().map(Cow::into_owned),
        }
    }
}

impl fmt::Display for Regarding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.kind, self.key)
    }
}

/// An event that waits to be posted.
#[derive(Debug, Clone)]
struct Recorded {
    about: Regarding,
    event_type: EventType,
    reason: String,
    note: String,
    at: Timestamp,
}

/// Who posts.
#[derive(Debug)]
pub(crate) struct Reporter {
    controller: String,
    instance: String,
    api: EventApi,
}

impl Reporter {
    pub(crate) fn new(operator: &str, api: EventApi) -> Self {
        let instance = hostname().unwrap_or_else(|| operator.to_owned());
        // A name that is cut must not end in a dash.
        let controller = cut(operator, CONTROLLER).trim_end_matches(['-', '_', '.']);
        Self {
            controller: controller.to_owned(),
            instance: cut(&instance, INSTANCE).to_owned(),
            api,
        }
    }
}

/// Counts events that were not posted, by reason.
#[derive(Debug, Clone)]
pub(crate) struct Dropped {
    family: Family<[(&'static str, &'static str); 1], Counter>,
}

/// The queue was full; too many about one object; the server refused; the server could not be
/// reached for too long; the process no longer led.
const REASONS: [&str; 5] = ["full", "spam", "refused", "unreachable", "fenced"];

impl Default for Dropped {
    fn default() -> Self {
        let family = Family::default();
        for reason in REASONS {
            let _: &Counter = &family.get_or_create(&[("reason", reason)]);
        }
        Self { family }
    }
}

impl Dropped {
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register(
            "opkit_events_dropped",
            "Events that were not posted, by reason",
            self.family.clone(),
        );
    }

    fn count(&self, reason: &'static str) {
        self.family.get_or_create(&[("reason", reason)]).inc();
    }

    fn full(&self) {
        self.count("full");
    }

    fn spam(&self) {
        self.count("spam");
    }

    fn refused(&self) {
        self.count("refused");
    }

    fn unreachable(&self) {
        self.count("unreachable");
    }

    fn fenced(&self) {
        self.count("fenced");
    }

    fn total(&self) -> u64 {
        let counted = REASONS.map(|reason| self.family.get_or_create(&[("reason", reason)]).get());
        counted.iter().sum()
    }
}

/// Records Kubernetes Events about any object; a reconcile has [`Context::event`] for its own.
/// Cloning gives another handle.
///
/// [`Context::event`]: crate::Context::event
///
/// # Examples
/// ```
/// # use opkit_controller as opkit;
/// use k8s_openapi::api::core::v1::Node;
/// use opkit::{EventRecorder, EventType};
///
/// fn warn(recorder: &EventRecorder, node: &Node) {
///     recorder.event(node, EventType::Warning, "DiskFull", "no space is left on the disk");
/// }
/// ```
#[derive(Debug, Clone)]
pub struct EventRecorder {
    sender: mpsc::Sender<Recorded>,
    dropped: Dropped,
}

impl EventRecorder {
    /// Records an event about `object`, which was read from the cluster. Never waits: events are
    /// posted in the background, and dropped if too many wait.
    pub fn event<K: Object>(
        &self,
        object: &K,
        event_type: EventType,
        reason: impl Into<String>,
        note: impl Into<String>,
    ) {
        let meta = object.meta();
        let about = Regarding {
            kind: Arc::new(Kind::of::<K>()),
            key: ObjectKey::of(meta),
            uid: meta.uid.clone().unwrap_or_default(),
            resource_version: meta.resource_version.clone(),
        };
        self.record(about, event_type, reason.into(), note.into());
    }

    pub(crate) fn record(
        &self,
        about: impl Into<Regarding>,
        event_type: EventType,
        reason: String,
        note: String,
    ) {
        let event = Recorded {
            about: about.into(),
            event_type,
            reason: cut(&reason, REASON).to_owned(),
            note: cut(&note, NOTE).to_owned(),
            at: Timestamp::now(),
        };
        if self.sender.try_send(event).is_err() {
            self.dropped.full();
        }
    }
}

/// A recorder, and what posts for it.
pub(crate) fn recorder(
    client: RestClient,
    reporter: Reporter,
    dropped: Dropped,
) -> (EventRecorder, EventPoster) {
    let (sender, receiver) = mpsc::channel(WAITING);
    let poster = EventPoster::new(client, reporter, receiver, dropped.clone());
    (EventRecorder { sender, dropped }, poster)
}

/// The name of the object and the time. Not every name of an object may be part of it: those of
/// roles have colons.
fn new_name(event: &Recorded) -> String {
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
fn cut(text: &str, bytes: usize) -> &str {
    let ends = (0..=bytes.min(text.len())).rev();
    ends.filter_map(|end| text.get(..end)).next().unwrap_or("")
}

#[cfg(test)]
mod tests;
