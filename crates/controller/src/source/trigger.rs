//! Requests to reconcile that come from elsewhere than the cluster: a web server, a timer, a queue
//! of another system.

use std::fmt;
use std::sync::Arc;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use opkit_workqueue::AddOptions;
use tokio::sync::mpsc;

use super::enqueue::{ControllerSources, IN_ONE_GO};
use crate::object::Request;
use crate::record::Cause;
use crate::record::causes::Causes;

/// How many requests may wait in a trigger; controller-runtime's channel source has as many.
const WAITING: usize = 1024;

/// A trigger and its other end, which a controller takes. `name` is told as the reason of the
/// reconciles.
///
/// # Examples
/// A web server that has an object reconciled when somebody calls:
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
    let (sender, receiver) = mpsc::channel(WAITING);
    let requests = futures::stream::unfold(receiver, |mut receiver| async {
        let request: Request = receiver.recv().await?;
        Some((request, receiver))
    });
    (Trigger { sender }, Triggers::stream(name, requests))
}

/// Has objects reconciled; see [`trigger`]. Cloning gives another handle on the same controller.
#[derive(Debug, Clone)]
pub struct Trigger {
    sender: mpsc::Sender<Request>,
}

/// The controller of a [`Trigger`] does not run any more, or takes no more at present.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TriggerError {
    /// It has ended.
    #[error("cannot have {request} reconciled: its controller has ended")]
    Ended {
        /// What was asked for.
        request: Request,
    },
    /// Too many wait.
    #[error("cannot have {request} reconciled now: {WAITING} requests wait already")]
    Full {
        /// What was asked for.
        request: Request,
    },
}

impl Trigger {
    /// Has an object reconciled; waits while too many requests wait.
    ///
    /// # Errors
    /// When the controller has ended.
    ///
    /// # Cancel safety
    /// Nothing is sent if it is dropped.
    pub async fn send(&self, request: impl Into<Request>) -> Result<(), TriggerError> {
        let sent = self.sender.send(request.into()).await;
        sent.map_err(|refused| TriggerError::Ended { request: refused.0 })
    }

    /// Has an object reconciled, without waiting.
    ///
    /// # Errors
    /// When the controller has ended, or too many requests wait.
    pub fn try_send(&self, request: impl Into<Request>) -> Result<(), TriggerError> {
        use mpsc::error::TrySendError;
        let sent = self.sender.try_send(request.into());
        sent.map_err(|refused| match refused {
            TrySendError::Closed(request) => TriggerError::Ended { request },
            TrySendError::Full(request) => TriggerError::Full { request },
        })
    }
}

/// A stream of keys, or of what can be made one. Implemented for every stream; short for its
/// bounds.
pub trait WatchStream<R: Into<Request> + 'static>: Stream<Item = R> + Send + 'static {}

impl<R: Into<Request> + 'static, T: Stream<Item = R> + Send + 'static> WatchStream<R> for T {}

/// Where a controller hears of requests; see [`trigger`] and
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

    /// Adds the requests, as generic events of a source, to the queue until there are no more.
    pub(crate) async fn run(mut self, sources: Arc<ControllerSources>, source: usize) {
        // Filters and map functions read the cache.
        for informer in sources.clusters.iter().flat_map(|it| &it.informers) {
            informer.wait_for_sync().await;
        }
        let is_plain = sources.is_plain(source);
        let mut in_one_go = 0;
        while let Some(request) = self.requests.next().await {
            // A stream of the user's may never wait.
            in_one_go = (in_one_go + 1) % IN_ONE_GO;
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
