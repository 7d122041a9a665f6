//! Kubernetes Events about reconciled objects, posted in the background.
//!
//! Recording never waits: a full queue drops the event and counts it. Identical events within six
//! minutes become one event with a series, as client-go's `tools/events` has it: the second is told
//! at once, further ones at most once a minute, so the count of a series may lag behind.

mod series;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use opkit_client::{Kind, ObjectKey, Patch, RequestError, RestClient, one_line};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use self::series::{Next, Repeat, Series};
use crate::owner::Owner;

/// How many events may wait to be posted; client-go's figure.
const WAITING: usize = 1000;
/// The longest note that the API takes, in bytes.
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
            EventType::Normal => "Normal",
            EventType::Warning => "Warning",
        }
    }
}

/// An event that waits to be posted.
#[derive(Debug)]
struct Recorded {
    about: Arc<Owner>,
    event_type: EventType,
    reason: String,
    note: String,
    at: Timestamp,
}

/// Takes events; cloning gives another handle.
#[derive(Debug, Clone)]
pub(crate) struct EventRecorder {
    sender: mpsc::Sender<Recorded>,
    dropped: Arc<AtomicU64>,
}

impl EventRecorder {
    pub(crate) fn record(
        &self,
        about: Arc<Owner>,
        event_type: EventType,
        reason: String,
        note: String,
    ) {
        let event = Recorded {
            about,
            event_type,
            reason,
            note,
            at: Timestamp::now(),
        };
        if self.sender.try_send(event).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Posts what an [`EventRecorder`] takes.
#[derive(Debug)]
pub(crate) struct EventPoster {
    client: RestClient,
    operator: String,
    instance: String,
    receiver: mpsc::Receiver<Recorded>,
    dropped: Arc<AtomicU64>,
    series: Series,
    origin: Instant,
}

/// A recorder, and what posts for it as `operator`.
pub(crate) fn recorder(client: RestClient, operator: String) -> (EventRecorder, EventPoster) {
    let (sender, receiver) = mpsc::channel(WAITING);
    let dropped = Arc::new(AtomicU64::new(0));
    let instance = hostname().unwrap_or_else(|| operator.clone());
    let series = Series::default();
    let origin = Instant::now();
    let poster = EventPoster {
        client,
        operator,
        instance,
        receiver,
        dropped: dropped.clone(),
        series,
        origin,
    };
    (EventRecorder { sender, dropped }, poster)
}

impl EventPoster {
    /// Posts until `stop`, and then what still waits.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        loop {
            tokio::select! {
                biased;
                event = self.receiver.recv() => match event {
                    Some(event) => self.post(event).await,
                    None => break,
                },
                () = stop.cancelled() => break,
            }
        }
        self.receiver.close();
        while let Some(event) = self.receiver.recv().await {
            self.post(event).await;
        }
        let dropped = self.dropped.load(Ordering::Relaxed);
        if dropped > 0 {
            warn!(dropped, "events were dropped because too many waited");
        }
    }

    async fn post(&mut self, event: Recorded) {
        let repeat = Repeat {
            uid: event.about.uid().into_owned(),
            event_type: event.event_type,
            reason: event.reason.clone(),
            note: event.note.clone(),
        };
        let name = new_name(&event);
        let result = match self.series.next(self.origin.elapsed(), repeat, name) {
            Next::Quiet => return,
            Next::New { name } => self.create(&event, &name).await,
            Next::Again { name, count } => match self.again(&event, &name, count).await {
                // The event has expired on the server meanwhile.
                Err(error) if error.is_not_found() => self.create(&event, &name).await,
                result => result,
            },
        };
        if let Err(error) = result {
            // An event about an object in a namespace that goes away cannot be posted.
            debug!(object = %event.about, error = one_line(&error), "event not posted");
        }
    }

    async fn create(&self, event: &Recorded, name: &str) -> Result<(), RequestError> {
        let namespace = namespace_of(event);
        let body = event_body(event, name, namespace, &self.operator, &self.instance);
        self.client
            .create(&event_kind(), Some(namespace), &body, &self.operator)
            .await
            .map(drop)
    }

    async fn again(&self, event: &Recorded, name: &str, count: u64) -> Result<(), RequestError> {
        let series = json!({"series": {"count": count, "lastObservedTime": micro_time(event.at)}});
        let key = ObjectKey::from((namespace_of(event), name));
        let patch = Patch::Merge(&series);
        self.client
            .patch(&event_kind(), &key, None, patch, &self.operator)
            .await
            .map(drop)
    }
}

/// Written as a value, because k8s-openapi's type would tie this room to one Kubernetes version.
fn event_kind() -> Kind {
    Kind {
        group: "events.k8s.io".into(),
        version: "v1".into(),
        kind: "Event".into(),
        plural: "events".into(),
        namespaced: true,
    }
}

/// Events about objects of the cluster scope are in the namespace `default`.
fn namespace_of(event: &Recorded) -> &str {
    event.about.key.namespace.as_deref().unwrap_or("default")
}

fn new_name(event: &Recorded) -> String {
    let object: String = event.about.key.name.chars().take(200).collect();
    format!("{object}.{:x}", event.at.as_nanosecond())
}

fn event_body(
    event: &Recorded,
    name: &str,
    namespace: &str,
    operator: &str,
    instance: &str,
) -> Value {
    let about = &event.about;
    let note = cut(&event.note, NOTE);
    crate::status::without_nulls(json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "eventTime": micro_time(event.at),
        "type": event.event_type.as_str(),
        "reason": event.reason,
        "note": note,
        "action": "Reconcile",
        "reportingController": operator,
        "reportingInstance": instance,
        "regarding": {
            "apiVersion": about.kind.api_version(),
            "kind": about.kind.kind,
            "namespace": about.key.namespace,
            "name": about.key.name,
            "uid": about.uid(),
            "resourceVersion": about.resource_version(),
        },
    }))
}

/// The beginning of `text`, of at most `bytes` bytes.
fn cut(text: &str, bytes: usize) -> &str {
    let ends = (0..=bytes.min(text.len())).rev();
    ends.filter_map(|end| text.get(..end)).next().unwrap_or("")
}

/// Kubernetes' MicroTime has exactly six digits.
fn micro_time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

fn hostname() -> Option<String> {
    let name = std::env::var("HOSTNAME").ok();
    let name = name.or_else(|| std::fs::read_to_string("/proc/sys/kernel/hostname").ok());
    name.map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests;
