//! Runnables: tasks that an operator runs beside its controllers.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use opkit_cache::{CachedClient, Informer, Lister};
use opkit_client::{Kind, Object, RestClient};
use opkit_events::EventRecorder;
use opkit_leaderelection::Leadership;
use opkit_servers::metrics::MetricsRegistry;
use opkit_servers::{HealthServer, MetricsServer};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::error::{ReadError, Result};
use crate::state::{Reads, StateContext, States};
use crate::worker::owners::ShardOwners;

/// A long-running task of an operator: a timer, a feed, a web server.
///
/// A runnable starts with the manager, or, with leader election, when the process becomes the
/// leader. It runs until it is [stopped](RunContext::stopped). A runnable that returns `Ok` is not
/// started again; an error stops the operator. When leadership is lost, the runnable is stopped.
/// When the process becomes the leader again, the runnable is started again.
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
    /// Runs until `cx` is [stopped](RunContext::stopped).
    fn run(&self, cx: RunContext) -> impl Future<Output = Result> + Send;

    /// Returns the name of the runnable in logs and errors.
    fn name(&self) -> String {
        let path = std::any::type_name::<Self>();
        path.rsplit("::").next().unwrap_or(path).to_owned()
    }

    /// Reports whether the runnable runs only on the leader, if the operator uses leader election.
    /// `true` by default, as in controller-runtime: a runnable that may run on several replicas at
    /// once has to return `false`.
    fn needs_leader_election(&self) -> bool {
        true
    }
}

/// The context of a [`Runnable`]: clients, the caches, an event recorder, the states, and the
/// leadership of this process. Cloning is cheap.
///
/// The caches are those of the kinds that the operator declares, in the cluster that the operator
/// runs in: of its controllers, its webhooks, and for reading only (`Operator::kinds`). They are
/// filled before a runnable starts, except one of [`AnyRunnable::server`].
///
/// # Examples
/// ```
/// # use opkit_controller as opkit;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use opkit::{AnyRunnable, RunContext, Selection};
///
/// let report = AnyRunnable::on_every_replica("the report", |cx: RunContext| async move {
///     let maps = cx.lister::<ConfigMap>()?;
///     let mut leadership = cx.leadership();
///     while !cx.stop_token().is_cancelled() {
///         println!("{} config maps", maps.list(&Selection::default()).len());
///         println!("the leader: {}", leadership.borrow_and_update().term().is_some());
///         tokio::select! {
///             () = cx.stopped() => {}
///             _ = leadership.changed() => {}
///         }
///     }
///     Ok(())
/// });
/// # drop(report);
/// ```
#[derive(Clone)]
pub struct RunContext {
    pub(crate) stop: CancellationToken,
    pub(crate) metrics: MetricsRegistry,
    pub(crate) states: Arc<States>,
    pub(crate) owners: ShardOwners,
    /// Client and caches of the cluster that the operator runs in.
    pub(crate) home: StateContext,
}

impl fmt::Debug for RunContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunContext").finish_non_exhaustive()
    }
}

impl RunContext {
    /// Waits until the runnable has to stop.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect; the method can be called again.
    pub async fn stopped(&self) {
        self.stop.cancelled().await;
    }

    /// Waits for `time`, or until the runnable has to stop. Returns whether it has to stop.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect; the method can be called again.
    pub async fn stopped_within(&self, time: std::time::Duration) -> bool {
        tokio::time::timeout(time, self.stop.cancelled())
            .await
            .is_ok()
    }

    /// Returns the token that is cancelled when the runnable has to stop.
    pub fn stop_token(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Returns a client. For a runnable that needs leadership, the client refuses to write after
    /// the process has lost leadership.
    pub fn client(&self) -> kube::Client {
        self.home.client()
    }

    /// Returns a client that reads the declared kinds from the cache and writes to the API. Its
    /// reads wait until the cache of the kind is filled, show the writes through the client, and
    /// are errors after the operator has stopped. Writes are limited as those of
    /// [`client`](Self::client) are.
    pub fn cached_client(&self) -> CachedClient {
        self.home.cached_client()
    }

    /// Returns a lister of a declared kind, which reads the cache.
    ///
    /// # Errors
    /// When nothing declares the kind; when the initial list of the kind has not been received,
    /// which can only happen in a [server](AnyRunnable::server); or when the operator has stopped.
    pub fn lister<K: Object>(&self) -> Result<Lister<K>, ReadError> {
        self.home.lister()
    }

    /// Returns the informer of a declared kind, to [listen](Informer::listen) for changes and to
    /// [add indexes](Informer::add_index).
    ///
    /// # Errors
    /// When nothing declares the kind, or the operator has stopped.
    pub fn informer<K: Object>(&self) -> Result<Informer, ReadError> {
        self.home.informer::<K>()
    }

    /// Same as [`informer`](Self::informer), for a kind that a controller declares at run time.
    ///
    /// # Errors
    /// When no controller declares the kind, or the operator has stopped.
    pub fn dynamic_informer(&self, kind: &Kind) -> Result<Informer, ReadError> {
        self.home.dynamic_informer(kind)
    }

    /// Returns reads of all declared kinds.
    pub fn reads(&self) -> Reads {
        self.home.reads()
    }

    /// Returns an event recorder. For a runnable that needs leadership, events are posted only
    /// while this process is the leader.
    pub fn recorder(&self) -> EventRecorder {
        self.home.recorder()
    }

    /// Returns a watch of the leadership of this process: whether it is the leader, and in which
    /// term; see [`StateContext::leadership`].
    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.home.leadership()
    }

    /// Reports whether this replica of a sharded operator reconciles an object. A request of a
    /// [`trigger`](crate::trigger) for an object of another replica has no effect: the runnable of
    /// that replica has to send it. If the operator is not sharded, returns true, also in a process
    /// that does not lead.
    pub fn owns<K: Object>(&self, object: &K) -> bool {
        let meta = object.meta();
        let uid = meta.uid.as_deref().unwrap_or_default();
        self.owners.owns(uid, meta.namespace.as_deref())
    }

    /// Returns the manager's metrics registry, in which the runnable can register metrics of its
    /// own.
    pub fn metrics(&self) -> &MetricsRegistry {
        &self.metrics
    }

    /// Returns the operator's state of type `S`, or `None` if the operator has no state of this
    /// type.
    pub fn state<S: Send + Sync + 'static>(&self) -> Option<Arc<S>> {
        self.states.get()
    }
}

type Run = dyn Fn(RunContext) -> BoxFuture<'static, Result> + Send + Sync;

/// Groups of runnables, in the order in which the groups start. The groups stop in the reverse
/// order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Group {
    /// Servers, which start before the caches are filled and stop after all other tasks.
    Server,
    /// Runnables that need no leadership, which start when the caches are filled.
    Other,
    /// Runnables that need leadership, which start when the process becomes the leader.
    Leader,
}

/// A runnable without type parameters, as [`Manager`](crate::Manager) accepts it.
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

/// Creates a runnable that serves the metrics of the manager's registry, and checks the permissions
/// of callers with the manager's client.
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
    /// Creates a runnable for a server, such as one for health checks. The server starts first,
    /// stops last, and needs no leadership.
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

    /// Creates a runnable that runs in every process, whether it is the leader or not, such as a
    /// web server that reads the cache. The runnable starts when the caches are filled.
    pub fn on_every_replica<F, Fut>(name: impl Into<String>, run: F) -> Self
    where
        F: Fn(RunContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result> + Send + 'static,
    {
        Self {
            group: Group::Other,
            ..Self::server(name, run)
        }
    }

    /// Creates a runnable that runs only on the leader, if the operator uses leader election.
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
