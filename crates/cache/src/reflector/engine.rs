//! State machine of a reflector: processes what was received and returns what to do next. The state
//! machine has no clock and does no I/O; [`ReflectorLoop`](super::ReflectorLoop) calls the source
//! and waits.
//!
//! The rules follow client-go (`tools/cache/reflector.go`). A list is streamed by the watch that
//! continues after it. A server that does not support streaming lists is listed in pages from then
//! on. A watch lasts a random 5 to 10 minutes and is resumed from the last resourceVersion seen;
//! bookmarks keep that version current. An expired version leads to a new list. Failures, and lists
//! that make no progress, are retried after a backoff with jitter. Unlike in client-go, the first
//! list is always a quorum read, and an interrupted paged list continues where it stopped.

mod list;
mod watch;

use std::time::Duration;

use bytes::Bytes;
use opkit_client::Encoding;
use opkit_random::Random;
use tracing::{debug, warn};

use self::list::Paging;
use self::watch::Watching;
use super::failure::Failure;
use super::page::{Page, Reader};
use crate::backoff::Backoff;
use crate::sink::{HeadError, Sink};

/// Number of objects per page of a list, as in client-go.
pub(crate) const PAGE: u32 = 500;

/// Input of the engine.
#[derive(Debug)]
pub(crate) enum Input {
    /// Start, or continue after [`Action::Sleep`] or [`Action::Yield`].
    Continue,
    /// Response to the request of [`Action::List`].
    Page(Page),
    /// The server has accepted the request of [`Action::Watch`], and sends this encoding.
    Accepted(Encoding),
    /// Event of the watch.
    Event(Bytes),
    /// The server has ended the watch.
    Ended,
    /// The watch delivered nothing within the timeout of [`Action::Read`].
    Silent,
    /// The request failed, or the connection broke.
    Failed(Failure),
}

/// Action that the engine requests. Every action except [`Action::Read`] closes the watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Request a page of a list.
    List {
        limit: u32,
        continue_token: Option<String>,
        resource_version: String,
    },
    /// Start a watch.
    Watch {
        resource_version: String,
        send_initial_events: bool,
        timeout: Duration,
    },
    /// Wait for the next event of the watch, at most for `timeout`.
    Read { timeout: Duration },
    /// Wait for this time.
    Sleep(Duration),
    /// Yield to other tasks.
    Yield,
}

/// Counters of a reflector, for metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Number of complete lists.
    pub(crate) lists: u64,
    /// Number of watch events, including bookmarks and initial events.
    pub(crate) events: u64,
    /// Number of watches that the server accepted.
    pub(crate) watches: u64,
    /// Number of objects whose name could not be read.
    pub(crate) unreadable: u64,
    /// Number of failed requests and watches.
    pub(crate) failures: u64,
    /// Start of the open watch.
    pub(crate) watching_since: Option<Duration>,
    /// Time of the last event or response.
    pub(crate) last_received: Option<Duration>,
}

#[derive(Debug)]
pub(crate) struct Engine {
    random: Random,
    backoff: Backoff,
    page_size: u32,
    /// Whether the server supports streaming lists; assumed until the server shows otherwise.
    streams: bool,
    /// Whether the next list is paged although the server may support streaming lists.
    in_pages: bool,
    /// Number of successive streaming lists that ended, or stopped sending, before they were
    /// complete.
    incomplete: u32,
    /// Number of successive streaming lists whose connection broke.
    broken: u32,
    /// Whether to request protobuf.
    protobuf: bool,
    /// Last resourceVersion seen; empty before the first list.
    version: String,
    /// Whether the next list must be a quorum read, because the server cannot list at the last
    /// version, or because a list at that version may be too old.
    needs_quorum: bool,
    /// Whether the list in progress has delivered objects. If the list is interrupted, these
    /// objects stay stored. The next list must not be older, so it is then a quorum read.
    has_delivered: bool,
    /// resourceVersion of the last complete list.
    listed_version: String,
    /// Whether the watch before the last relist did not advance beyond the version of its list.
    fruitless: bool,
    /// Time of the first internal server error in the current series of failed watch requests.
    internal_since: Option<Duration>,
    state: State,
    counters: Counters,
}

#[derive(Debug)]
enum State {
    /// The collection has to be listed next.
    Unlisted,
    /// A page was requested, or will be requested again.
    Paging(Paging),
    /// A page is being read.
    Reading(Paging, Reader),
    /// A streaming list is in progress.
    Streaming(Watching),
    /// A watch has to be started next.
    Unwatched,
    /// A watch is in progress.
    Watching(Watching),
}

impl Engine {
    pub(crate) fn new(random: Random, page_size: u32, protobuf: bool) -> Self {
        Self {
            random,
            backoff: Backoff::default(),
            page_size,
            streams: true,
            in_pages: false,
            incomplete: 0,
            broken: 0,
            protobuf,
            version: String::new(),
            needs_quorum: false,
            has_delivered: false,
            listed_version: String::new(),
            fruitless: false,
            internal_since: None,
            state: State::Unlisted,
            counters: Counters::default(),
        }
    }

    /// Lists in pages only, for a source that has no streaming lists.
    pub(crate) fn without_streaming_lists(self) -> Self {
        Self {
            streams: false,
            ..self
        }
    }

    /// Reports whether requests should ask for protobuf.
    pub(crate) fn protobuf(&self) -> bool {
        self.protobuf
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns the last resourceVersion seen.
    #[cfg(test)]
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Processes the input received at `now`, writes the received objects into `sink`, and returns
    /// what to do next.
    pub(crate) fn step(&mut self, now: Duration, input: Input, sink: &mut dyn Sink) -> Action {
        match (std::mem::replace(&mut self.state, State::Unlisted), input) {
            (state, Input::Continue) => self.proceed(now, state, sink),
            (State::Paging(paging), Input::Page(page)) => {
                self.counters.last_received = Some(now);
                self.begin_page(now, paging, page, sink)
            }
            (State::Paging(paging), Input::Failed(failure)) => {
                self.list_failed(now, paging, failure, sink)
            }
            (State::Streaming(watching), input) => self.stream(now, watching, input, sink),
            (State::Watching(watching), input) => self.watch(now, watching, input, sink),
            (state, input) => {
                debug_assert!(false, "{input:?} in {state:?}");
                self.pause(
                    now,
                    State::Unlisted,
                    "received an input that was not requested",
                    sink,
                )
            }
        }
    }

    fn proceed(&mut self, now: Duration, state: State, sink: &mut dyn Sink) -> Action {
        match state {
            State::Unlisted if self.streams && !self.in_pages => {
                self.begin_list(sink);
                let action = self.begin_watch(true);
                let Action::Watch { timeout, .. } = &action else {
                    return action;
                };
                self.state = State::Streaming(Watching::new(now, *timeout, false));
                action
            }
            State::Unlisted => self.request_page(Paging::new(self.page_size), sink),
            State::Paging(paging) => self.request_page(paging, sink),
            State::Reading(paging, reader) => self.read(now, paging, reader, sink),
            State::Unwatched | State::Streaming(_) | State::Watching(_) => {
                let action = self.begin_watch(false);
                if let Action::Watch { timeout, .. } = &action {
                    // Such a watch starts with synthetic ADDED events, in any order.
                    let unordered = self.version.is_empty() || self.version == "0";
                    self.state = State::Watching(Watching::new(now, *timeout, unordered));
                }
                action
            }
        }
    }

    fn begin_list(&mut self, sink: &mut dyn Sink) {
        self.needs_quorum |= std::mem::take(&mut self.has_delivered);
        self.needs_quorum |= sink.begin_list();
    }

    /// Returns the resourceVersion to request for the next list; empty for a quorum read.
    fn list_version(&self) -> String {
        match self.needs_quorum {
            true => String::new(),
            false => self.version.clone(),
        }
    }

    /// Completes the list in progress, whose resourceVersion is `version`.
    fn end_list(&mut self, version: String, sink: &mut dyn Sink) {
        sink.end_list(&version);
        sink.set_last_error(None);
        self.listed_version = version.clone();
        self.version = version;
        self.needs_quorum = false;
        self.has_delivered = false;
        self.in_pages = false;
        self.incomplete = 0;
        self.broken = 0;
        self.counters.lists = self.counters.lists.saturating_add(1);
    }

    /// Lists again, because the watch cannot continue from its resourceVersion.
    fn relist(&mut self, now: Duration, reason: &str, sink: &mut dyn Sink) -> Action {
        // One list solves an expired version. If the watch makes no progress after the list,
        // waiting prevents a loop of lists.
        let again = self.fruitless;
        self.fruitless = self.version == self.listed_version;
        if again && self.fruitless {
            return self.pause(now, State::Unlisted, reason, sink);
        }
        debug!(kind = %sink.kind(), reason, "the watch cannot continue; listing again");
        self.proceed(now, State::Unlisted, sink)
    }

    /// Waits after a failure, then continues from `state`.
    fn pause(&mut self, now: Duration, state: State, reason: &str, sink: &mut dyn Sink) -> Action {
        let what = match &state {
            State::Unwatched => "watch failed; retrying after a delay",
            _ => "list failed; retrying after a delay",
        };
        self.state = state;
        let delay = self.backoff.failed(now, self.random.unit());
        // The first failure is logged at debug level: the code that starts an informer waits for
        // its first list and reports the error.
        if self.listed_version.is_empty() && self.counters.failures == 0 {
            debug!(kind = %sink.kind(), error = reason, ?delay, "{what}");
        } else {
            warn!(kind = %sink.kind(), error = reason, ?delay, "{what}");
        }
        self.counters.failures = self.counters.failures.saturating_add(1);
        self.counters.watching_since = None;
        sink.set_last_error(Some(reason.to_owned()));
        Action::Sleep(delay)
    }

    /// Counts and skips an object without a name. Other objects are not affected.
    fn unreadable(&mut self, error: &HeadError, sink: &dyn Sink) {
        self.counters.unreadable = self.counters.unreadable.saturating_add(1);
        let error = opkit_client::one_line(error);
        warn!(kind = %sink.kind(), error, "skipping an object without a name");
    }
}
