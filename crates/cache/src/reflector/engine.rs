//! What a reflector does next: a plain state machine, told what came and answering what to ask for.
//! It has no clock and does no I/O; [`Reflector`](super::Reflector) is the shell around it.
//!
//! The rules are client-go's (`tools/cache/reflector.go`), where it has one. A list is streamed by
//! the watch that goes on after it; a server that has no such lists is listed in pages, which is
//! remembered. A watch lasts a random 5 to 10 minutes and is resumed from the last version seen;
//! bookmarks keep that version fresh. An expired version means a new list. Failures, and lists that
//! help nothing, back off with jitter. Unlike client-go's, the first list is always a quorum read,
//! and a list in pages that breaks off goes on where it was.

mod list;
mod watch;

use std::time::Duration;

use bytes::Bytes;
use opkit_apimachinery::random::Random;
use opkit_client::{Encoding, Page};
use tracing::{debug, warn};

use self::list::Paging;
use self::watch::Watching;
use super::failure::Failure;
use super::page::Reader;
use crate::backoff::Backoff;
use crate::sink::{ReadError, Sink};

/// Objects per page; client-go's figure.
pub(crate) const PAGE: u32 = 500;

/// What the engine is told.
#[derive(Debug)]
pub(crate) enum Input {
    /// Begin, or go on after [`Action::Sleep`] or [`Action::Yield`].
    Go,
    /// The answer to [`Action::List`].
    Page(Page),
    /// The server has accepted [`Action::Watch`].
    Begun(Encoding),
    /// An event of the watch.
    Event(Bytes),
    /// The server has ended the watch.
    Ended,
    /// The watch was silent for longer than the engine had patience.
    Silent,
    /// The request was refused, or the connection broke.
    Failed(Failure),
}

/// What the engine wants. Only [`Action::Read`] keeps the watch open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// Ask for a page of a list.
    List {
        limit: u32,
        continue_token: Option<String>,
        resource_version: String,
    },
    /// Begin a watch.
    Watch {
        resource_version: String,
        send_initial_events: bool,
        timeout: Duration,
    },
    /// Wait for the next event of the watch, so long at most.
    Read { patience: Duration },
    /// Wait.
    Sleep(Duration),
    /// Let others have a turn.
    Yield,
}

/// What has happened so far, for metrics.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Complete lists.
    pub(crate) lists: u64,
    /// Events of watches, bookmarks and initial events included.
    pub(crate) events: u64,
    /// Watches that the server accepted.
    pub(crate) watches: u64,
    /// Objects whose name could not be read.
    pub(crate) unreadable: u64,
    /// Failures.
    pub(crate) failures: u64,
    /// When the watch began that is open now.
    pub(crate) watching_since: Option<Duration>,
    /// When something was heard last.
    pub(crate) heard: Option<Duration>,
}

#[derive(Debug)]
pub(crate) struct Engine {
    random: Random,
    backoff: Backoff,
    page_size: u32,
    /// Whether the server has streaming lists, as far as is known.
    streams: bool,
    /// Whether the next list is in pages though the server may have streaming ones.
    in_pages: bool,
    /// Streaming lists in a row that ended, or fell silent, without saying that they are complete.
    unended: u32,
    /// Streaming lists in a row whose connection broke.
    broken: u32,
    /// Whether to ask for protobuf.
    protobuf: bool,
    /// The last version seen; empty before the first list.
    version: String,
    /// Whether the server cannot list at that version, or a list as of it may be too old. The next
    /// list is a quorum read then.
    unavailable: bool,
    /// Whether the list that is under way has told something. If it breaks off, that stays told, so
    /// the next list must not be older: it is a quorum read.
    told: bool,
    /// The version of the last complete list.
    listed: String,
    /// Whether the watch after the list before came no further than that list.
    fruitless: bool,
    /// Since when every attempt to watch has failed inside the server.
    internal_since: Option<Duration>,
    state: State,
    counters: Counters,
}

#[derive(Debug)]
enum State {
    /// A list is next.
    Unlisted,
    /// A page is asked for, or to be asked for again.
    Paging(Paging),
    /// A page is being read.
    Reading(Paging, Reader),
    /// A streaming list.
    Streaming(Watching),
    /// A watch is next.
    Unwatched,
    /// A watch.
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
            unended: 0,
            broken: 0,
            protobuf,
            version: String::new(),
            unavailable: false,
            told: false,
            listed: String::new(),
            fruitless: false,
            internal_since: None,
            state: State::Unlisted,
            counters: Counters::default(),
        }
    }

    /// Whether requests shall ask for protobuf.
    pub(crate) fn protobuf(&self) -> bool {
        self.protobuf
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The last version seen.
    #[cfg(test)]
    pub(crate) fn version(&self) -> &str {
        &self.version
    }

    /// Takes in what came at `now`, writes what it says into `sink` and answers what to do next.
    pub(crate) fn step(&mut self, now: Duration, input: Input, sink: &mut dyn Sink) -> Action {
        match (std::mem::replace(&mut self.state, State::Unlisted), input) {
            (state, Input::Go) => self.go(now, state, sink),
            (State::Paging(paging), Input::Page(page)) => {
                self.counters.heard = Some(now);
                self.begin_page(now, paging, page, sink)
            }
            (State::Paging(paging), Input::Failed(failure)) => {
                self.list_failed(now, paging, failure, sink)
            }
            (State::Streaming(watching), input) => self.stream(now, watching, input, sink),
            (State::Watching(watching), input) => self.watch(now, watching, input, sink),
            (state, input) => {
                debug_assert!(false, "{input:?} in {state:?}");
                self.pause(now, State::Unlisted, "an answer came unasked", sink)
            }
        }
    }

    fn go(&mut self, now: Duration, state: State, sink: &mut dyn Sink) -> Action {
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
            State::Unlisted => self.ask(Paging::new(self.page_size), sink),
            State::Paging(paging) => self.ask(paging, sink),
            State::Reading(paging, reader) => self.read(now, paging, reader, sink),
            State::Unwatched | State::Streaming(_) | State::Watching(_) => {
                let action = self.begin_watch(false);
                if let Action::Watch { timeout, .. } = &action {
                    // Such a watch begins with made-up additions, in any order.
                    let unordered = self.version.is_empty() || self.version == "0";
                    self.state = State::Watching(Watching::new(now, *timeout, unordered));
                }
                action
            }
        }
    }

    fn begin_list(&mut self, sink: &mut dyn Sink) {
        self.unavailable |= std::mem::take(&mut self.told);
        self.unavailable |= sink.begin_list();
    }

    /// The version to list at.
    fn list_version(&self) -> String {
        match self.unavailable {
            true => String::new(),
            false => self.version.clone(),
        }
    }

    /// The list is complete and is of this version.
    fn end_list(&mut self, version: String, sink: &mut dyn Sink) {
        sink.end_list(&version);
        sink.set_last_error(None);
        self.listed = version.clone();
        self.version = version;
        self.unavailable = false;
        self.told = false;
        self.in_pages = false;
        self.unended = 0;
        self.broken = 0;
        self.counters.lists = self.counters.lists.saturating_add(1);
    }

    /// The watch cannot go on from where it is.
    fn relist(&mut self, now: Duration, why: &str, sink: &mut dyn Sink) -> Action {
        // A version that expired is put right by one list. A watch that comes no further than the
        // list would make it a loop of lists.
        let again = self.fruitless;
        self.fruitless = self.version == self.listed;
        if again && self.fruitless {
            return self.pause(now, State::Unlisted, why, sink);
        }
        debug!(kind = %sink.kind(), why, "the watch cannot go on; will list again");
        self.go(now, State::Unlisted, sink)
    }

    /// Waits, then goes on from `state`.
    fn pause(&mut self, now: Duration, state: State, why: &str, sink: &mut dyn Sink) -> Action {
        let what = match &state {
            State::Unwatched => "the watch failed; will resume it",
            _ => "cannot list; will try again",
        };
        self.state = state;
        let delay = self.backoff.failed(now, self.random.unit());
        // Whoever starts an informer waits for its first list and reports why it does not come.
        if self.listed.is_empty() && self.counters.failures == 0 {
            debug!(kind = %sink.kind(), error = why, ?delay, "{what}");
        } else {
            warn!(kind = %sink.kind(), error = why, ?delay, "{what}");
        }
        self.counters.failures = self.counters.failures.saturating_add(1);
        self.counters.watching_since = None;
        sink.set_last_error(Some(why.to_owned()));
        Action::Sleep(delay)
    }

    /// An object that has not even a name is left out, and spoils nothing else.
    fn unreadable(&mut self, error: &ReadError, sink: &dyn Sink) {
        self.counters.unreadable = self.counters.unreadable.saturating_add(1);
        let error = opkit_client::one_line(error);
        warn!(kind = %sink.kind(), error, "skipping an object without a name");
    }
}
