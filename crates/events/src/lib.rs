//! Kubernetes Events, posted in the background.
//!
//! An [`EventRecorder`] takes events and never waits: a full queue drops the event and counts it.
//! The `correlator` decides which events repeat others or are too many, as client-go's does; the
//! [`EventPoster`] posts the rest, in the API of `events.k8s.io` or of `core`, with the `body` of
//! that API. This crate does not know controllers: an event is about an [`ObjectReference`].

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
