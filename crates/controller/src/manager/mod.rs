//! The manager: owns every task, starts them in order, stops them in order.
//!
//! Start: servers, pre-flight (the server knows each kind and grants each permission), informers
//! and their first lists, tasks that need no leadership, and with leadership the rest. Stop: the
//! reverse, within the grace period: no new reconciles start, those in work end, and events are
//! flushed. No other module of the crates that run operators listens to signals.

mod cluster;
mod election;
mod posters;
mod preflight;
mod resolve;
mod runnable;
mod running;
mod signals;
mod stuck;
mod task_group;
mod term;

use std::any::TypeId;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use opkit_cache::{InformerOptions, Scope};
use opkit_client::{Object, RestClient};
use opkit_events::EventApi;
use opkit_leaderelection::{LeaderElectionOptions, LeaderWatchdog};
use opkit_servers::metrics::MetricsRegistry;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::info;

use self::runnable::Group;
pub use self::runnable::{AnyRunnable, RunContext, Runnable};
use self::running::RunningManager;
use self::signals::Signals;
use self::task_group::Deadline;
use crate::builder::AnyController;
use crate::error::{Error, ManagerError, Permission};
use crate::reads::MapContext;
use crate::reads::cross_namespace::{Grants, Reference};
use crate::record::ReconcileLog;
use crate::state::{StateContext, StateMaker, StateType, States};

/// How a [`Manager`] runs.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ManagerOptions {
    /// Which namespaces are watched; all by default.
    pub scope: Scope,
    /// How long everything may take to end after a stop; 30 s by default. Zero does not wait,
    /// [`Duration::MAX`] waits for ever.
    pub grace_period: Duration,
    /// How long the first lists may take; 2 min by default.
    pub cache_sync_timeout: Duration,
    /// What the operator needs beyond listing and watching, checked before it starts.
    pub permissions: Vec<Permission>,
    /// Elects a leader among several processes: what needs leadership runs in one of them at a
    /// time. None for a process that is alone.
    pub leader_election: Option<LeaderElectionOptions>,
    /// Where reconciles are recorded.
    pub log: ReconcileLog,
    /// Where metrics are registered.
    pub metrics: MetricsRegistry,
    /// Becomes true when the caches are filled and the workers run, or stand by for leadership.
    pub ready: watch::Sender<bool>,
    /// Has the health check of the election once that has begun.
    pub watchdog: watch::Sender<Option<LeaderWatchdog>>,
    /// In which API events are posted.
    pub event_api: EventApi,
}

impl Default for ManagerOptions {
    fn default() -> Self {
        Self {
            scope: Scope::All,
            grace_period: Duration::from_secs(30),
            cache_sync_timeout: Duration::from_secs(120),
            permissions: Vec::new(),
            leader_election: None,
            log: ReconcileLog::default(),
            metrics: MetricsRegistry::default(),
            ready: watch::Sender::new(false),
            watchdog: watch::Sender::new(None),
            event_api: EventApi::default(),
        }
    }
}

/// Runs controllers against a cluster, or several.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use opkit_controller::{Action, Context, Controller, Error, Manager, ManagerOptions, Result};
///
/// async fn run(client: kube::Client) -> Result {
///     let controller = Controller::new(|_: Arc<ConfigMap>, _: Context| async {
///         Ok::<_, Error>(Action::await_change())
///     });
///     let manager = Manager::new("map-operator", client, ManagerOptions::default());
///     manager.controller(controller).run_until_signal().await?;
///     Ok(())
/// }
/// ```
pub struct Manager {
    operator: String,
    client: RestClient,
    /// Further ones.
    clusters: Vec<(Arc<str>, RestClient)>,
    options: ManagerOptions,
    controllers: Vec<AnyController>,
    runnables: Vec<AnyRunnable>,
    states: States,
    state_makers: Vec<StateMaker>,
    grants: Grants,
    cached: HashMap<TypeId, InformerOptions>,
}

impl fmt::Debug for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Manager")
            .field("operator", &self.operator)
            .field("controllers", &self.controllers)
            .field("runnables", &self.runnables)
            .finish_non_exhaustive()
    }
}

impl Manager {
    /// A manager without controllers, for the operator of this name.
    pub fn new(operator: impl Into<String>, client: kube::Client, options: ManagerOptions) -> Self {
        Self {
            operator: operator.into(),
            client: RestClient::new(client),
            clusters: Vec::new(),
            options,
            controllers: Vec::new(),
            runnables: Vec::new(),
            states: States::default(),
            state_makers: Vec::new(),
            grants: Grants::default(),
            cached: HashMap::new(),
        }
    }

    /// Adds a controller.
    pub fn controller(mut self, controller: impl Into<AnyController>) -> Self {
        self.controllers.push(controller.into());
        self
    }

    /// Runs the controllers against a further cluster as well. Requests of its objects have its
    /// name.
    pub fn cluster(mut self, name: impl Into<Arc<str>>, client: kube::Client) -> Self {
        self.clusters.push((name.into(), RestClient::new(client)));
        self
    }

    /// Adds a task that runs beside the controllers; see [`Runnable`](crate::Runnable). If it
    /// fails, all stops.
    pub fn runnable(mut self, runnable: impl Into<AnyRunnable>) -> Self {
        self.runnables.push(runnable.into());
        self
    }

    /// Gives the controllers that read it their state.
    pub fn state<S: Send + Sync + 'static>(mut self, state: Arc<S>) -> Self {
        self.states.insert(state);
        self
    }

    /// Gives the controllers that read it a state that `make` creates with a client, the caches and
    /// a recorder of events.
    ///
    /// Without leader election it is created once, when the manager starts. With it, what needs
    /// leadership gets a state of its own for each term, whose client refuses to write once that
    /// term is over; what needs none gets one at the start, whose client always writes.
    pub fn state_with<S, E, Fut>(
        mut self,
        make: impl Fn(StateContext) -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        S: Send + Sync + 'static,
        E: Into<Error> + Send + 'static,
        Fut: Future<Output = Result<S, E>> + Send + 'static,
    {
        self.state_makers.push(StateMaker::new(make));
        self
    }

    /// Lets objects refer to objects of kind `C` in other namespaces, and have children of kind `C`
    /// there ([`apply_unowned`](crate::Context::apply_unowned)), where `grant` returns true.
    pub fn cross_namespace<C: Object>(
        mut self,
        grant: impl Fn(&Reference, &MapContext) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.grants.insert::<C>(grant);
        self
    }

    /// Caches the kind `K` as `options` say: some of its objects, or without some of their fields.
    pub fn cache<K: Object>(mut self, options: InformerOptions) -> Self {
        self.cached.insert(TypeId::of::<K>(), options);
        self
    }

    /// Runs until SIGTERM or SIGINT; a second one ends it at once.
    ///
    /// # Errors
    /// As [`run`](Manager::run); [`ManagerError::Interrupted`] after a second signal.
    ///
    /// # Cancel safety
    /// Not cancel safe: dropping it stops everything at once, reconciles in work included.
    pub async fn run_until_signal(self) -> Result<(), ManagerError> {
        until_signal(|stop| self.run(stop)).await
    }

    /// Runs until `stop`.
    ///
    /// # Errors
    /// When the server does not know a kind, a permission is missing, the first lists do not come,
    /// a runnable fails, or something does not end in time, which is then named.
    ///
    /// # Cancel safety
    /// Not cancel safe: dropping it stops everything at once, reconciles in work included. Cancel
    /// `stop` instead.
    pub async fn run(self, stop: CancellationToken) -> Result<(), ManagerError> {
        self.check()?;
        let (operator, ready) = (self.operator.clone(), self.options.ready.clone());
        let grace = self.options.grace_period;
        let mut running = RunningManager::new(self);
        let result = match running.start(&stop).await {
            Some(Ok(())) => {
                ready.send_replace(true);
                info!(operator, "running");
                running.wait(&stop).await
            }
            Some(Err(error)) => Err(error),
            // Stopped before it was ready.
            None => Ok(()),
        };
        ready.send_replace(false);
        let late = running.stop(Deadline::after(grace)).await;
        info!(operator, "stopped");
        match (result, late) {
            (Err(first), Err(then)) => Err(ManagerError::Several {
                first: Box::new(first),
                then: Box::new(then),
            }),
            (result, late) => result.and(late),
        }
    }

    /// What can be known to be wrong before anything starts.
    fn check(&self) -> Result<(), ManagerError> {
        let mut names = HashSet::new();
        for controller in &self.controllers {
            controller.check(&self.operator)?;
            let spec = &controller.spec;
            if !names.insert(&spec.name) {
                return Err(ManagerError::NameTaken(spec.name.clone()));
            }
            let mut makers = self.state_makers.iter();
            if !self.states.has(&spec.state) && !makers.any(|maker| maker.state == spec.state) {
                return Err(ManagerError::NoState {
                    controller: spec.name.clone(),
                    state: spec.state.name,
                });
            }
        }
        if let Some(election) = &self.options.leader_election {
            election.check().map_err(ManagerError::LeaderElection)?;
        }
        let mut clusters = HashSet::new();
        for (name, _) in &self.clusters {
            if !clusters.insert(name) {
                return Err(ManagerError::ClusterTaken(name.to_string()));
            }
        }
        Ok(())
    }

    /// Creates the states that are read without leadership.
    async fn make_states(&mut self, context: &StateContext) -> Result<(), ManagerError> {
        let makers = self.state_makers.iter();
        let makers = makers.filter(|maker| self.needs_without_leadership(maker.state));
        // Collected, because the filter borrows what may not be held over an await.
        let makers: Vec<_> = makers.collect();
        let made = self.states.clone().with(makers, context);
        self.states = made.await?;
        Ok(())
    }

    fn needs_without_leadership(&self, state: StateType) -> bool {
        let mut controllers = self.controllers.iter();
        // Which state a runnable reads is not known.
        self.options.leader_election.is_none()
            || self.runnables.iter().any(|it| it.group == Group::Other)
            || controllers.any(|AnyController { spec, .. }| {
                !spec.options.needs_leader_election && spec.state == state
            })
    }

    fn runnables(&self, group: Group) -> Vec<AnyRunnable> {
        let runnables = self.runnables.iter();
        runnables
            .filter(|runnable| runnable.group == group)
            .cloned()
            .collect()
    }
}

/// Runs what `run` makes of a token that SIGTERM or SIGINT cancels; a second signal ends it at
/// once.
///
/// # Examples
/// ```
/// use opkit_controller::{ManagerError, until_signal};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), ManagerError> {
/// until_signal(|stop| async move {
///     let work = async { 7 };
///     println!("{:?}, unless a signal came first", stop.run_until_cancelled(work).await);
///     Ok::<_, ManagerError>(())
/// })
/// .await
/// # }
/// ```
///
/// # Errors
/// Those of `run`; [`ManagerError::Interrupted`] after a second signal.
///
/// # Cancel safety
/// As that of what `run` makes.
pub async fn until_signal<T, E, Fut>(run: impl FnOnce(CancellationToken) -> Fut) -> Result<T, E>
where
    E: From<ManagerError>,
    Fut: Future<Output = Result<T, E>>,
{
    let mut signals = Signals::new().map_err(ManagerError::Signals)?;
    let stop = CancellationToken::new();
    let mut run = pin!(run(stop.clone()));
    tokio::select! {
        result = &mut run => return result,
        signal = signals.next() => info!(signal, "stopping"),
    }
    stop.cancel();
    tokio::select! {
        result = &mut run => result,
        _ = signals.next() => Err(ManagerError::Interrupted.into()),
    }
}

#[cfg(test)]
mod tests;
