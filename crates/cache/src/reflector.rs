//! Reflector: lists and watches a collection and writes the objects into a [`Sink`]. The [`Engine`]
//! decides what to do next; the reflector sends the requests and waits.

mod engine;
mod failure;
mod page;
mod text;

use std::time::Duration;

use opkit_client::{Kind, ListOptions, ResponseFormat, RestClient, WatchFrames};
use opkit_random::Random;
use tokio::time::Instant;

use self::engine::PAGE;
pub(crate) use self::engine::{Action, Counters, Engine, Input};
pub(crate) use self::failure::Failure;
#[cfg(test)]
pub(crate) use self::page::Page;
use crate::sink::Sink;

/// Time limit for the server to accept a watch request.
const WATCH_ACCEPT_TIMEOUT: Duration = Duration::from_secs(30);
/// Number of events that are processed before the task yields to others.
const EVENTS_PER_YIELD: u32 = 64;

/// Part of a kind that a reflector reads, and the encoding it requests.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ReflectorOptions {
    /// Namespace and selectors of the list and watch requests.
    pub(crate) list: ListOptions,
    /// Format in which the server sends the objects.
    pub(crate) format: ResponseFormat,
    /// Number of objects per page of a paged list, which is used if the server does not support
    /// streaming lists.
    pub(crate) page_size: u32,
}

impl Default for ReflectorOptions {
    fn default() -> Self {
        Self {
            list: ListOptions::default(),
            format: ResponseFormat::default(),
            page_size: PAGE,
        }
    }
}

#[derive(Debug)]
pub(crate) struct Reflector<S> {
    client: RestClient,
    kind: Kind,
    sink: S,
    options: ReflectorOptions,
    engine: Engine,
    origin: Instant,
    /// Open watch.
    frames: Option<WatchFrames>,
    events_in_a_row: u32,
}

impl<S: Sink> Reflector<S> {
    pub(crate) fn with_sink(
        client: RestClient,
        sink: S,
        options: ReflectorOptions,
        random: Random,
    ) -> Self {
        let engine = Engine::new(random, options.page_size, options.format.protobuf);
        Self {
            client,
            kind: sink.kind().clone(),
            sink,
            options,
            engine,
            origin: Instant::now(),
            frames: None,
            events_in_a_row: 0,
        }
    }

    /// Runs the reflector until the future is dropped.
    ///
    /// # Cancel safety
    /// Dropping the future never interrupts a call of the sink.
    pub(crate) async fn run(mut self) {
        let mut input = Input::Continue;
        loop {
            let now = self.origin.elapsed();
            let action = self.engine.step(now, input, &mut self.sink);
            self.sink.set_counters(now, self.engine.counters());
            input = self.act(action).await;
        }
    }

    async fn act(&mut self, action: Action) -> Input {
        let Action::Read { timeout } = action else {
            self.frames = None;
            return match action {
                Action::List {
                    limit,
                    continue_token,
                    resource_version,
                } => {
                    let mut options = self.options.list.clone();
                    options.limit = limit;
                    options.continue_token = continue_token;
                    options.resource_version = resource_version;
                    self.list(&options).await
                }
                Action::Watch {
                    resource_version,
                    send_initial_events,
                    timeout,
                } => {
                    let mut options = self.options.list.clone();
                    options.resource_version = resource_version;
                    options.watch_timeout = timeout;
                    options.send_initial_events = send_initial_events;
                    self.watch(&options).await
                }
                Action::Sleep(delay) => {
                    tokio::time::sleep(delay).await;
                    Input::Continue
                }
                Action::Yield | Action::Read { .. } => {
                    tokio::task::yield_now().await;
                    Input::Continue
                }
            };
        };
        self.next(timeout).await
    }

    fn format(&self) -> ResponseFormat {
        ResponseFormat {
            protobuf: self.engine.protobuf(),
            ..self.options.format
        }
    }

    async fn list(&mut self, options: &ListOptions) -> Input {
        let response = self.client.list(&self.kind, options, self.format()).await;
        match response {
            Ok(response) => Input::Page(response.into()),
            Err(error) => Input::Failed(Failure::of_request(&error)),
        }
    }

    async fn watch(&mut self, options: &ListOptions) -> Input {
        let watch = self.client.watch(&self.kind, options, self.format());
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
        self.events_in_a_row = self.events_in_a_row.saturating_add(1);
        if self.events_in_a_row >= EVENTS_PER_YIELD {
            self.events_in_a_row = 0;
            tokio::task::yield_now().await;
        }
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
}

#[cfg(test)]
mod tests;
