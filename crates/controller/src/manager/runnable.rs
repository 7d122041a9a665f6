//! Runnables: whatever else an operator runs beside its controllers.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use opkit_client::RestClient;
use opkit_servers::metrics::MetricsRegistry;
use opkit_servers::{HealthServer, MetricsServer};
use tokio_util::sync::CancellationToken;

use crate::error::Result;
use crate::state::States;

/// A long-running task of an operator: a timer, a feed, a web server.
///
/// It runs from the start, or with leader election from the moment the process leads, until its
/// [stop](RunContext::stopped). One that ends without an error is not started again; an error stops
/// the operator. When leadership is lost it is stopped, and started again when it is won again.
///
/// # Examples
/// ```
/// # use opkit_controller as opkit;
/// use std::time::Duration;
/// use opkit::{Result, RunContext, Runnable};
///
/// struct PriceFeed {
///     every: Duration,
/// }
///
/// impl Runnable for PriceFeed {
///     async fn run(&self, cx: RunContext) -> Result {
///         while !cx.stopped_within(self.every).await {
///             println!("looking up prices");
///         }
///         Ok(())
///     }
/// }
/// ```
pub trait Runnable: Send + Sync + 'static {
    /// Runs until `cx` says stop.
    fn run(&self, cx: RunContext) -> impl Future<Output = Result> + Send;

    /// What it is called in logs and errors.
    fn name(&self) -> String {
        let path = std::any::type_name::<Self>();
        path.rsplit("::").next().unwrap_or(path).to_owned()
    }

    /// Whether it waits for leadership, where the operator elects a leader. True by default, as in
    /// controller-runtime: what does not say that it may run on several replicas at once does not.
    fn needs_leader_election(&self) -> bool {
        true
    }
}

/// What a [`Runnable`] works with.
#[derive(Clone)]
pub struct RunContext {
    pub(crate) stop: CancellationToken,
    pub(crate) client: kube::Client,
    pub(crate) metrics: MetricsRegistry,
    pub(crate) states: Arc<States>,
}

impl fmt::Debug for RunContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunContext").finish_non_exhaustive()
    }
}

impl RunContext {
    /// Ends when the runnable shall end.
    ///
    /// # Cancel safety
    /// May be dropped and called again at any time.
    pub async fn stopped(&self) {
        self.stop.cancelled().await;
    }

    /// Waits for `time`; true if the runnable shall end meanwhile.
    ///
    /// # Cancel safety
    /// May be dropped and called again at any time.
    pub async fn stopped_within(&self, time: std::time::Duration) -> bool {
        tokio::time::timeout(time, self.stop.cancelled())
            .await
            .is_ok()
    }

    /// Cancelled when the runnable shall end.
    pub fn stop_token(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// A client. Of a runnable that needs leadership it refuses to write once that is lost.
    pub fn client(&self) -> kube::Client {
        self.client.clone()
    }

    /// Where metrics of one's own are registered.
    pub fn metrics(&self) -> &MetricsRegistry {
        &self.metrics
    }

    /// What the operator's state function made, if it made an `S`.
    pub fn state<S: Send + Sync + 'static>(&self) -> Option<Arc<S>> {
        self.states.get()
    }
}

type Run = dyn Fn(RunContext) -> BoxFuture<'static, Result> + Send + Sync;

/// When a runnable starts, and in which order it stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// Servers: from before the caches are filled until everything else has ended.
    Server,
    /// From when the caches are filled.
    Other,
    /// From when the process leads.
    Leader,
}

/// A runnable without its type: what a manager takes.
#[derive(Clone)]
pub struct AnyRunnable {
    pub(crate) name: Arc<str>,
    pub(crate) group: Group,
    run: Arc<Run>,
}

impl fmt::Debug for AnyRunnable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnyRunnable")
            .field("name", &self.name)
            .field("group", &self.group)
            .finish_non_exhaustive()
    }
}

impl<R: Runnable> From<R> for AnyRunnable {
    fn from(runnable: R) -> Self {
        let (name, needs) = (runnable.name(), runnable.needs_leader_election());
        let runnable = Arc::new(runnable);
        Self {
            name: name.into(),
            group: if needs { Group::Leader } else { Group::Other },
            run: Arc::new(move |cx| {
                let runnable = runnable.clone();
                async move { runnable.run(cx).await }.boxed()
            }),
        }
    }
}

impl From<HealthServer> for AnyRunnable {
    fn from(server: HealthServer) -> Self {
        let server = Arc::new(server);
        Self::server("the health server", move |cx| {
            let serving = server.clone().serve(cx.stop_token());
            async move {
                serving.await;
                Ok(())
            }
        })
    }
}

/// The metrics server serves the manager's registry, and asks for permissions with its client.
impl From<MetricsServer> for AnyRunnable {
    fn from(server: MetricsServer) -> Self {
        let server = Arc::new(server);
        Self::server("the metrics server", move |cx| {
            let server = server.clone();
            async move {
                let (metrics, client) = (cx.metrics().clone(), RestClient::new(cx.client()));
                Ok(server.serve(metrics, client, cx.stop_token()).await?)
            }
        })
    }
}

impl AnyRunnable {
    /// A server, such as for health checks: it starts first, ends last, and needs no leadership.
    pub fn server<F, Fut>(name: impl Into<String>, run: F) -> Self
    where
        F: Fn(RunContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result> + Send + 'static,
    {
        Self {
            name: name.into().into(),
            group: Group::Server,
            run: Arc::new(move |cx| run(cx).boxed()),
        }
    }

    /// A task that waits for leadership, where the operator elects a leader.
    pub fn task<F, Fut>(name: impl Into<String>, run: F) -> Self
    where
        F: Fn(RunContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result> + Send + 'static,
    {
        Self {
            group: Group::Leader,
            ..Self::server(name, run)
        }
    }

    pub(crate) fn start(&self, cx: RunContext) -> BoxFuture<'static, Result> {
        (self.run)(cx)
    }
}
