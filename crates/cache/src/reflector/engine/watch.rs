//! Watches, and the streaming lists that they begin with.

use std::time::Duration;

use bytes::Bytes;
use kube::core::Status;
use opkit_client::{Encoding, one_line};

use super::super::failure::{Class, Failure};
use super::{Action, Engine, Input, State};
use crate::sink::{ReadError, Sink};
use crate::watch_event::{Bookmark, EventError, EventKind, WatchEvent};

const TIMEOUT_MIN: Duration = Duration::from_secs(5 * 60);
/// How long the server may take to begin a watch, or to end one that is over.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// How long a watch may be silent: bookmarks come every minute, so the connection is half-open
/// then.
const SILENCE_MAX: Duration = Duration::from_secs(3 * 60);
/// How long a streaming list may be silent before it is complete.
const SILENCE_IN_LIST_MAX: Duration = Duration::from_secs(30);
/// A watch that ends sooner than this without an event counts as a failure.
const SHORT_WATCH: Duration = Duration::from_secs(1);
/// How long a server may fail inside before its answers are taken as "list again".
const INTERNAL_MAX: Duration = Duration::from_secs(60);
/// After so many streaming lists without an end the server is taken to have none.
const UNENDED_MAX: u32 = 2;
/// After so many streaming lists that broke off, one in pages is tried, which can be resumed.
const BROKEN_MAX: u32 = 3;

/// A watch that was asked for or is open.
#[derive(Debug)]
pub(super) struct Watching {
    /// When it was asked for.
    begun: Duration,
    /// When the server should have ended it.
    deadline: Duration,
    events: u64,
    accepted: bool,
    encoding: Encoding,
    /// Whether it began without a version and has told only additions so far: these are in no
    /// order, so the watch could not be resumed from any of their versions.
    unordered: bool,
}

/// An event as it is told to the sink.
enum Told {
    /// Something changed; the version it is of.
    Changed(EventKind, Option<String>),
    Bookmark(Bookmark),
    Failed(Failure),
    /// The event cannot be read, or says that something is gone which has no name.
    Unclear(String),
    /// An object without a name.
    Unreadable(ReadError),
}

impl Watching {
    pub(super) fn new(now: Duration, timeout: Duration, unordered: bool) -> Self {
        Self {
            begun: now,
            deadline: now.saturating_add(timeout).saturating_add(PATIENCE),
            events: 0,
            accepted: false,
            encoding: Encoding::Json,
            unordered,
        }
    }

    fn read(&self, now: Duration, silence_max: Duration) -> Action {
        let left = self.deadline.saturating_sub(now);
        Action::Read {
            patience: silence_max.min(left),
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

    fn begun(&mut self, now: Duration, watching: &mut Watching, encoding: Encoding) {
        watching.accepted = true;
        watching.encoding = encoding;
        self.counters.watches = self.counters.watches.saturating_add(1);
        self.counters.watching_since = Some(now);
        self.counters.heard = Some(now);
    }

    fn heard(&mut self, now: Duration, watching: &mut Watching) {
        watching.events = watching.events.saturating_add(1);
        self.counters.events = self.counters.events.saturating_add(1);
        self.counters.heard = Some(now);
    }

    /// A streaming list is under way.
    pub(super) fn stream(
        &mut self,
        now: Duration,
        mut watching: Watching,
        input: Input,
        sink: &mut dyn Sink,
    ) -> Action {
        let event = match input {
            Input::Begun(encoding) => {
                self.begun(now, &mut watching, encoding);
                return self.stream_on(now, watching);
            }
            Input::Event(event) => event,
            Input::Failed(failure) => return self.stream_failed(now, &watching, failure, sink),
            Input::Silent => {
                self.stream_unended();
                self.in_pages = true;
                return self.go(now, State::Unlisted, sink);
            }
            Input::Ended | Input::Go | Input::Page(_) => {
                self.stream_unended();
                let why = "the server ended the watch before the list was complete";
                return self.pause(now, State::Unlisted, why, sink);
            }
        };
        self.heard(now, &mut watching);
        match tell(&event, watching.encoding, true, sink) {
            Told::Changed(..) => self.told = true,
            Told::Bookmark(bookmark) if bookmark.ends_list => {
                self.end_list(bookmark.resource_version, sink);
                watching.unordered = false;
                let action = watching.read(now, SILENCE_MAX);
                self.state = State::Watching(watching);
                return action;
            }
            // A server that streams lists sends no other bookmark before that one.
            Told::Bookmark(_) => {
                self.streams = false;
                return self.go(now, State::Unlisted, sink);
            }
            Told::Failed(failure) => return self.stream_failed(now, &watching, failure, sink),
            Told::Unclear(why) => return self.stream_unclear(now, &watching, &why, sink),
            Told::Unreadable(error) => self.unreadable(&error, sink),
        }
        self.stream_on(now, watching)
    }

    fn stream_on(&mut self, now: Duration, watching: Watching) -> Action {
        let action = watching.read(now, SILENCE_IN_LIST_MAX);
        self.state = State::Streaming(watching);
        action
    }

    fn stream_unended(&mut self) {
        self.unended = self.unended.saturating_add(1);
        if self.unended >= UNENDED_MAX {
            self.streams = false;
        }
    }

    fn stream_unclear(
        &mut self,
        now: Duration,
        watching: &Watching,
        why: &str,
        sink: &mut dyn Sink,
    ) -> Action {
        if watching.encoding == Encoding::Protobuf {
            self.protobuf = false;
            return self.go(now, State::Unlisted, sink);
        }
        self.in_pages = true;
        self.pause(now, State::Unlisted, why, sink)
    }

    fn stream_failed(
        &mut self,
        now: Duration,
        watching: &Watching,
        failure: Failure,
        sink: &mut dyn Sink,
    ) -> Action {
        match failure.class() {
            Class::Expired if !self.list_version().is_empty() => self.unavailable = true,
            Class::Form if self.protobuf => self.protobuf = false,
            Class::Refused => self.streams = false,
            // Who may list but not watch gets the list at least.
            Class::Other if failure.code == Some(403) => self.in_pages = true,
            _ => {
                if watching.accepted {
                    self.broken = self.broken.saturating_add(1);
                    self.in_pages = self.broken >= BROKEN_MAX;
                }
                return self.pause(now, State::Unlisted, &failure.message, sink);
            }
        }
        self.go(now, State::Unlisted, sink)
    }

    /// A watch is under way.
    pub(super) fn watch(
        &mut self,
        now: Duration,
        mut watching: Watching,
        input: Input,
        sink: &mut dyn Sink,
    ) -> Action {
        let event = match input {
            Input::Begun(encoding) => {
                self.begun(now, &mut watching, encoding);
                sink.set_last_error(None);
                return self.watch_on(now, watching);
            }
            Input::Event(event) => event,
            Input::Failed(failure) => return self.watch_failed(now, failure, sink),
            Input::Ended if watching.events == 0 && is_short(now, &watching) => {
                let why = "the server ended the watch at once";
                return self.pause(now, State::Unwatched, why, sink);
            }
            Input::Ended | Input::Silent | Input::Go | Input::Page(_) => {
                sink.set_last_error(None);
                return self.go(now, State::Unwatched, sink);
            }
        };
        self.heard(now, &mut watching);
        let version = match tell(&event, watching.encoding, false, sink) {
            Told::Changed(kind, version) => {
                watching.unordered &= kind == EventKind::Added;
                version
            }
            Told::Bookmark(bookmark) => {
                watching.unordered = false;
                if self.is_behind(&bookmark.resource_version) {
                    return self.went_back(now, sink);
                }
                sink.bookmark(&bookmark.resource_version);
                Some(bookmark.resource_version)
            }
            Told::Failed(failure) => return self.watch_failed(now, failure, sink),
            Told::Unclear(why) => {
                if watching.encoding == Encoding::Protobuf {
                    self.protobuf = false;
                }
                return self.relist(now, &why, sink);
            }
            Told::Unreadable(error) => {
                self.unreadable(&error, sink);
                None
            }
        };
        if let Some(version) = version
            && !watching.unordered
        {
            if self.is_behind(&version) {
                return self.went_back(now, sink);
            }
            self.internal_since = None;
            self.version = version;
        }
        self.watch_on(now, watching)
    }

    fn watch_on(&mut self, now: Duration, watching: Watching) -> Action {
        let action = watching.read(now, SILENCE_MAX);
        self.state = State::Watching(watching);
        action
    }

    /// Whether a version is lower than the last one seen. Versions are comparable as numbers
    /// (KEP-5504); others are not compared.
    fn is_behind(&self, version: &str) -> bool {
        match (version.parse::<u64>(), self.version.parse::<u64>()) {
            (Ok(version), Ok(seen)) => version < seen,
            _ => false,
        }
    }

    /// Versions only grow, unless the cluster was restored from a backup: then all that is known
    /// of the time after it is wrong.
    fn went_back(&mut self, now: Duration, sink: &mut dyn Sink) -> Action {
        self.unavailable = true;
        self.relist(now, "the versions of the server went back", sink)
    }

    fn watch_failed(&mut self, now: Duration, failure: Failure, sink: &mut dyn Sink) -> Action {
        match failure.class() {
            Class::Expired if failure.too_large => {
                self.unavailable = true;
                self.relist(now, &failure.message, sink)
            }
            Class::Expired | Class::Refused => self.relist(now, &failure.message, sink),
            Class::Form if self.protobuf => {
                self.protobuf = false;
                self.go(now, State::Unwatched, sink)
            }
            Class::Internal => {
                let since = *self.internal_since.get_or_insert(now);
                if now.saturating_sub(since) > INTERNAL_MAX {
                    self.internal_since = None;
                    return self.relist(now, &failure.message, sink);
                }
                self.pause(now, State::Unwatched, &failure.message, sink)
            }
            Class::Later | Class::Form | Class::Other => {
                self.pause(now, State::Unwatched, &failure.message, sink)
            }
        }
    }
}

fn is_short(now: Duration, watching: &Watching) -> bool {
    now.saturating_sub(watching.begun) < SHORT_WATCH
}

/// Tells the sink what an event says, as part of a list or after it.
fn tell(event: &Bytes, encoding: Encoding, in_list: bool, sink: &mut dyn Sink) -> Told {
    read_and_tell(event, encoding, in_list, sink)
        .unwrap_or_else(|error| Told::Unclear(one_line(&error)))
}

fn read_and_tell(
    event: &Bytes,
    encoding: Encoding,
    in_list: bool,
    sink: &mut dyn Sink,
) -> Result<Told, EventError> {
    let event = WatchEvent::read(event, encoding)?;
    Ok(match event.kind {
        EventKind::Added | EventKind::Modified if in_list => match sink.listed(event.raw()?) {
            Ok(()) => Told::Changed(event.kind, None),
            Err(error) => Told::Unreadable(error),
        },
        EventKind::Added | EventKind::Modified => match sink.changed(event.raw()?) {
            Ok(version) => Told::Changed(event.kind, version),
            Err(error) => Told::Unreadable(error),
        },
        EventKind::Deleted => match sink.deleted(event.raw()?) {
            Ok(version) => Told::Changed(event.kind, version),
            Err(error) => Told::Unclear(one_line(&error)),
        },
        EventKind::Bookmark => Told::Bookmark(event.bookmark()?),
        EventKind::Error => Told::Failed(in_stream(&event.status()?)),
    })
}

/// An error that a watch ends with. One without a code makes the version doubtful.
fn in_stream(status: &Status) -> Failure {
    let mut failure = Failure::of_status(status);
    if status.code == 0 {
        failure.code = Some(410);
    }
    failure
}
