//! The reflector: lists and watches a collection and writes both into a [`Sink`]. What to do when
//! is decided by the [`Engine`]; here requests are sent and time passes.

mod engine;
mod failure;
mod page;
mod text;

use std::time::Duration;

use opkit_apimachinery::random::Random;
use opkit_client::{CollectionOptions, Kind, PageOptions, RestClient, WatchFrames, WatchOptions};
use tokio::time::Instant;

use self::engine::PAGE;
pub(crate) use self::engine::{Action, Counters, Engine, Input};
pub(crate) use self::failure::Failure;
use crate::sink::Sink;

/// How long the server may take to begin a watch.
const PATIENCE: Duration = Duration::from_secs(30);
/// After so many events in one go, other tasks get a turn.
const EVENTS_IN_ONE_GO: u32 = 64;

/// Which part of a kind a reflector reads, and in which form. Informers are shared by whoever asks
/// for the same.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ReflectorOptions {
    /// One namespace, or all.
    pub(crate) namespace: Option<String>,
    /// Selectors, and the form.
    pub(crate) collection: CollectionOptions,
    /// Objects per page where the server has no streaming lists.
    pub(crate) page_size: u32,
}

impl Default for ReflectorOptions {
    fn default() -> Self {
        Self {
            namespace: None,
            collection: CollectionOptions::default(),
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
    /// The watch that is open.
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
        let engine = Engine::new(random, options.page_size, options.collection.protobuf);
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

    /// Runs until dropped.
    ///
    /// # Cancel safety
    /// The sink is only ever left between two of its calls.
    pub(crate) async fn run(mut self) {
        let mut input = Input::Go;
        loop {
            let now = self.origin.elapsed();
            let action = self.engine.step(now, input, &mut self.sink);
            self.sink.set_counters(now, self.engine.counters());
            input = self.act(action).await;
        }
    }

    async fn act(&mut self, action: Action) -> Input {
        let Action::Read { patience } = action else {
            self.frames = None;
            return match action {
                Action::List {
                    limit,
                    continue_token,
                    resource_version,
                } => {
                    let options = PageOptions {
                        limit,
                        continue_token,
                        resource_version,
                        collection: self.collection(),
                    };
                    self.list(&options).await
                }
                Action::Watch {
                    resource_version,
                    send_initial_events,
                    timeout,
                } => {
                    let options = WatchOptions {
                        resource_version,
                        timeout,
                        send_initial_events,
                        collection: self.collection(),
                    };
                    self.watch(&options).await
                }
                Action::Sleep(delay) => {
                    tokio::time::sleep(delay).await;
                    Input::Go
                }
                Action::Yield | Action::Read { .. } => {
                    tokio::task::yield_now().await;
                    Input::Go
                }
            };
        };
        self.next(patience).await
    }

    fn collection(&self) -> CollectionOptions {
        CollectionOptions {
            protobuf: self.engine.protobuf(),
            ..self.options.collection.clone()
        }
    }

    async fn list(&mut self, options: &PageOptions) -> Input {
        let namespace = self.options.namespace.as_deref();
        let page = self.client.list_page(&self.kind, namespace, options).await;
        match page {
            Ok(page) => Input::Page(page),
            Err(error) => Input::Failed(Failure::of_request(&error)),
        }
    }

    async fn watch(&mut self, options: &WatchOptions) -> Input {
        let namespace = self.options.namespace.as_deref();
        let watch = self.client.watch(&self.kind, namespace, options);
        match tokio::time::timeout(PATIENCE, watch).await {
            Ok(Ok(frames)) => {
                let encoding = frames.encoding();
                self.frames = Some(frames);
                Input::Begun(encoding)
            }
            Ok(Err(error)) => Input::Failed(Failure::of_request(&error)),
            Err(_) => Input::Failed(Failure::new("the server did not begin the watch")),
        }
    }

    async fn next(&mut self, patience: Duration) -> Input {
        let Some(frames) = &mut self.frames else {
            return Input::Failed(Failure::new("there is no watch to read"));
        };
        // What is here already needs no timer.
        self.events_in_a_row = self.events_in_a_row.saturating_add(1);
        if self.events_in_a_row >= EVENTS_IN_ONE_GO {
            self.events_in_a_row = 0;
            tokio::task::yield_now().await;
        }
        let event = match frames.buffered() {
            Some(event) => Ok(Some(event)),
            None => tokio::time::timeout(patience, frames.next()).await,
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
