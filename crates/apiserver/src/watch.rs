//! Watches: a stream of frames in JSON or protobuf, with the current objects if requested, and then
//! with every event.
//!
//! Each watch reads the history of the store at its own speed. A watch that is so slow that events
//! have been dropped from the history gets the error 410 Expired, as from a real server.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, stream};
use opkit_apimachinery::protobuf::WatchEventParts;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::negotiation::Media;
use crate::object;
use crate::registry::{Filter, Registry, from_storage};
use crate::representation::Representation;
use crate::status::{ApiError, ApiResult};
use crate::store::{Change, Event};
use crate::target::Target;

/// Time between two bookmarks of a watch, as in Kubernetes.
const BOOKMARK_INTERVAL: Duration = Duration::from_secs(60);

/// Maximum duration of a watch that ends without a bookmark. Kubernetes sends the last bookmark two
/// seconds before the end of a watch, so a shorter watch does not get one.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// The parameters of a watch.
#[derive(Debug)]
pub(crate) struct WatchRequest {
    pub(crate) target: Target,
    pub(crate) filter: Filter,
    pub(crate) start: Start,
    /// Whether to send bookmarks.
    pub(crate) bookmarks: bool,
    pub(crate) timeout: Duration,
    pub(crate) representation: Representation,
    pub(crate) media: Media,
}

/// The start of a watch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Start {
    /// Starts with the events after this revision.
    After(u64),
    /// Starts with an event ADDED for each current object. If `end_bookmark` is set, a bookmark
    /// follows these events.
    Present { end_bookmark: bool },
}

/// Returns the frames of a watch as a stream. The stream ends at the timeout of the watch, when the
/// server stops, or after an error frame.
pub(crate) fn frames(
    registry: Arc<Registry>,
    request: WatchRequest,
    stop: CancellationToken,
) -> impl Stream<Item = Bytes> {
    let watcher = Watcher::new(registry, request, stop);
    stream::unfold(watcher, |mut watcher| async move {
        let frame = watcher.next().await?;
        Some((frame, watcher))
    })
}

struct Watcher {
    registry: Arc<Registry>,
    request: WatchRequest,
    stop: CancellationToken,
    changed: watch::Receiver<u64>,
    /// Revision up to which events have been read.
    cursor: u64,
    pending: Vec<Bytes>,
    deadline: Instant,
    next_bookmark: Instant,
    first: bool,
    ended: bool,
}

impl Watcher {
    fn new(registry: Arc<Registry>, request: WatchRequest, stop: CancellationToken) -> Self {
        let now = Instant::now();
        let mut watcher = Self {
            // Subscribed before the first read, so that no event is missed in between.
            changed: registry.store.subscribe(),
            cursor: 0,
            pending: Vec::new(),
            deadline: now + request.timeout,
            next_bookmark: now + BOOKMARK_INTERVAL,
            first: true,
            ended: false,
            registry,
            request,
            stop,
        };
        watcher.begin();
        watcher
    }

    fn begin(&mut self) {
        match self.request.start {
            Start::After(revision) => self.cursor = revision,
            Start::Present { end_bookmark } => {
                match self
                    .registry
                    .list(&self.request.target, &self.request.filter)
                {
                    Ok((objects, revision)) => {
                        self.cursor = revision;
                        for object in objects {
                            self.push("ADDED", &object);
                        }
                    }
                    Err(error) => self.fail(&error),
                }
                if end_bookmark {
                    self.bookmark(json!({"k8s.io/initial-events-end": "true"}));
                }
            }
        }
        // Frames are popped from the end.
        self.pending.reverse();
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(frame) = self.pending.pop() {
                return Some(frame);
            }
            if self.ended || self.stop.is_cancelled() {
                return None;
            }
            self.changed.mark_unchanged();
            self.pull();
            if !self.pending.is_empty() || self.ended {
                continue;
            }
            tokio::select! {
                changed = self.changed.changed() => if changed.is_err() { return None },
                () = self.stop.cancelled() => return None,
                () = tokio::time::sleep_until(self.deadline) => {
                    self.ended = true;

                    if self.request.bookmarks && self.request.timeout > LAST_BOOKMARK {
                        self.bookmark(Value::Null);
                    }
                }
                () = tokio::time::sleep_until(self.next_bookmark), if self.request.bookmarks => {
                    self.next_bookmark = Instant::now() + BOOKMARK_INTERVAL;
                    self.bookmark(Value::Null);
                }
            }
        }
    }

    /// Reads the events since the last call, and adds a frame for each event that the watch
    /// selects.
    fn pull(&mut self) {
        let storage = self.request.target.storage();
        match self.registry.store.events_after(&storage, self.cursor) {
            Ok((events, cursor)) => {
                for event in events {
                    match self.translate(&event) {
                        // An object that stops matching has its last matching state, with the
                        // version of the event.
                        Some("DELETED") if event.change != Change::Deleted => {
                            let mut last = event.previous.as_deref().cloned().unwrap_or_default();
                            let version =
                                object::at(&event.object, &["metadata", "resourceVersion"]);
                            object::set_meta(&mut last, "resourceVersion", version.clone());
                            self.push("DELETED", &last);
                        }
                        Some(type_) => self.push(type_, &event.object),
                        None => {}
                    }
                }
                self.cursor = cursor;
                self.pending.reverse();
            }
            Err(too_old) => {
                let message = format!(
                    "too old resource version: {} ({})",
                    self.cursor, too_old.oldest
                );
                self.fail(&ApiError::expired(message));
            }
        }
    }

    /// Returns the type of an event for this watch, or `None` if the watch does not select the
    /// object. The type is ADDED for an object that starts to match the filter, and DELETED for an
    /// object that stops matching.
    fn translate(&self, event: &Event) -> Option<&'static str> {
        let namespace = self.request.target.namespace.as_str();
        if !namespace.is_empty() && object::namespace(&event.object) != namespace {
            return None;
        }
        let filter = &self.request.filter;
        let was = event
            .previous
            .as_deref()
            .is_some_and(|object| filter.matches(object));
        let is = event.change != Change::Deleted && filter.matches(&event.object);
        match (was, is) {
            (false, false) => None,
            (false, true) => Some("ADDED"),
            (true, true) => Some("MODIFIED"),
            (true, false) => Some("DELETED"),
        }
    }

    fn push(&mut self, type_: &str, stored: &Value) {
        let kind = &self.request.target.kind;
        let object = from_storage(kind, stored);
        let now = self.registry.clock.now();
        let shown = self
            .request
            .representation
            .of_event(kind, object, self.first, now);
        self.first = false;
        self.frame(type_, &shown);
    }

    fn bookmark(&mut self, annotations: Value) {
        let kind = &self.request.target.kind;
        let mut object = json!({
            "kind": kind.kind, "apiVersion": kind.api_version(),
            "metadata": {"resourceVersion": self.cursor.to_string()},
        });
        object::set_meta(&mut object, "annotations", annotations);
        let shown = self.request.representation.of_bookmark(kind, object);
        self.frame("BOOKMARK", &shown);
    }

    fn fail(&mut self, error: &ApiError) {
        self.ended = true;
        self.frame("ERROR", &error.to_status());
    }

    fn frame(&mut self, type_: &str, object: &Value) {
        let frame = match self.request.media {
            Media::Protobuf => match protobuf_frame(type_, object) {
                Ok(frame) => frame,
                // A Status can always be encoded.
                Err(error) if type_ != "ERROR" => return self.fail(&error),
                Err(_) => Bytes::new(),
            },
            Media::Json | Media::Yaml => {
                let mut text = json!({"type": type_, "object": object}).to_string();
                text.push('\n');
                text.into()
            }
        };
        self.pending.push(frame);
    }
}

/// Returns a protobuf frame: the length of the `WatchEvent` in four bytes, followed by the
/// `WatchEvent`. The object in the event has its own protobuf envelope.
fn protobuf_frame(type_: &str, object: &Value) -> ApiResult<Bytes> {
    let object = Media::Protobuf.encode(object)?;
    let event = WatchEventParts {
        type_,
        object: &object,
    };
    let event = event.to_vec();
    let length = u32::try_from(event.len())
        .map_err(|_| ApiError::internal("an event of more than 4 GiB"))?;
    Ok([&length.to_be_bytes(), event.as_slice()].concat().into())
}
