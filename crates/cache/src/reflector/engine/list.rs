//! Lists in pages.

use std::time::Duration;

use opkit_client::Page;

use super::super::failure::{Class, Failure};
use super::super::page::{ListMeta, Reader};
use super::{Action, Engine, State};
use crate::sink::Sink;

/// After so many objects in one go, other tasks get a turn.
const READ_IN_ONE_GO: usize = 64;

/// How far a list in pages has come.
#[derive(Debug)]
pub(super) struct Paging {
    limit: u32,
    token: Option<String>,
    /// The version of the first page, which is that of the list.
    version: Option<String>,
}

impl Paging {
    pub(super) fn new(limit: u32) -> Self {
        Self {
            limit,
            token: None,
            version: None,
        }
    }
}

impl Engine {
    /// Asks for the next page. With the first one the list begins, also when it is asked for again.
    pub(super) fn ask(&mut self, paging: Paging, sink: &mut dyn Sink) -> Action {
        if paging.token.is_none() {
            self.begin_list(sink);
        }
        let action = Action::List {
            limit: paging.limit,
            continue_token: paging.token.clone(),
            resource_version: self.list_version(),
        };
        self.state = State::Paging(paging);
        action
    }

    /// Begins to read a page.
    pub(super) fn begin_page(
        &mut self,
        now: Duration,
        paging: Paging,
        page: Page,
        sink: &mut dyn Sink,
    ) -> Action {
        match Reader::new(page) {
            Ok(reader) => self.read(now, paging, reader, sink),
            Err(_) => self.ask_for_json(paging, sink),
        }
    }

    /// What cannot be read as protobuf may still be read as JSON.
    fn ask_for_json(&mut self, paging: Paging, sink: &mut dyn Sink) -> Action {
        self.protobuf = false;
        self.ask(paging, sink)
    }

    /// Reads some objects of a page.
    pub(super) fn read(
        &mut self,
        now: Duration,
        paging: Paging,
        mut reader: Reader,
        sink: &mut dyn Sink,
    ) -> Action {
        for _ in 0..READ_IN_ONE_GO {
            let object = match reader.next() {
                Ok(Some(object)) => object,
                Ok(None) => return self.page_ended(now, paging, reader.into_meta(), sink),
                Err(error) => {
                    let why = opkit_client::one_line(&error);
                    return self.pause(now, State::Unlisted, &why, sink);
                }
            };
            self.told = true;
            if let Err(error) = sink.listed(reader.raw(&object)) {
                self.unreadable(&error, sink);
            }
        }
        self.state = State::Reading(paging, reader);
        Action::Yield
    }

    fn page_ended(
        &mut self,
        now: Duration,
        mut paging: Paging,
        meta: ListMeta,
        sink: &mut dyn Sink,
    ) -> Action {
        let version = paging.version.take().or(meta.resource_version);
        match meta.continue_token.filter(|token| !token.is_empty()) {
            Some(token) => {
                paging.token = Some(token);
                paging.version = version;
                self.ask(paging, sink)
            }
            None => {
                self.end_list(version.unwrap_or_default(), sink);
                self.go(now, State::Unwatched, sink)
            }
        }
    }

    pub(super) fn list_failed(
        &mut self,
        now: Duration,
        paging: Paging,
        failure: Failure,
        sink: &mut dyn Sink,
    ) -> Action {
        let class = failure.class();
        match class {
            // The snapshot of the first page is gone: take everything at once.
            Class::Expired if paging.token.is_some() => {
                return self.ask(Paging::new(0), sink);
            }
            Class::Expired if !self.list_version().is_empty() => {
                self.unavailable = true;
                return self.ask(paging, sink);
            }
            Class::Form if self.protobuf => {
                self.protobuf = false;
                return self.ask(paging, sink);
            }
            // The pages read so far stay read.
            Class::Later | Class::Internal => {
                return self.pause(now, State::Paging(paging), &failure.message, sink);
            }
            Class::Expired | Class::Form | Class::Refused | Class::Other => {}
        }
        // Whatever it is, the simplest request is the next.
        self.unavailable = true;
        self.in_pages = false;
        self.pause(now, State::Unlisted, &failure.message, sink)
    }
}
