//! Paged lists.

use std::time::Duration;

use super::super::failure::{Class, Failure};
use super::super::page::{ListMeta, Page, Reader};
use super::{Action, Engine, State};
use crate::sink::Sink;

/// Number of objects that are read before the task yields to others.
const OBJECTS_PER_YIELD: usize = 64;

/// Progress of a paged list.
#[derive(Debug)]
pub(super) struct Paging {
    limit: u32,
    token: Option<String>,
    /// resourceVersion of the first page, which is the resourceVersion of the whole list.
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
    /// Requests the next page. Requesting the first page, even repeatedly, starts the list again.
    pub(super) fn request_page(&mut self, paging: Paging, sink: &mut dyn Sink) -> Action {
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

    /// Starts to read a page.
    pub(super) fn begin_page(
        &mut self,
        now: Duration,
        paging: Paging,
        page: Page,
        sink: &mut dyn Sink,
    ) -> Action {
        match Reader::new(page) {
            Ok(reader) => self.read(now, paging, reader, sink),
            Err(_) => self.retry_as_json(paging, sink),
        }
    }

    /// Requests JSON from now on, since a page could not be read as protobuf.
    fn retry_as_json(&mut self, paging: Paging, sink: &mut dyn Sink) -> Action {
        self.protobuf = false;
        self.request_page(paging, sink)
    }

    /// Reads some objects of a page.
    pub(super) fn read(
        &mut self,
        now: Duration,
        paging: Paging,
        mut reader: Reader,
        sink: &mut dyn Sink,
    ) -> Action {
        for _ in 0..OBJECTS_PER_YIELD {
            let object = match reader.next() {
                Ok(Some(object)) => object,
                Ok(None) => return self.page_ended(now, paging, reader.into_meta(), sink),
                Err(error) => {
                    let reason = opkit_client::one_line(&error);
                    return self.pause(now, State::Unlisted, &reason, sink);
                }
            };
            self.has_delivered = true;
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
                self.request_page(paging, sink)
            }
            None => {
                self.end_list(version.unwrap_or_default(), sink);
                self.proceed(now, State::Unwatched, sink)
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
            // The snapshot of the first page has expired: request all objects in one page.
            Class::Expired if paging.token.is_some() => {
                return self.request_page(Paging::new(0), sink);
            }
            Class::Expired if !self.list_version().is_empty() => {
                self.needs_quorum = true;
                return self.request_page(paging, sink);
            }
            Class::Encoding if self.protobuf => {
                self.protobuf = false;
                return self.request_page(paging, sink);
            }
            // The pages read so far are kept.
            Class::Retry | Class::Internal => {
                return self.pause(now, State::Paging(paging), &failure.message, sink);
            }
            Class::Expired | Class::Encoding | Class::Refused | Class::Other => {}
        }
        // For all other failures, the next list is the simplest request.
        self.needs_quorum = true;
        self.in_pages = false;
        self.pause(now, State::Unlisted, &failure.message, sink)
    }
}
