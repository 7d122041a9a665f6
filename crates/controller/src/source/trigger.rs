//! Requests to reconcile that come from outside the cluster: from a web server, a timer, or a queue
//! of another system.

use std::fmt;
use std::sync::Arc;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use opkit_workqueue::AddOptions;
use tokio::sync::mpsc;

use super::enqueue::{ControllerSources, YIELD_AFTER};
use crate::object::Request;
use crate::record::Cause;
use crate::record::causes::Causes;

/// Largest number of requests that wait in a trigger. Same value as in controller-runtime's channel
/// source.
const CAPACITY: usize = 1024;

/// Creates a trigger and its receiving end. A controller receives the triggered keys if the
/// receiving end is passed to [`Controller::triggered_by`](crate::Controller::triggered_by). `name`
/// is recorded as the cause of the reconciles.
///
/// # Examples
/// A web server that requests a reconcile for each call:
/// ```
/// # mod opkit { pub use opkit_controller::*; pub use opkit_controller as controller; }
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use opkit::controller::trigger;
/// use opkit::{Action, Context, Controller, Error};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let (trigger, calls) = trigger("web server");
/// let controller = Controller::new(|_: Arc<ConfigMap>, _: Context| async {
///     Ok::<_, Error>(Action::await_change())
/// })
/// .triggered_by(calls);
/// // In the handler of the web server:
/// trigger.send(("shops", "prices")).await.unwrap();
/// # drop(controller);
/// # assert!(trigger.send(("shops", "prices")).await.is_err());
/// # }
/// ```
pub fn trigger(name: impl Into<String>) -> (Trigger, Triggers) {
    let (sender, receiver) = mpsc::channel(CAPACITY);
    let requests = futures::stream::unfold(receiver, |mut receiver| async {
        let request: Request = receiver.recv().await?;
        Some((request, receiver))
    });
    (Trigger { sender }, Triggers::stream(name, requests))
}

/// Sender of requests to reconcile objects; see [`trigger`]. A clone sends to the same controller.
#[derive(Debug, Clone)]
pub struct Trigger {
    sender: mpsc::Sender<Request>,
}

/// Error of a [`Trigger`].
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TriggerError {
    /// The controller has stopped.
    #[error("cannot request a reconcile of {request}: its controller has stopped")]
    Ended {
        /// The request that was not sent.
        request: Request,
    },
    /// Too many requests are waiting in the trigger.
    #[error("cannot request a reconcile of {request} now: {CAPACITY} requests are waiting")]
    Full {
        /// The request that was not sent.
        request: Request,
    },
}

impl Trigger {
    /// Requests a reconcile of an object. Waits while the trigger is full.
    ///
    /// # Errors
    /// When the controller has stopped.
    ///
    /// # Cancel safety
    /// Nothing is sent if the future is dropped.
    pub async fn send(&self, request: impl Into<Request>) -> Result<(), TriggerError> {
        let sent = self.sender.send(request.into()).await;
        sent.map_err(|refused| TriggerError::Ended { request: refused.0 })
    }

    /// Requests a reconcile of an object without waiting.
    ///
    /// # Errors
    /// When the controller has stopped, or the trigger is full.
    pub fn try_send(&self, request: impl Into<Request>) -> Result<(), TriggerError> {
        use mpsc::error::TrySendError;
        let sent = self.sender.try_send(request.into());
        sent.map_err(|refused| match refused {
            TrySendError::Closed(request) => TriggerError::Ended { request },
            TrySendError::Full(request) => TriggerError::Full { request },
        })
    }
}

/// A stream of keys or requests. Implemented for every such stream; a short form of the trait
/// bounds.
pub trait WatchStream<R: Into<Request> + 'static>: Stream<Item = R> + Send + 'static {}

impl<R: Into<Request> + 'static, T: Stream<Item = R> + Send + 'static> WatchStream<R> for T {}

/// The receiving end of a [`trigger`], or a stream of requests; see
/// [`watches_stream`](crate::Controller::watches_stream).
pub struct Triggers {
    name: Arc<str>,
    requests: BoxStream<'static, Request>,
}

impl fmt::Debug for Triggers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Triggers")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Triggers {
    pub(crate) fn stream<R: Into<Request> + 'static>(
        name: impl Into<String>,
        stream: impl WatchStream<R>,
    ) -> Self {
        Self {
            name: name.into().into(),
            requests: stream.map(Into::into).boxed(),
        }
    }

    /// Adds the requests to the queue, as generic events of the source with the index `source`,
    /// until the stream ends.
    pub(crate) async fn run(mut self, sources: Arc<ControllerSources>, source: usize) {
        // Filters and map functions read the cache.
        for informer in sources.clusters.iter().flat_map(|it| &it.informers) {
            informer.wait_for_sync().await;
        }
        let is_plain = sources.is_plain(source);
        let mut in_one_go = 0;
        while let Some(request) = self.requests.next().await {
            // The user's stream may never wait.
            in_one_go = (in_one_go + 1) % YIELD_AFTER;
            if in_one_go == 0 {
                tokio::task::yield_now().await;
            }
            if is_plain {
                self.add(&sources, request);
                continue;
            }
            for request in sources.generic_targets(source, request) {
                self.add(&sources, request);
            }
        }
    }

    fn add(&self, sources: &ControllerSources, request: Request) {
        let cause = Cause::Triggered {
            by: self.name.clone(),
        };
        let now = AddOptions {
            priority: Some(0),
            ..Default::default()
        };
        sources.queue.add_with(request, Causes::from(cause), now);
    }
}
