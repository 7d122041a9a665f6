//! Reflector: lists and watches a [`Source`] and writes the objects into a [`Sink`]. The [`Engine`]
//! decides what to do next; the reflector calls the source and waits.

mod engine;
mod failure;
mod page;
mod source;
mod text;

use opkit_client::{ListOptions, ResponseFormat};
use opkit_random::Random;
use tokio::time::Instant;

use self::engine::PAGE;
pub(crate) use self::engine::{Action, Counters, Engine, Input};
#[cfg(test)]
pub(crate) use self::failure::Failure;
#[cfg(test)]
pub(crate) use self::page::Page;
pub(crate) use self::source::{ApiSource, FunctionSource, Source};
use crate::sink::Sink;

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

/// The async part of a reflector.
#[derive(Debug)]
pub(crate) struct ReflectorLoop<S, R> {
    source: R,
    sink: S,
    options: ReflectorOptions,
    engine: Engine,
    origin: Instant,
}

impl<S: Sink, R: Source> ReflectorLoop<S, R> {
    pub(crate) fn with_sink(source: R, sink: S, options: ReflectorOptions, random: Random) -> Self {
        let engine = Engine::new(random, options.page_size, options.format.protobuf);
        Self {
            source,
            sink,
            options,
            engine: match R::STREAMS_LISTS {
                true => engine,
                false => engine.without_streaming_lists(),
            },
            origin: Instant::now(),
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
            self.source.close();
            let format = self.format();
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
                    self.source.list(&options, format).await
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
                    self.source.watch(&options, format).await
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
        self.source.next(timeout).await
    }

    fn format(&self) -> ResponseFormat {
        ResponseFormat {
            protobuf: self.engine.protobuf(),
            ..self.options.format
        }
    }
}

#[cfg(test)]
mod tests;
