//! The handle that events are recorded with. Recording never waits: a full queue drops the event
//! and counts it.

use jiff::Timestamp;
use opkit_client::{Object, RestClient};
use tokio::sync::mpsc;

use crate::event::{NOTE, REASON, Recorded, cut};
use crate::{EventMetrics, EventPoster, EventType, ObjectReference, Reporter};

/// How many events may wait to be posted; client-go's figure.
const WAITING: usize = 1000;

/// Records Kubernetes Events about any object; a reconcile has `Context::event` for its own.
/// Cloning gives another handle.
///
/// # Examples
/// ```
/// # use opkit_events as opkit;
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
    metrics: EventMetrics,
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
        let about = ObjectReference::of(object);
        self.record(about, event_type, reason.into(), note.into());
    }

    /// Records an event about the object that `about` names. Never waits, as
    /// [`event`](EventRecorder::event).
    pub fn record(
        &self,
        about: ObjectReference,
        event_type: EventType,
        reason: String,
        note: String,
    ) {
        let event = Recorded {
            about,
            event_type,
            reason: cut(&reason, REASON).to_owned(),
            note: cut(&note, NOTE).to_owned(),
            at: Timestamp::now(),
        };
        if self.sender.try_send(event).is_err() {
            self.metrics.full();
        }
    }
}

/// Creates a recorder, and the poster that posts its events through `client` and has to be
/// [run](EventPoster::run).
///
/// # Examples
/// ```
/// use opkit_client::RestClient;
/// use opkit_events::{EventApi, EventMetrics, EventRecorder, Reporter, event_recorder};
/// use tokio_util::sync::CancellationToken;
///
/// async fn post_events(client: RestClient, stop: CancellationToken) {
///     let reporter = Reporter::new("shop-operator", EventApi::default());
///     let (recorder, poster) = event_recorder(client, reporter, EventMetrics::default());
///     // The recorder goes to those who have something to report.
///     poster.run(stop).await;
///     drop::<EventRecorder>(recorder);
/// }
/// ```
pub fn event_recorder(
    client: RestClient,
    reporter: Reporter,
    metrics: EventMetrics,
) -> (EventRecorder, EventPoster) {
    let (sender, receiver) = mpsc::channel(WAITING);
    let poster = EventPoster::new(client, reporter, receiver, metrics.clone());
    (EventRecorder { sender, metrics }, poster)
}

#[cfg(test)]
mod tests;
