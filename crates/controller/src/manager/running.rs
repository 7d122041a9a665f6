//! A running manager: starts all tasks in order, waits for a stop or a failure, and stops all tasks
//! in order.

use std::sync::Arc;

use futures::{FutureExt, TryFutureExt};
use opkit_cache::Informer;
use opkit_client::Fence;
use opkit_events::EventRecorder;
use opkit_leaderelection::{Leadership, ShardMember};
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use super::cluster::{Cluster, InformerTasks};
use super::election::Election;
use super::posters::EventPosters;
use super::resolve::Resolver;
use super::runnable::{Group, RunContext};
use super::sharding::Sharding;
use super::task_group::{Deadline, TaskGroup};
use super::{Manager, preflight, stuck};
use crate::builder::AnyController;
use crate::context::status::schema::report_status_gaps;
use crate::error::ManagerError;
use crate::source::resync;
use crate::state::{StateContext, States};
use crate::worker::RunningController;
use crate::worker::slots::Slots;

/// All tasks of a manager.
pub(super) struct RunningManager {
    pub(super) manager: Manager,
    /// Clusters; the first is the one that the operator runs in.
    pub(super) clusters: Vec<Cluster>,
    pub(super) controllers: Vec<Arc<RunningController>>,
    servers: TaskGroup,
    /// Tasks that need no leadership.
    others: TaskGroup,
    /// Tasks that need leadership, which run during the current leader term.
    pub(super) leaders: TaskGroup,
    pub(super) election: Option<Election>,
    /// Leadership of this process, for runnables and states.
    pub(super) leadership: watch::Sender<Leadership>,
    /// Context of the tasks that need no leadership.
    home: StateContext,
    /// Recorder of the tasks that need leadership.
    leader_events: EventRecorder,
    /// Informers of kinds that are only read, which no source keeps running.
    read_only: Vec<Informer>,
    /// This replica of a sharded operator, until it takes part in the ring.
    pub(super) member: Option<ShardMember>,
    /// Slots of this replica, if the operator is sharded.
    pub(super) slots: Option<Arc<Slots>>,
    /// Token that stops the changes of the caches with the slots of this replica.
    following: CancellationToken,
    /// Tasks that add requests to the queues.
    sources: JoinSet<()>,
    informers: InformerTasks,
    posters: EventPosters,
}

impl RunningManager {
    pub(super) fn new(manager: Manager) -> Self {
        let (posters, informers) = (EventPosters::default(), InformerTasks::default());
        let metrics = &manager.options.metrics;
        posters.metrics.register(&mut metrics.lock());
        let cluster = |name, client| Cluster::new(&manager, name, client, &posters, &informers);
        let home = cluster(None, &manager.client);
        let leadership = watch::Sender::new(Leadership::Standby);
        let context = StateContext {
            client: home.client.kube(),
            events: home.events.clone(),
            caches: home.caches.clone(),
            leadership: leadership.subscribe(),
        };
        let leader_events = home.leader_events.clone();
        let named = manager.clusters.iter();
        let named = named.map(|(name, client)| cluster(Some(name.clone()), client));
        Self {
            clusters: std::iter::once(home).chain(named).collect(),
            manager,
            controllers: Vec::new(),
            servers: TaskGroup::default(),
            others: TaskGroup::default(),
            leaders: TaskGroup::default(),
            election: None,
            leadership,
            home: context,
            leader_events,
            read_only: Vec::new(),
            member: None,
            slots: None,
            following: CancellationToken::new(),
            sources: JoinSet::new(),
            informers,
            posters,
        }
    }

    /// Starts all tasks in order. Returns `None` if `stop` is cancelled first.
    pub(super) async fn start(
        &mut self,
        stop: &CancellationToken,
    ) -> Option<Result<(), ManagerError>> {
        if let Err(error) = self.create_member() {
            return Some(Err(error));
        }
        let created = self.create_states();
        match stop.run_until_cancelled(created).await {
            Some(Ok(())) => {}
            ended => return ended,
        }
        let mut servers = std::mem::take(&mut self.servers);
        for server in self.manager.runnables(Group::Server) {
            servers.run(&server, self.run_context(None, &self.states()));
        }
        let started = tokio::select! {
            biased;
            error = servers.failed() => Some(Err(error)),
            started = stop.run_until_cancelled(self.start_caches()) => started,
        };
        self.servers = servers;
        if !matches!(started, Some(Ok(()))) {
            return started;
        }
        let mut others = std::mem::take(&mut self.others);
        for runnable in self.manager.runnables(Group::Other) {
            others.run(&runnable, self.run_context(None, &self.states()));
        }
        for controller in &self.controllers {
            if !controller.options.needs_leader_election {
                others.work(controller);
            }
        }
        self.others = others;
        Some(self.start_leading())
    }

    async fn create_states(&mut self) -> Result<(), ManagerError> {
        self.manager.create_states(&self.home).await
    }

    /// Returns the context of tasks and of the user's functions that create states. With a fence,
    /// the client of the context writes only during the leader term of the fence. Without a fence,
    /// the client always writes.
    pub(super) fn context(&self, fence: Option<&Fence>) -> StateContext {
        match fence {
            Some(fence) => StateContext {
                client: fence.layer(self.home.client()),
                events: self.leader_events.clone(),
                ..self.home.clone()
            },
            None => self.home.clone(),
        }
    }

    /// Creates the states and fills the caches, without any other task.
    pub(super) async fn prepare(&mut self) -> Result<(), ManagerError> {
        self.create_states().await?;
        self.start_caches().await
    }

    /// Starts the informers and sources, checks kinds and permissions, and waits until the sources
    /// of every controller have processed the initial lists.
    async fn start_caches(&mut self) -> Result<(), ManagerError> {
        let controllers = std::mem::take(&mut self.manager.controllers);
        let sources = controllers.iter().flat_map(|it| &it.spec.sources);
        let watched = sources.map(|it| &it.watched.kind);
        let watched: Vec<_> = watched.cloned().collect();
        // Kinds that are only read are cached in the cluster that the operator runs in.
        let at_home = watched.iter().chain(self.manager.reads.kinds());
        let at_home: Vec<_> = at_home.cloned().collect();
        let uncached = controllers.iter().flat_map(|it| &it.spec.uncached);
        let uncached = uncached.chain(&self.manager.uncached);
        let uncached: Vec<_> = uncached.map(|it| it.kind.clone()).collect();
        let reconciled = controllers.iter().map(|it| (*it.spec.kind).clone());
        let reconciled: Vec<_> = reconciled.collect();
        let timeouts = controllers.iter();
        let timeouts = timeouts.filter_map(|it| it.spec.options.cache_sync_timeout);
        let timeout = self.manager.options.cache_sync_timeout;
        let timeout = timeouts.fold(timeout, Ord::min);
        let first_lists = self.start_sources(controllers);
        // The informers list at the same time, so a start takes no longer than the slower of both.
        let (operator, options) = (&self.manager.operator, &self.manager.options);
        let each = self.clusters.iter().map(async |cluster| {
            let checked = async {
                match options.preflight {
                    true => {
                        let (client, name) = (&cluster.client, &cluster.name);
                        let watched = if name.is_none() { &at_home } else { &watched };
                        preflight::check(operator, client, options, watched, &uncached).await
                    }
                    false => Ok(()),
                }
            };
            let synced = cluster.factory.wait_for_sync(timeout);
            let reported = report_status_gaps(&cluster.client, &reconciled).map(Ok);
            futures::try_join!(checked, synced.map_err(ManagerError::Sync), reported).map(drop)
        });
        futures::future::try_join_all(each).await?;
        for first_list in first_lists {
            // An error means that the task of the source has stopped, which `wait` reports.
            let _ = first_list.await;
        }
        Ok(())
    }

    /// Creates the running controllers and starts their informers and sources. Returns a receiver
    /// for each source, which is notified after the source has processed its initial list.
    fn start_sources(&mut self, controllers: Vec<AnyController>) -> Vec<oneshot::Receiver<()>> {
        let resolver = Resolver::new(&self.manager, &self.clusters, self.slots.as_ref());
        for cluster in &self.clusters {
            cluster.register_cache(&self.manager.options.metrics);
        }
        let mut first_lists = Vec::new();
        if let Some(home) = self.clusters.first() {
            let watched = self.manager.reads.watched.iter();
            let informers = watched.map(|it| home.caches.informer(it, None));
            self.read_only.extend(informers);
        }
        for controller in controllers {
            let (controller, triggers) = resolver.controller(controller);
            let controller = Arc::new(controller);
            let (tasks, stop) = (&mut self.sources, &self.informers.stop);
            let default = self.manager.options.resync;
            let resync = resync::period(controller.options.resync, default);
            for cluster in &controller.sources.clusters {
                for (source, informer) in cluster.informers.iter().enumerate() {
                    let (synced, first_list) = oneshot::channel();
                    first_lists.push(first_list);
                    let (sources, cluster) = (controller.sources.clone(), cluster.clone());
                    let listener = match resync {
                        Some(period) => informer.listen().resync(period),
                        None => informer.listen(),
                    };
                    let task = sources.run(cluster, source, listener, synced);
                    feed(tasks, stop, task);
                }
            }
            for (source, triggers) in triggers {
                feed(
                    tasks,
                    stop,
                    triggers.run(controller.sources.clone(), source),
                );
            }
            feed(tasks, stop, stuck::watch(controller.clone()));
            self.controllers.push(controller);
        }
        if let Some(slots) = &self.slots {
            let controllers = self.controllers.iter();
            let controllers = controllers.filter(|it| it.slots().is_some()).cloned();
            let clusters = self.clusters.iter();
            let sharding = Sharding {
                slots: slots.clone(),
                controllers: controllers.collect(),
                informers: (clusters.flat_map(|it| it.caches.part_informers())).collect(),
                timeout: self.manager.options.cache_sync_timeout,
            };
            self.following = self.informers.stop.child_token();
            feed(&mut self.sources, &self.following, sharding.follow());
        }
        first_lists
    }

    /// Returns the states of the tasks that need no leadership.
    pub(super) fn states(&self) -> Arc<States> {
        Arc::new(self.manager.states.clone())
    }

    pub(super) fn run_context(&self, fence: Option<&Fence>, states: &Arc<States>) -> RunContext {
        RunContext {
            stop: CancellationToken::new(),
            metrics: self.manager.options.metrics.clone(),
            states: states.clone(),
            owners: self.manager.options.owners.clone(),
            home: self.context(fence),
        }
    }

    /// Waits until `stop` is cancelled or a task fails.
    pub(super) async fn wait(&mut self, stop: &CancellationToken) -> Result<(), ManagerError> {
        loop {
            let leadership = tokio::select! {
                () = stop.cancelled() => return Ok(()),
                error = self.servers.failed() => return Err(error),
                error = self.others.failed() => return Err(error),
                error = self.leaders.failed() => return Err(error),
                // A map function of the user has panicked, which must not be ignored.
                error = first_panic(&mut self.sources) => {
                    return Err(ManagerError::Internal(error.into()));
                }
                leadership = changed(&mut self.election) => match leadership {
                    Ok(leadership) => leadership,
                    Err(error) => return Err(ManagerError::Internal(error.into())),
                },
            };
            // A task that blocks its thread cannot be dropped, so a stop does not wait for it here.
            match stop.run_until_cancelled(self.follow(leadership)).await {
                Some(followed) => followed?,
                None => return Ok(()),
            }
        }
    }

    /// Stops all tasks in order. Aborts tasks that have not stopped by the deadline.
    pub(super) async fn stop(mut self, deadline: Deadline) -> Result<(), ManagerError> {
        let mut late = Vec::new();
        for controller in &self.controllers {
            controller.sources.queue.shut_down();
        }
        self.following.cancel();
        if let (Some(election), Some(_)) = (&self.election, &self.slots) {
            election.leave();
        }
        self.leaders.stop(deadline, &mut late).await;
        self.leadership.send_replace(Leadership::Standby);
        self.others.stop(deadline, &mut late).await;
        // Events are posted before the lease is released: afterwards the fence refuses writes.
        self.posters.flush(deadline).await;
        if let Some(election) = &mut self.election {
            election.release(deadline, &mut late).await;
        }
        self.informers.stop.cancel();
        self.informers.tracker.close();
        if !deadline.holds(self.informers.tracker.wait()).await {
            late.push("the informers".to_owned());
        }
        let sources = async { while self.sources.join_next().await.is_some() {} };
        if !deadline.holds(sources).await {
            late.push("a map function".to_owned());
            self.sources.abort_all();
            self.sources.detach_all();
        }
        self.servers.stop(deadline, &mut late).await;
        // Without a grace period, late tasks are expected.
        if late.is_empty() || deadline.grace.is_zero() {
            return Ok(());
        }
        warn!(late = late.join(", "), "not all tasks stopped in time");
        let seconds = deadline.grace.as_secs();
        Err(ManagerError::Late { seconds, late })
    }
}

/// Waits until leadership changes. Never returns if there is no election.
async fn changed(election: &mut Option<Election>) -> Result<Leadership, JoinError> {
    match election {
        Some(election) => election.changed().await,
        None => std::future::pending().await,
    }
}

/// Stops the tasks without waiting for them, for a manager that is dropped.
impl Drop for RunningManager {
    fn drop(&mut self) {
        self.informers.stop.cancel();
    }
}

/// Spawns a task that adds requests to a queue until `stop` is cancelled.
fn feed(
    sources: &mut JoinSet<()>,
    stop: &CancellationToken,
    source: impl Future<Output = ()> + Send + 'static,
) {
    let stop = stop.clone();
    sources.spawn(async move {
        stop.run_until_cancelled(source).await;
    });
}

/// Waits until a task panics. Never returns if no task panics.
async fn first_panic(tasks: &mut JoinSet<()>) -> JoinError {
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            return error;
        }
    }
    std::future::pending().await
}
