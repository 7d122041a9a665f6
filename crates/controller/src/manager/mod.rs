//! The manager: owns all tasks, and starts and stops them in order.
//!
//! Order of the start: servers, checks (the server serves each kind and grants each permission),
//! informers and their initial lists, tasks that need no leadership, and, after this process is
//! elected, tasks that need leadership. The stop has the reverse order and ends within the grace
//! period: no new reconciles start, running reconciles finish, and remaining events are posted. No
//! other module of the crates that run operators handles signals.

mod cluster;
mod each;
mod election;
mod first_slot;
mod parts;
mod posters;
mod preflight;
mod resolve;
mod runnable;
mod running;
mod sharding;
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

pub use self::each::Reconciled;
use self::runnable::Group;
pub use self::runnable::{AnyRunnable, RunContext, Runnable};
use self::running::RunningManager;
pub use self::sharding::ShardingOptions;
use self::signals::Signals;
use self::task_group::Deadline;
use crate::builder::AnyController;
use crate::error::{Error, ManagerError, Permission};
use crate::reads::cross_namespace::{Grants, Reference};
use crate::reads::{MapContext, UncachedKind, UndeclaredReads};
use crate::record::ReconcileLog;
use crate::state::{ReadDeclarations, StateContext, StateFactory, StateType, States};
use crate::worker::owners::ShardOwners;

/// Options of a [`Manager`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ManagerOptions {
    /// Watched namespaces; all by default.
    pub scope: Scope,
    /// Time for all tasks to finish after a stop; 30 s by default. Zero does not wait,
    /// [`Duration::MAX`] waits without a limit.
    pub grace_period: Duration,
    /// Time in which the caches must receive their initial lists; 2 min by default.
    pub cache_sync_timeout: Duration,
    /// Period in which each controller reconciles its objects again, unless the controller has a
    /// period of its own ([`Controller::resync`](crate::Controller::resync)); `None`, the default,
    /// for no resyncs.
    pub resync: Option<Duration>,
    /// Permissions that the operator needs in addition to list and watch. The manager checks them
    /// before it starts the controllers.
    pub permissions: Vec<Permission>,
    /// Whether the manager checks, before it starts the controllers, that the server serves each
    /// kind and grants each permission.
    pub preflight: bool,
    /// Options of the leader election among several processes, in which tasks that need leadership
    /// run in one process at a time. `None` if there is only one process.
    pub leader_election: Option<LeaderElectionOptions>,
    /// Options of a sharded operator, whose replicas divide the objects among them: a controller
    /// that needs leadership runs in every replica, and reconciles only the objects of that
    /// replica. Runnables that need leadership run in one replica. Takes precedence over
    /// `leader_election`.
    pub sharding: Option<ShardingOptions>,
    /// Handle to the owners of the objects of a sharded operator; keep a clone to look up owners
    /// while the manager runs.
    pub owners: ShardOwners,
    /// Log of the last reconciles.
    pub log: ReconcileLog,
    /// Registry of the metrics.
    pub metrics: MetricsRegistry,
    /// Set to `true` when the caches are filled, and the workers run or wait until this process is
    /// elected.
    pub ready: watch::Sender<bool>,
    /// Health check of the leader election; `None` until the election has started.
    pub watchdog: watch::Sender<Option<LeaderWatchdog>>,
    /// API version in which events are posted.
    pub event_api: EventApi,
}

impl Default for ManagerOptions {
    fn default() -> Self {
        Self {
            scope: Scope::All,
            grace_period: Duration::from_secs(30),
            cache_sync_timeout: Duration::from_secs(120),
            resync: None,
            permissions: Vec::new(),
            preflight: true,
            leader_election: None,
            sharding: None,
            owners: ShardOwners::default(),
            log: ReconcileLog::default(),
            metrics: MetricsRegistry::default(),
            ready: watch::Sender::new(false),
            watchdog: watch::Sender::new(None),
            event_api: EventApi::default(),
        }
    }
}

impl ManagerOptions {
    /// Returns the options of the Lease that this process has to hold; `None` without one.
    fn election(&self) -> Option<&LeaderElectionOptions> {
        let sharding = self.sharding.as_ref().map(|sharding| &sharding.election);
        sharding.or(self.leader_election.as_ref())
    }
}

/// Runs controllers against one or several clusters.
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
    /// Clusters in addition to the one that the operator runs in.
    clusters: Vec<(Arc<str>, RestClient)>,
    options: ManagerOptions,
    controllers: Vec<AnyController>,
    runnables: Vec<AnyRunnable>,
    states: States,
    state_factories: Vec<StateFactory>,
    grants: Grants,
    /// Kinds and states that the servers read.
    reads: ReadDeclarations,
    cached: HashMap<TypeId, InformerOptions>,
    /// Kinds that all controllers read from the server.
    uncached: Vec<UncachedKind>,
    undeclared: UndeclaredReads,
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
    /// Creates a manager for the operator with the name `operator`, without controllers.
    pub fn new(operator: impl Into<String>, client: kube::Client, options: ManagerOptions) -> Self {
        Self {
            operator: operator.into(),
            client: RestClient::new(client),
            clusters: Vec::new(),
            options,
            controllers: Vec::new(),
            runnables: Vec::new(),
            states: States::default(),
            state_factories: Vec::new(),
            grants: Grants::default(),
            reads: ReadDeclarations::default(),
            cached: HashMap::new(),
            uncached: Vec::new(),
            undeclared: UndeclaredReads::default(),
        }
    }

    /// Adds a controller.
    pub fn controller(mut self, controller: impl Into<AnyController>) -> Self {
        self.controllers.push(controller.into());
        self
    }

    /// Adds a further cluster that the controllers run against. A [`Request`](crate::Request) for
    /// an object of this cluster contains `name`.
    pub fn cluster(mut self, name: impl Into<Arc<str>>, client: kube::Client) -> Self {
        self.clusters.push((name.into(), RestClient::new(client)));
        self
    }

    /// Adds a task that runs beside the controllers; see [`Runnable`]. The manager
    /// stops if the task fails.
    pub fn runnable(mut self, runnable: impl Into<AnyRunnable>) -> Self {
        self.runnables.push(runnable.into());
        self
    }

    /// Adds a state: a value of the operator's own, such as a client of another system, that
    /// controllers and runnables read by its type.
    pub fn state<S: Send + Sync + 'static>(mut self, state: Arc<S>) -> Self {
        self.states.insert(state);
        self
    }

    /// Adds a state for the controllers that read it; see [`state`](Manager::state). `create`
    /// creates the state from a context with a client, the caches and an event recorder.
    ///
    /// Without leader election, the state is created once, when the manager starts. With leader
    /// election, tasks that need leadership get a new state for each leader term, and the client of
    /// that state refuses to write after the term. Tasks that need no leadership get a state that
    /// is created at the start, and its client always writes.
    pub fn state_with<S, E, Fut>(
        mut self,
        create: impl Fn(StateContext) -> Fut + Send + Sync + 'static,
    ) -> Self
    where
        S: Send + Sync + 'static,
        E: Into<Error> + Send + 'static,
        Fut: Future<Output = Result<S, E>> + Send + 'static,
    {
        self.state_factories.push(StateFactory::new(create));
        self
    }

    /// Allows references to objects of kind `C` in other namespaces, and children of kind `C` in
    /// other namespaces ([`apply_unowned`](crate::Context::apply_unowned)), if `grant` returns true
    /// for the reference.
    pub fn cross_namespace<C: Object>(
        mut self,
        grant: impl Fn(&Reference, &MapContext) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.grants.insert::<C>(grant);
        self
    }

    /// Sets the options of the cache of kind `K`, such as a selector, or fields that are not
    /// cached.
    pub fn cache<K: Object>(mut self, options: InformerOptions) -> Self {
        self.cached.insert(TypeId::of::<K>(), options);
        self
    }

    /// Allows all controllers to read the kind `K` from the server; see
    /// [`Controller::uncached`](crate::Controller::uncached).
    pub fn uncached<K: Object>(mut self) -> Self {
        self.uncached.push(UncachedKind::of::<K>(false));
        self
    }

    /// Allows all controllers to read the kind `K` from the cache of any of them, and from the
    /// server what is not there; see
    /// [`Controller::cached_or_live`](crate::Controller::cached_or_live).
    pub fn cached_or_live<K: Object>(mut self) -> Self {
        self.uncached.push(UncachedKind::of::<K>(true));
        self
    }

    /// Sets where kinds that are not declared are read; they are refused by default.
    pub fn undeclared_reads(mut self, reads: UndeclaredReads) -> Self {
        self.undeclared = reads;
        self
    }

    /// Declares kinds and states that a server of this manager reads, such as webhooks: the kinds
    /// are cached, and the states are created also in a process that is not the leader.
    pub fn reads(mut self, reads: &ReadDeclarations) -> Self {
        self.reads.extend(reads);
        self
    }

    /// Runs until SIGTERM or SIGINT, then stops within the grace period. A second signal ends the
    /// run immediately.
    ///
    /// # Errors
    /// Same as [`run`](Manager::run); [`ManagerError::Interrupted`] after a second signal.
    ///
    /// # Cancel safety
    /// Not cancel safe: dropping the future aborts all tasks, including running reconciles.
    pub async fn run_until_signal(self) -> Result<(), ManagerError> {
        until_signal(|stop| self.run(stop)).await
    }

    /// Runs until `stop` is cancelled.
    ///
    /// # Errors
    /// When the server does not serve a kind, a permission is missing, the initial lists take too
    /// long, a runnable fails, or a task does not end in time; the error names that kind,
    /// permission or task.
    ///
    /// # Cancel safety
    /// Not cancel safe: dropping the future aborts all tasks, including running reconciles. Cancel
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
            // The manager was stopped before it was ready.
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

    /// Checks names, states and options before any task starts.
    fn check(&self) -> Result<(), ManagerError> {
        let mut names = HashSet::new();
        for controller in &self.controllers {
            controller.check(&self.operator)?;
            let spec = &controller.spec;
            if !names.insert(&spec.name) {
                return Err(ManagerError::NameTaken(spec.name.clone()));
            }
            let mut factories = self.state_factories.iter();
            if !self.states.has(&spec.state)
                && !factories.any(|factory| factory.state == spec.state)
            {
                return Err(ManagerError::NoState {
                    controller: spec.name.clone(),
                    state: spec.state.name,
                });
            }
        }
        for state in &self.reads.states {
            let mut factories = self.state_factories.iter();
            if !self.states.has(state) && !factories.any(|factory| factory.state == *state) {
                return Err(ManagerError::NoWebhookState(state.name));
            }
        }
        if let Some(election) = self.options.election() {
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

    /// Creates the states of tasks that need no leadership.
    async fn create_states(&mut self, context: &StateContext) -> Result<(), ManagerError> {
        let factories = self.state_factories.iter();
        let factories = factories.filter(|factory| self.needs_without_leadership(factory.state));
        // Collected first, because the filter borrows a value that must not be held over an await.
        let factories: Vec<_> = factories.collect();
        let states = self.states.clone().with(factories, context);
        self.states = states.await?;
        Ok(())
    }

    fn needs_without_leadership(&self, state: StateType) -> bool {
        let mut controllers = self.controllers.iter();
        // It is not known which states a runnable reads.
        self.options.election().is_none()
            || self.reads.states.contains(&state)
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

/// Calls `run` with a token that SIGTERM or SIGINT cancels, and waits for the returned future. A
/// second signal ends the wait immediately.
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
/// The errors of `run`; [`ManagerError::Interrupted`] after a second signal.
///
/// # Cancel safety
/// Same as the future that `run` returns.
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
