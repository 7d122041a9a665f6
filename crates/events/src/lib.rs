//! Kubernetes Events, posted in the background.
//!
//! - An [`EventRecorder`] records events. Recording never waits: if the queue is full, the event is
//!   dropped and counted in [`EventMetrics`].
//! - The correlator aggregates similar events, counts repeated ones and limits the rate for each
//!   object, as client-go's correlator does.
//! - The [`EventPoster`] posts the remaining events in `events.k8s.io/v1` or `core/v1`.
//!
//! The crate does not depend on controllers: an [`ObjectReference`] refers to the object that an
//! event is about.
//!
//! # Examples
//! ```
//! use k8s_openapi::api::core::v1::Node;
//! use opkit_client::RestClient;
//! use opkit_events::{EventApi, EventMetrics, EventType, Reporter, event_recorder};
//! use tokio_util::sync::CancellationToken;
//!
//! async fn report_full_disk(client: RestClient, node: &Node, stop: CancellationToken) {
//!     let reporter = Reporter::new("disk-operator", EventApi::default());
//!     let (recorder, poster) = event_recorder(client, reporter, EventMetrics::default());
//!     recorder.event(node, EventType::Warning, "DiskFull", "no space is left on the disk");
//!     poster.run(stop).await;
//! }
//! ```

mod body;
mod correlator;
mod event;
mod lru;
mod metrics;
mod poster;
mod recorder;
mod reporter;

pub use event::{EventApi, EventType, ObjectReference};
pub use metrics::EventMetrics;
pub use poster::EventPoster;
pub use recorder::{EventRecorder, event_recorder};
pub use reporter::Reporter;
