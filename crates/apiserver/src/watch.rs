//! Watches: a stream of frames in JSON or protobuf, with the current objects if requested, and then
//! with every event.
//!
//! Each watch reads the history of the store at its own speed. A watch that is so slow that events
//! have been dropped from the history gets the error 410 Expired, as from a real server.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{Stream, stream};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::negotiation::Media;
use crate::object;
use crate::registry::{Filter, Registry};
use crate::representation::Representation;
use crate::status::ApiError;
use crate::store::{Change, Event, Stored};
use crate::target::Target;
use crate::view::View;

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
    /// Warnings for the headers of the response.
    pub(crate) warnings: Vec<String>,
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
    view: View,
    stop: CancellationToken,
    /// Changes after every write to the watched resource.
    changed: watch::Receiver<u64>,
    /// Revision up to which events have been read.
    cursor: u64,
    pending: VecDeque<Pending>,
    deadline: Instant,
    next_bookmark: Instant,
    first: bool,
    ended: bool,
}

/// A frame that has not been sent yet.
enum Pending {
    /// An event of this type. The frame is encoded when it is sent.
    Event(&'static str, Arc<Stored>),
    Frame(Bytes),
}

impl Watcher {
    fn new(registry: Arc<Registry>, request: WatchRequest, stop: CancellationToken) -> Self {
        let now = Instant::now();
        let kind = &request.target.kind;
        let mut watcher = Self {
            view: View::new(&registry, kind, request.representation, request.media),
            // Subscribed before the first read, so that no event is missed in between.
            changed: registry.store.subscribe_to(&request.target.storage()),
            cursor: 0,
            pending: VecDeque::new(),
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
                let WatchRequest { target, filter, .. } = &self.request;
                let (objects, revision) = self.registry.list(target, filter);
                self.cursor = revision;
                let added = objects.into_iter();
                self.pending
                    .extend(added.map(|object| Pending::Event("ADDED", object)));
                if end_bookmark {
                    self.bookmark(json!({"k8s.io/initial-events-end": "true"}));
                }
            }
        }
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(pending) = self.pending.pop_front() {
                return Some(self.encode(pending).await);
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
                    if self.request.bookmarks && self.request.timeout > LAST_BOOKMARK {
                        self.bookmark_at_present();
                    }
                    self.ended = true;
                }
                () = tokio::time::sleep_until(self.next_bookmark), if self.request.bookmarks => {
                    self.next_bookmark = Instant::now() + BOOKMARK_INTERVAL;
                    self.bookmark_at_present();
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
                    let object = match self.translate(&event) {
                        // An object that stops matching has its last matching state, with the
                        // version of the event.
                        Some("DELETED") if event.change != Change::Deleted => {
                            let last = event.previous.as_ref().unwrap_or(&event.object);
                            Some(("DELETED", Arc::new(last.at_revision(event.revision))))
                        }
                        Some(type_) => Some((type_, event.object)),
                        None => None,
                    };
                    let pending = object.map(|(type_, object)| Pending::Event(type_, object));
                    self.pending.extend(pending);
                }
                self.cursor = cursor;
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
        if !namespace.is_empty() && event.object.namespace() != namespace {
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

    /// Adds a bookmark with the current revision, after the events up to this revision.
    fn bookmark_at_present(&mut self) {
        // The watch is not notified of writes to other resources, which also change the revision.
        self.pull();
        if !self.ended {
            self.bookmark(Value::Null);
        }
    }

    fn bookmark(&mut self, annotations: Value) {
        let kind = &self.request.target.kind;
        let mut object = json!({
            "kind": kind.kind, "apiVersion": kind.api_version(),
            "metadata": {"resourceVersion": self.cursor.to_string()},
        });
        object::set_meta(&mut object, "annotations", annotations);
        match self.view.bookmark_frame(object) {
            Ok(frame) => self.pending.push_back(Pending::Frame(frame)),
            Err(error) => self.fail(&error),
        }
    }

    /// Ends the watch with a frame that has the error.
    fn fail(&mut self, error: &ApiError) {
        self.ended = true;
        self.pending.clear();
        let frame = self.error_frame(error);
        self.pending.push_back(Pending::Frame(frame));
    }

    fn error_frame(&self, error: &ApiError) -> Bytes {
        let frame = self.view.value_frame("ERROR", &error.to_status());
        // A Status can always be encoded.
        frame.unwrap_or_default()
    }

    async fn encode(&mut self, pending: Pending) -> Bytes {
        let (type_, object) = match pending {
            Pending::Frame(frame) => return frame,
            Pending::Event(type_, object) => (type_, object),
        };
        let is_first = std::mem::take(&mut self.first);
        let kind = &self.request.target.kind;
        let readable = self.registry.readable(kind, object).await;
        let frame = readable.and_then(|object| self.view.frame(type_, &object, is_first));
        frame.unwrap_or_else(|error| {
            self.ended = true;
            self.pending.clear();
            self.error_frame(&error)
        })
    }
}
