//! Watches, and the streaming lists with which watches can start.

use std::time::Duration;

use bytes::Bytes;
use kube::core::Status;
use opkit_client::{Encoding, one_line};

use super::super::failure::{Class, Failure};
use super::{Action, Engine, Input, State};
use crate::sink::{HeadError, Sink};
use crate::watch_event::{Bookmark, EventError, EventKind, WatchEvent};

/// Shortest duration of a watch, as in client-go. The longest duration is twice as long.
const TIMEOUT_MIN: Duration = Duration::from_secs(5 * 60);
/// Time after the requested duration of a watch within which the server has to end the watch.
pub(crate) const END_GRACE: Duration = Duration::from_secs(30);
/// Longest time without an event. Bookmarks arrive every minute, so a connection that is silent for
/// longer is considered half-open.
const SILENCE_MAX: Duration = Duration::from_secs(3 * 60);
/// Longest time without an event during a streaming list.
const SILENCE_IN_LIST_MAX: Duration = Duration::from_secs(30);
/// Shortest duration of a regular watch. A watch that ends sooner, without an event, counts as a
/// failure.
const SHORT_WATCH: Duration = Duration::from_secs(1);
/// Time for which internal server errors are retried before the kind is listed again.
const INTERNAL_MAX: Duration = Duration::from_secs(60);
/// Number of successive incomplete streaming lists after which the server is considered not to
/// support streaming lists.
const INCOMPLETE_MAX: u32 = 2;
/// Number of successive broken streaming lists after which a paged list is tried. Unlike a
/// streaming list, a paged list can be resumed.
const BROKEN_MAX: u32 = 3;

/// Watch that was requested or is open.
#[derive(Debug)]
pub(super) struct Watching {
    /// Time of the request.
    requested: Duration,
    /// Time at which the server should have ended the watch.
    deadline: Duration,
    events: u64,
    accepted: bool,
    encoding: Encoding,
    /// Whether the watch started without a resourceVersion and has delivered only ADDED events so
    /// far. These events are in no order, so the watch cannot be resumed from any of their
    /// versions.
    unordered: bool,
}

/// Result of delivering an event to the sink.
enum Delivery {
    /// An object changed; with the type of the event and the resourceVersion of the object.
    Changed(EventKind, Option<String>),
    Bookmark(Bookmark),
    Failed(Failure),
    /// The event is not valid, or deletes an object without a name.
    Invalid(String),
    /// The object has no name.
    Unreadable(HeadError),
}

impl Watching {
    pub(super) fn new(now: Duration, timeout: Duration, unordered: bool) -> Self {
        Self {
            requested: now,
            deadline: now.saturating_add(timeout).saturating_add(END_GRACE),
            events: 0,
            accepted: false,
            encoding: Encoding::Json,
            unordered,
        }
    }

    fn read(&self, now: Duration, silence_max: Duration) -> Action {
        let left = self.deadline.saturating_sub(now);
        Action::Read {
            timeout: silence_max.min(left),
        }
    }
}

impl Engine {
    pub(super) fn begin_watch(&mut self, send_initial_events: bool) -> Action {
        self.counters.watching_since = None;
        Action::Watch {
            resource_version: match send_initial_events {
                true => self.list_version(),
                false => self.version.clone(),
            },
            send_initial_events,
            timeout: TIMEOUT_MIN.mul_f64(1.0 + self.random.unit()),
        }
    }

    fn watch_accepted(&mut self, now: Duration, watching: &mut Watching, encoding: Encoding) {
        watching.accepted = true;
        watching.encoding = encoding;
        self.counters.watches = self.counters.watches.saturating_add(1);
        self.counters.watching_since = Some(now);
        self.counters.last_received = Some(now);
    }

    fn count_event(&mut self, now: Duration, watching: &mut Watching) {
        watching.events = watching.events.saturating_add(1);
        self.counters.events = self.counters.events.saturating_add(1);
        self.counters.last_received = Some(now);
    }

    /// Processes an input during a streaming list.
    pub(super) fn stream(
        &mut self,
        now: Duration,
        mut watching: Watching,
        input: Input,
        sink: &mut dyn Sink,
    ) -> Action {
        let event = match input {
            Input::Accepted(encoding) => {
                self.watch_accepted(now, &mut watching, encoding);
                return self.continue_stream(now, watching);
            }
            Input::Event(event) => event,
            Input::Failed(failure) => return self.stream_failed(now, &watching, failure, sink),
            Input::Silent => {
                self.stream_incomplete();
                self.in_pages = true;
                return self.proceed(now, State::Unlisted, sink);
            }
            Input::Ended | Input::Continue | Input::Page(_) => {
                self.stream_incomplete();
                let reason = "the server ended the watch before the list was complete";
                return self.pause(now, State::Unlisted, reason, sink);
            }
        };
        self.count_event(now, &mut watching);
        match deliver(&event, watching.encoding, true, sink) {
            Delivery::Changed(..) => self.has_delivered = true,
            Delivery::Bookmark(bookmark) if bookmark.ends_list => {
                self.end_list(bookmark.resource_version, sink);
                watching.unordered = false;
                let action = watching.read(now, SILENCE_MAX);
                self.state = State::Watching(watching);
                return action;
            }
            // A server that supports streaming lists sends no other bookmark before that one.
            Delivery::Bookmark(_) => {
                self.streams = false;
                return self.proceed(now, State::Unlisted, sink);
            }
            Delivery::Failed(failure) => return self.stream_failed(now, &watching, failure, sink),
            Delivery::Invalid(reason) => return self.stream_invalid(now, &watching, &reason, sink),
            Delivery::Unreadable(error) => self.unreadable(&error, sink),
        }
        self.continue_stream(now, watching)
    }

    fn continue_stream(&mut self, now: Duration, watching: Watching) -> Action {
        let action = watching.read(now, SILENCE_IN_LIST_MAX);
        self.state = State::Streaming(watching);
        action
    }

    fn stream_incomplete(&mut self) {
        self.incomplete = self.incomplete.saturating_add(1);
        if self.incomplete >= INCOMPLETE_MAX {
            self.streams = false;
        }
    }

    fn stream_invalid(
        &mut self,
        now: Duration,
        watching: &Watching,
        reason: &str,
        sink: &mut dyn Sink,
    ) -> Action {
        if watching.encoding == Encoding::Protobuf {
            self.protobuf = false;
            return self.proceed(now, State::Unlisted, sink);
        }
        self.in_pages = true;
        self.pause(now, State::Unlisted, reason, sink)
    }

    fn stream_failed(
        &mut self,
        now: Duration,
        watching: &Watching,
        failure: Failure,
        sink: &mut dyn Sink,
    ) -> Action {
        match failure.class() {
            Class::Expired if !self.list_version().is_empty() => self.needs_quorum = true,
            Class::Encoding if self.protobuf => self.protobuf = false,
            Class::Refused => self.streams = false,
            // With permission to list but not to watch, at least the list is read.
            Class::Other if failure.code == Some(403) => self.in_pages = true,
            _ => {
                if watching.accepted {
                    self.broken = self.broken.saturating_add(1);
                    self.in_pages = self.broken >= BROKEN_MAX;
                }
                return self.pause(now, State::Unlisted, &failure.message, sink);
            }
        }
        self.proceed(now, State::Unlisted, sink)
    }

    /// Processes an input during a watch.
    pub(super) fn watch(
        &mut self,
        now: Duration,
        mut watching: Watching,
        input: Input,
        sink: &mut dyn Sink,
    ) -> Action {
        let event = match input {
            Input::Accepted(encoding) => {
                self.watch_accepted(now, &mut watching, encoding);
                sink.set_last_error(None);
                return self.continue_watch(now, watching);
            }
            Input::Event(event) => event,
            Input::Failed(failure) => return self.watch_failed(now, failure, sink),
            Input::Ended if watching.events == 0 && is_short(now, &watching) => {
                let reason = "the server ended the watch at once";
                return self.pause(now, State::Unwatched, reason, sink);
            }
            Input::Ended | Input::Silent | Input::Continue | Input::Page(_) => {
                sink.set_last_error(None);
                return self.proceed(now, State::Unwatched, sink);
            }
        };
        self.count_event(now, &mut watching);
        let version = match deliver(&event, watching.encoding, false, sink) {
            Delivery::Changed(kind, version) => {
                watching.unordered &= kind == EventKind::Added;
                version
            }
            Delivery::Bookmark(bookmark) => {
                watching.unordered = false;
                if self.is_behind(&bookmark.resource_version) {
                    return self.relist_restored(now, sink);
                }
                sink.bookmark(&bookmark.resource_version);
                Some(bookmark.resource_version)
            }
            Delivery::Failed(failure) => return self.watch_failed(now, failure, sink),
            Delivery::Invalid(reason) => {
                if watching.encoding == Encoding::Protobuf {
                    self.protobuf = false;
                }
                return self.relist(now, &reason, sink);
            }
            Delivery::Unreadable(error) => {
                self.unreadable(&error, sink);
                None
            }
        };
        if let Some(version) = version
            && !watching.unordered
        {
            if self.is_behind(&version) {
                return self.relist_restored(now, sink);
            }
            self.internal_since = None;
            self.version = version;
        }
        self.continue_watch(now, watching)
    }

    fn continue_watch(&mut self, now: Duration, watching: Watching) -> Action {
        let action = watching.read(now, SILENCE_MAX);
        self.state = State::Watching(watching);
        action
    }

    /// Reports whether a resourceVersion is lower than the last one seen. Versions are compared as
    /// numbers (KEP-5504); a version that is not a number is never lower.
    fn is_behind(&self, version: &str) -> bool {
        match (version.parse::<u64>(), self.version.parse::<u64>()) {
            (Ok(version), Ok(seen)) => version < seen,
            _ => false,
        }
    }

    /// Lists again with a quorum read, because the resourceVersions decreased. That happens only if
    /// the cluster was restored from a backup; the cached state from after the backup is then
    /// wrong.
    fn relist_restored(&mut self, now: Duration, sink: &mut dyn Sink) -> Action {
        self.needs_quorum = true;
        self.relist(now, "the server's resourceVersion decreased", sink)
    }

    fn watch_failed(&mut self, now: Duration, failure: Failure, sink: &mut dyn Sink) -> Action {
        match failure.class() {
            Class::Expired if failure.too_large => {
                self.needs_quorum = true;
                self.relist(now, &failure.message, sink)
            }
            Class::Expired | Class::Refused => self.relist(now, &failure.message, sink),
            Class::Encoding if self.protobuf => {
                self.protobuf = false;
                self.proceed(now, State::Unwatched, sink)
            }
            Class::Internal => {
                let since = *self.internal_since.get_or_insert(now);
                if now.saturating_sub(since) > INTERNAL_MAX {
                    self.internal_since = None;
                    return self.relist(now, &failure.message, sink);
                }
                self.pause(now, State::Unwatched, &failure.message, sink)
            }
            Class::Retry | Class::Encoding | Class::Other => {
                self.pause(now, State::Unwatched, &failure.message, sink)
            }
        }
    }
}

fn is_short(now: Duration, watching: &Watching) -> bool {
    now.saturating_sub(watching.requested) < SHORT_WATCH
}

/// Delivers an event to the sink, as part of a list or after it.
fn deliver(event: &Bytes, encoding: Encoding, in_list: bool, sink: &mut dyn Sink) -> Delivery {
    try_deliver(event, encoding, in_list, sink)
        .unwrap_or_else(|error| Delivery::Invalid(one_line(&error)))
}

fn try_deliver(
    event: &Bytes,
    encoding: Encoding,
    in_list: bool,
    sink: &mut dyn Sink,
) -> Result<Delivery, EventError> {
    let event = WatchEvent::read(event, encoding)?;
    Ok(match event.kind {
        EventKind::Added | EventKind::Modified if in_list => match sink.listed(event.raw()?) {
            Ok(()) => Delivery::Changed(event.kind, None),
            Err(error) => Delivery::Unreadable(error),
        },
        EventKind::Added | EventKind::Modified => match sink.changed(event.raw()?) {
            Ok(version) => Delivery::Changed(event.kind, version),
            Err(error) => Delivery::Unreadable(error),
        },
        EventKind::Deleted => match sink.deleted(event.raw()?) {
            Ok(version) => Delivery::Changed(event.kind, version),
            Err(error) => Delivery::Invalid(one_line(&error)),
        },
        EventKind::Bookmark => Delivery::Bookmark(event.bookmark()?),
        EventKind::Error => Delivery::Failed(in_stream(&event.status()?)),
    })
}

/// Returns the failure that an error event of a watch reports. An error without a code is treated
/// as an expired resourceVersion.
fn in_stream(status: &Status) -> Failure {
    let mut failure = Failure::of_status(status);
    if status.code == 0 {
        failure.code = Some(410);
    }
    failure
}
