//! Sources that a reflector lists and watches: the API, or functions of a program.

use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream::BoxStream;
use opkit_client::{Encoding, Kind, ListOptions, ResponseFormat, RestClient, WatchFrames};

use super::engine::Input;
use super::failure::Failure;
use super::page::Page;
use crate::list_watch::{Functions, ListWatchError};

/// Time limit for the source to accept a watch request.
const WATCH_ACCEPT_TIMEOUT: Duration = Duration::from_secs(30);
/// Number of events that are processed before the task yields to others.
const EVENTS_PER_YIELD: u32 = 64;

/// Source of the pages and events of a reflector.
pub(crate) trait Source: Send + 'static {
    /// Whether the source can send a list as the first events of a watch.
    const STREAMS_LISTS: bool;

    /// Requests a page of a list.
    fn list(
        &mut self,
        options: &ListOptions,
        format: ResponseFormat,
    ) -> impl Future<Output = Input> + Send;

    /// Starts a watch, which replaces the open one.
    fn watch(
        &mut self,
        options: &ListOptions,
        format: ResponseFormat,
    ) -> impl Future<Output = Input> + Send;

    /// Waits for the next event of the open watch.
    fn next(&mut self, timeout: Duration) -> impl Future<Output = Input> + Send;

    /// Closes the watch.
    fn close(&mut self);
}

/// Kind of an API server.
#[derive(Debug)]
pub(crate) struct ApiSource {
    client: RestClient,
    kind: Kind,
    /// Open watch.
    frames: Option<WatchFrames>,
    events_in_a_row: u32,
}

impl ApiSource {
    pub(crate) fn new(client: RestClient, kind: Kind) -> Self {
        Self {
            client,
            kind,
            frames: None,
            events_in_a_row: 0,
        }
    }
}

impl Source for ApiSource {
    const STREAMS_LISTS: bool = true;

    async fn list(&mut self, options: &ListOptions, format: ResponseFormat) -> Input {
        let response = self.client.list(&self.kind, options, format).await;
        match response {
            Ok(response) => Input::Page(response.into()),
            Err(error) => Input::Failed(Failure::of_request(&error)),
        }
    }

    async fn watch(&mut self, options: &ListOptions, format: ResponseFormat) -> Input {
        let watch = self.client.watch(&self.kind, options, format);
        match tokio::time::timeout(WATCH_ACCEPT_TIMEOUT, watch).await {
            Ok(Ok(frames)) => {
                let encoding = frames.encoding();
                self.frames = Some(frames);
                Input::Accepted(encoding)
            }
            Ok(Err(error)) => Input::Failed(Failure::of_request(&error)),
            Err(_) => Input::Failed(Failure::new(
                "the server did not accept the watch request within 30 s",
            )),
        }
    }

    async fn next(&mut self, timeout: Duration) -> Input {
        let Some(frames) = &mut self.frames else {
            return Input::Failed(Failure::new("no watch is open"));
        };
        // Buffered events need no timer.
        yield_sometimes(&mut self.events_in_a_row).await;
        let event = match frames.buffered() {
            Some(event) => Ok(Some(event)),
            None => tokio::time::timeout(timeout, frames.next()).await,
        };
        match event {
            Ok(Some(Ok(event))) => Input::Event(event),
            Ok(Some(Err(error))) => Input::Failed(Failure::of_request(&error)),
            Ok(None) => Input::Ended,
            Err(_) => Input::Silent,
        }
    }

    fn close(&mut self) {
        self.frames = None;
    }
}

/// Two functions of a program.
pub(crate) struct FunctionSource {
    functions: Functions,
    events: Option<BoxStream<'static, Result<Bytes, ListWatchError>>>,
    events_in_a_row: u32,
}

impl FunctionSource {
    pub(crate) fn new(functions: Functions) -> Self {
        Self {
            functions,
            events: None,
            events_in_a_row: 0,
        }
    }
}

impl Source for FunctionSource {
    const STREAMS_LISTS: bool = false;

    async fn list(&mut self, _: &ListOptions, _: ResponseFormat) -> Input {
        match (self.functions.list)().await {
            Ok(body) => Input::Page(Page {
                body,
                encoding: Encoding::Json,
            }),
            Err(error) => Input::Failed(failure(&error)),
        }
    }

    async fn watch(&mut self, options: &ListOptions, _: ResponseFormat) -> Input {
        let watch = (self.functions.watch)(options.resource_version.clone());
        match tokio::time::timeout(WATCH_ACCEPT_TIMEOUT, watch).await {
            Ok(Ok(events)) => {
                self.events = Some(events);
                Input::Accepted(Encoding::Json)
            }
            Ok(Err(error)) => Input::Failed(failure(&error)),
            Err(_) => Input::Failed(Failure::new("the watch function took longer than 30 s")),
        }
    }

    /// Waits without a timeout: only an API server sends bookmarks, whose absence means that the
    /// connection is broken.
    async fn next(&mut self, _: Duration) -> Input {
        let Some(events) = &mut self.events else {
            return Input::Failed(Failure::new("no watch is open"));
        };
        yield_sometimes(&mut self.events_in_a_row).await;
        match events.next().await {
            Some(Ok(event)) => Input::Event(event),
            Some(Err(error)) => Input::Failed(failure(&error)),
            None => Input::Ended,
        }
    }

    fn close(&mut self) {
        self.events = None;
    }
}

fn failure(error: &ListWatchError) -> Failure {
    let mut failure = Failure::new(opkit_client::one_line(error));
    if error.is_expired() {
        failure.code = Some(410);
    }
    failure
}

async fn yield_sometimes(in_a_row: &mut u32) {
    *in_a_row = in_a_row.saturating_add(1);
    if *in_a_row >= EVENTS_PER_YIELD {
        *in_a_row = 0;
        tokio::task::yield_now().await;
    }
}
