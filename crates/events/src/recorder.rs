//! The handle that records events. Recording never waits: if the queue is full, the event is
//! dropped and counted.

use jiff::Timestamp;
use opkit_client::{Object, RestClient};
use tokio::sync::mpsc;

use crate::event::{NOTE_MAX_BYTES, REASON_MAX_BYTES, RecordedEvent, truncate};
use crate::{EventMetrics, EventPoster, EventType, ObjectReference, Reporter};

/// Maximum number of events that wait to be posted; client-go's value.
const QUEUE_CAPACITY: usize = 1000;

/// Recorder of Kubernetes Events about any object. In a reconcile, `Context::event` records events
/// about the reconciled object. A clone is another handle to the same queue.
///
/// # Examples
/// ```
/// # mod opkit { pub use opkit_events as events; }
/// use k8s_openapi::api::core::v1::Node;
/// use opkit::events::{EventRecorder, EventType};
///
/// fn warn(recorder: &EventRecorder, node: &Node) {
///     recorder.event(node, EventType::Warning, "DiskFull", "no space is left on the disk");
/// }
/// ```
#[derive(Debug, Clone)]
pub struct EventRecorder {
    sender: mpsc::Sender<RecordedEvent>,
    metrics: EventMetrics,
}

impl EventRecorder {
    /// Records an event about `object`, which must have been read from the cluster. Never waits:
    /// events are posted in the background, and an event is dropped if the queue is full.
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

    /// Records an event about the object that `about` refers to. Never waits; see
    /// [`event`](EventRecorder::event).
    pub fn record(
        &self,
        about: ObjectReference,
        event_type: EventType,
        reason: String,
        note: String,
    ) {
        let event = RecordedEvent {
            about,
            event_type,
            reason: truncate(&reason, REASON_MAX_BYTES).to_owned(),
            note: truncate(&note, NOTE_MAX_BYTES).to_owned(),
            at: Timestamp::now(),
        };
        if self.sender.try_send(event).is_err() {
            self.metrics.full();
        }
    }
}

/// Creates a recorder, and the poster that sends the recorded events through `client`. The poster
/// posts nothing until [`EventPoster::run`] is called.
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
///     // Clones of the recorder go to the tasks that record events.
///     poster.run(stop).await;
///     drop::<EventRecorder>(recorder);
/// }
/// ```
pub fn event_recorder(
    client: RestClient,
    reporter: Reporter,
    metrics: EventMetrics,
) -> (EventRecorder, EventPoster) {
    let (sender, receiver) = mpsc::channel(QUEUE_CAPACITY);
    let poster = EventPoster::new(client, reporter, receiver, metrics.clone());
    (EventRecorder { sender, metrics }, poster)
}

#[cfg(test)]
mod tests;
