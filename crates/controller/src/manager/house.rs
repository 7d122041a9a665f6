//! Everything that a manager runs: started in order, watched, stopped in order.

use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, TryFutureExt};
use opkit_cache::InformerFactory;
use opkit_client::{Fence, RestClient};
use opkit_events::{EventMetrics, EventRecorder, Reporter, event_recorder};
use opkit_leaderelection::Leadership;
use opkit_servers::metrics::MetricsRegistry;
use opkit_workqueue::{MetricsProvider, Queue, QueueOptions, group_of};
use parking_lot::RwLock;
use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::warn;

use super::crew::{Crew, Deadline};
use super::election::Election;
use super::{Manager, ManagerOptions, preflight, stuck};
use crate::builder::AnyController;
use crate::builder::spec::{ControllerSpec, Role, Watched};
use crate::context::Shared;
use crate::context::apply::applied::AppliedChildren;
use crate::context::prune::OwnedKind;
use crate::context::status::schema::report_status_gaps;
use crate::error::ManagerError;
use crate::manager::runnable::{Group, RunContext};
use crate::object::Request;
use crate::reads::cross_namespace::resource_of;
use crate::reads::{Declared, MapContext};
use crate::record::causes::Why;
use crate::source::enqueue;
use crate::state::{Caches, StateContext, States};
use crate::worker::metrics::ReconcileMetrics;
use crate::worker::{Running, Side};

/// How long events may take to be flushed after everything else has ended, within the grace period.
const FLUSH: Duration = Duration::from_secs(5);

/// Everything that runs, and how to stop it.
pub(super) struct House {
    manager: Manager,
    clusters: Vec<Cluster>,
    controllers: Vec<Arc<Running>>,
    servers: Crew,
    /// What needs no leadership.
    others: Crew,
    /// What needs it.
    leaders: Crew,
    election: Option<Election>,
    /// From informers, and from elsewhere, into the queues.
    sources: JoinSet<()>,
    caches: TaskTracker,
    stop_caches: CancellationToken,
    posters: TaskTracker,
    stop_posters: CancellationToken,
    abort_posters: CancellationToken,
    event_metrics: EventMetrics,
}

/// A cluster that controllers run against.
struct Cluster {
    name: Option<Arc<str>>,
    client: RestClient,
    factory: Arc<InformerFactory>,
    events: EventRecorder,
    /// Of what needs leadership: posted while the process leads.
    leader_events: EventRecorder,
    /// The caches that the functions of states may read.
    caches: Arc<Caches>,
}

impl Cluster {
    /// Returns the context that a state is created with. With a fence, its client writes only
    /// during the term of that fence; without one, as for controllers that need no leadership, it
    /// always writes.
    fn state_context(&self, fence: Option<&Fence>) -> StateContext {
        let client = self.client.kube();
        let (client, events) = match fence {
            Some(fence) => (fence.layer(client), &self.leader_events),
            None => (client, &self.events),
        };
        StateContext {
            client,
            events: events.clone(),
            caches: self.caches.clone(),
        }
    }

    /// The home cluster's metrics have no label of their own, so that those of an operator for one
    /// cluster do not.
    fn register_cache(&self, metrics: &MetricsRegistry) {
        let collector = Box::new(self.factory.metrics());
        let mut registry = metrics.lock();
        match &self.name {
            Some(name) => {
                let label = ("cluster".into(), name.to_string().into());
                registry
                    .sub_registry_with_label(label)
                    .register_collector(collector);
            }
            None => registry.register_collector(collector),
        }
    }
}

impl House {
    pub(super) fn new(manager: Manager) -> Self {
        let mut house = Self {
            manager,
            clusters: Vec::new(),
            controllers: Vec::new(),
            servers: Crew::default(),
            others: Crew::default(),
            leaders: Crew::default(),
            election: None,
            sources: JoinSet::new(),
            caches: TaskTracker::new(),
            stop_caches: CancellationToken::new(),
            posters: TaskTracker::new(),
            stop_posters: CancellationToken::new(),
            abort_posters: CancellationToken::new(),
            event_metrics: EventMetrics::default(),
        };
        let metrics = &house.manager.options.metrics;
        house.event_metrics.register(&mut metrics.lock());
        let home = house.cluster(None, &house.manager.client);
        let named = house.manager.clusters.iter();
        let named = named.map(|(name, client)| house.cluster(Some(name.clone()), client));
        house.clusters = std::iter::once(home).chain(named).collect();
        house
    }

    /// Records events and posts them through `client`.
    fn recorder(&self, client: RestClient) -> EventRecorder {
        let manager = &self.manager;
        let reporter = Reporter::new(&manager.operator, manager.options.event_api);
        let (events, posting) = event_recorder(client, reporter, self.event_metrics.clone());
        let (stop, abort) = (self.stop_posters.clone(), self.abort_posters.clone());
        self.posters.spawn(async move {
            abort.run_until_cancelled(posting.run(stop)).await;
        });
        events
    }

    fn cluster(&self, name: Option<Arc<str>>, client: &RestClient) -> Cluster {
        let manager = &self.manager;
        let events = self.recorder(client.clone());
        let leader_events = match &manager.options.leader_election {
            Some(election) => self.recorder(RestClient::new(election.fence.layer(client.kube()))),
            None => events.clone(),
        };
        let factory = InformerFactory::new(
            client.clone(),
            manager.options.scope.clone(),
            self.caches.clone(),
            self.stop_caches.clone(),
        );
        let controllers = manager.controllers.iter();
        let field_managers = controllers.map(|it| it.spec.field_manager(&manager.operator));
        let factory = Arc::new(factory.keep_managers(field_managers));
        let sources = manager.controllers.iter().flat_map(|it| &it.spec.sources);
        let caches = Caches {
            factory: factory.clone(),
            watched: sources.map(|source| source.watched.clone()).collect(),
            options: manager.cached.clone(),
            timeout: manager.options.cache_sync_timeout,
        };
        Cluster {
            name,
            client: client.clone(),
            factory,
            events,
            leader_events,
            caches: Arc::new(caches),
        }
    }

    /// Starts everything in order; `None` if `stop` comes first.
    pub(super) async fn start(
        &mut self,
        stop: &CancellationToken,
    ) -> Option<Result<(), ManagerError>> {
        // The first is the home cluster.
        let context = self.clusters.first()?.state_context(None);
        let made = self.manager.make_states(&context);
        match stop.run_until_cancelled(made).await {
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
        for running in &self.controllers {
            if !running.spec.options.needs_leader_election {
                others.work(running);
            }
        }
        self.others = others;
        Some(self.start_leading())
    }

    /// Stands for leader, or starts at once what needs leadership where nobody is elected.
    fn start_leading(&mut self) -> Result<(), ManagerError> {
        let Some(options) = self.manager.options.leader_election.take() else {
            let states = self.states();
            self.lead(None, &states);
            return Ok(());
        };
        let ManagerOptions {
            metrics, watchdog, ..
        } = &self.manager.options;
        let election = Election::start(self.manager.client.clone(), options, metrics, watchdog);
        self.election = Some(election.map_err(ManagerError::LeaderElection)?);
        Ok(())
    }

    /// Starts what needs leadership, writing behind the fence of the term, with the states of the
    /// term.
    fn lead(&mut self, fence: Option<&Fence>, states: &Arc<States>) {
        let mut leaders = Crew::default();
        for runnable in self.manager.runnables(Group::Leader) {
            leaders.run(&runnable, self.run_context(fence, states));
        }
        for running in &self.controllers {
            if !running.spec.options.needs_leader_election {
                continue;
            }
            if let Some(fence) = fence {
                let sides = running.sides.iter();
                sides.for_each(|side| side.begin_term(fence, states));
            }
            leaders.work(running);
        }
        self.leaders = leaders;
    }

    /// Follows a change of leadership, and further ones that come meanwhile.
    async fn follow(&mut self, leadership: Leadership) -> Result<(), ManagerError> {
        let mut next = Some(leadership);
        while let Some(leadership) = next {
            next = match leadership {
                Leadership::Leading { term } => self.begin_term(term).await?,
                Leadership::Standby => {
                    self.leaders.abandon().await;
                    if let Some(election) = &mut self.election {
                        election.ended();
                    }
                    None
                }
            };
        }
        Ok(())
    }

    /// Creates the states of a term and starts its work. Returns how the leadership changed if that
    /// happens before the states are there.
    async fn begin_term(&mut self, term: u64) -> Result<Option<Leadership>, ManagerError> {
        let (Some(election), Some(home)) = (&mut self.election, self.clusters.first()) else {
            return Ok(None);
        };
        let Some(fence) = election.begin(term) else {
            return Ok(None);
        };
        let context = home.state_context(Some(&fence));
        let states = self.manager.states.clone();
        let states = tokio::select! {
            states = states.with(&self.manager.state_makers, &context) => Arc::new(states?),
            changed = election.changed() => {
                return Ok(Some(changed.map_err(|error| ManagerError::Internal(error.into()))?));
            }
        };
        // What other replicas did, and when they meant to reconcile next, is not known here.
        if term > 1 {
            let needs = |it: &&Arc<Running>| it.spec.options.needs_leader_election;
            for running in self.controllers.iter().filter(needs) {
                running.requeue_all();
            }
        }
        self.lead(Some(&fence), &states);
        Ok(None)
    }

    /// Starts informers, checks, and waits until every controller has seen the first lists.
    async fn start_caches(&mut self) -> Result<(), ManagerError> {
        let kinds = self.manager.controllers.iter();
        let kinds = kinds.flat_map(|it| it.spec.sources.iter().map(|s| s.watched.kind.clone()));
        let kinds: Vec<_> = kinds.collect();
        let own = self.manager.controllers.iter();
        let own: Vec<_> = own.map(|it| (*it.spec.kind).clone()).collect();
        let metrics = ReconcileMetrics::new(&self.manager.options.metrics);
        let queues = MetricsProvider::default();
        queues.register(&mut self.manager.options.metrics.lock());
        for cluster in &self.clusters {
            cluster.register_cache(&self.manager.options.metrics);
        }
        let mut first_lists = Vec::new();
        let mut timeout = self.manager.options.cache_sync_timeout;
        for controller in std::mem::take(&mut self.manager.controllers) {
            let AnyController {
                spec,
                triggers,
                rate_limiter,
            } = controller;
            if let Some(limit) = spec.options.cache_sync_timeout {
                timeout = timeout.min(limit);
            }
            let mut queue = QueueOptions::<Request> {
                fair_by: spec.options.is_fair.then_some(namespace_of),
                metrics: Some(queues.queue(&spec.name)),
                ..Default::default()
            };
            if let Some(limiter) = rate_limiter {
                queue.rate_limiter = limiter;
            }
            let running = Arc::new(self.running(spec, Queue::new(queue), &metrics));
            for (side, cluster) in running.sides.iter().zip(&self.clusters) {
                for (n, source) in running.spec.sources.iter().enumerate() {
                    let informer = source.watched.start(&cluster.factory, &self.manager.cached);
                    let (synced, first_list) = oneshot::channel();
                    first_lists.push(first_list);
                    let (running, side) = (running.clone(), side.clone());
                    let run = enqueue::run(running, side, n, informer.listen(), synced);
                    feed(&mut self.sources, &self.stop_caches, run);
                }
            }
            for (source, triggers) in triggers {
                let run = triggers.run(running.clone(), source);
                feed(&mut self.sources, &self.stop_caches, run);
            }
            let watch = stuck::watch(running.clone());
            feed(&mut self.sources, &self.stop_caches, watch);
            self.controllers.push(running);
        }
        // Informers list meanwhile: a start takes no longer than the slower of both.
        let (operator, options) = (&self.manager.operator, &self.manager.options);
        let each = self.clusters.iter().map(async |cluster| {
            let checked = preflight::check(operator, &cluster.client, options, &kinds);
            let synced = cluster.factory.wait_for_sync(timeout);
            let told = report_status_gaps(&cluster.client, &own).map(Ok);
            futures::try_join!(checked, synced.map_err(ManagerError::Sync), told).map(drop)
        });
        futures::future::try_join_all(each).await?;
        for first_list in first_lists {
            // An error means that the source's task is gone, which the stop will tell.
            let _ = first_list.await;
        }
        Ok(())
    }

    /// The states of what needs no leadership.
    fn states(&self) -> Arc<States> {
        Arc::new(self.manager.states.clone())
    }

    fn run_context(&self, fence: Option<&Fence>, states: &Arc<States>) -> RunContext {
        let client = self.manager.client.kube();
        RunContext {
            stop: CancellationToken::new(),
            client: match fence {
                Some(fence) => fence.layer(client),
                None => client,
            },
            metrics: self.manager.options.metrics.clone(),
            states: states.clone(),
        }
    }

    fn running(
        &self,
        spec: ControllerSpec,
        queue: Queue<Request, Why>,
        metrics: &ReconcileMetrics,
    ) -> Running {
        let sides = self.clusters.iter();
        Running {
            name: spec.name.as_str().into(),
            kind: spec.kind.noun().into(),
            field_manager: spec.field_manager(&self.manager.operator),
            sides: sides
                .map(|cluster| Arc::new(self.side(&spec, cluster)))
                .collect(),
            queue,
            log: self.manager.options.log.clone(),
            metrics: metrics.of(&spec.name, spec.options.max_concurrent_reconciles),
            spec,
        }
    }

    fn side(&self, spec: &ControllerSpec, cluster: &Cluster) -> Side {
        let start = |watched: &Watched| watched.start(&cluster.factory, &self.manager.cached);
        let mut declared = Declared::default();
        let (mut owned, mut unowned) = (Vec::new(), Vec::new());
        let mut informers = Vec::new();
        for source in &spec.sources {
            let informer = start(&source.watched);
            informers.push(informer.clone());
            let resource = resource_of(&source.watched.kind);
            let children = || OwnedKind {
                type_id: source.watched.type_id,
                informer: informer.clone(),
            };
            match source.role {
                Role::Owned => {
                    declared.owned.insert(resource);
                    owned.push(children());
                }
                Role::Unowned => {
                    declared.unowned.insert(resource);
                    unowned.push(children());
                }
                Role::Referenced => {
                    declared.referenced.insert(resource);
                }
                Role::Primary | Role::Watched => {}
            }
            match source.watched.type_id {
                Some(id) => {
                    declared.typed.insert(id, informer);
                }
                None => {
                    let kind = source.watched.kind.clone();
                    declared.dynamic.insert(kind, informer);
                }
            }
        }
        let informer = start(&spec.watched);
        for index in &spec.indexes {
            informer.add_index(index.clone());
        }
        let reads = MapContext {
            controller: spec.name.as_str().into(),
            kind: (*spec.kind).clone(),
            declared: Arc::new(declared),
            primary: informer.clone(),
            field_manager: spec.field_manager(&self.manager.operator).into(),
            grants: Arc::new(self.manager.grants.clone()),
        };
        let applied = Arc::new(AppliedChildren::default());
        let shared = Shared {
            client: cluster.client.clone(),
            field_manager: spec.field_manager(&self.manager.operator),
            cluster: cluster.name.clone(),
            reads: reads.clone(),
            applied: applied.clone(),
            events: match spec.options.needs_leader_election {
                true => cluster.leader_events.clone(),
                false => cluster.events.clone(),
            },
            states: self.states(),
            primary: informer.clone(),
            owned,
            unowned,
        };
        Side {
            cluster: cluster.name.clone(),
            client: cluster.client.clone(),
            informer,
            informers,
            reads,
            applied,
            shared: RwLock::new(Arc::new(shared)),
        }
    }

    /// Waits until `stop`, or until something ends that should not.
    pub(super) async fn wait(&mut self, stop: &CancellationToken) -> Result<(), ManagerError> {
        loop {
            let leadership = tokio::select! {
                () = stop.cancelled() => return Ok(()),
                error = self.servers.failed() => return Err(error),
                error = self.others.failed() => return Err(error),
                error = self.leaders.failed() => return Err(error),
                // A map function of the user's that panics: not to be survived silently.
                error = first_panic(&mut self.sources) => {
                    return Err(ManagerError::Internal(error.into()));
                }
                leadership = changed(&mut self.election) => match leadership {
                    Ok(leadership) => leadership,
                    Err(error) => return Err(ManagerError::Internal(error.into())),
                },
            };
            // What blocks its thread cannot be dropped: a stop does not wait for it here.
            match stop.run_until_cancelled(self.follow(leadership)).await {
                Some(followed) => followed?,
                None => return Ok(()),
            }
        }
    }

    async fn flush_events(&mut self, deadline: Deadline) {
        self.stop_posters.cancel();
        self.posters.close();
        let posted = tokio::time::timeout(FLUSH, deadline.holds(self.posters.wait())).await;
        if posted != Ok(true) {
            self.abort_posters.cancel();
            warn!("events were not posted in time");
        }
    }

    /// Stops everything, in order, by the deadline.
    pub(super) async fn stop(mut self, deadline: Deadline) -> Result<(), ManagerError> {
        let mut late = Vec::new();
        for running in &self.controllers {
            running.queue.shut_down();
        }
        self.leaders.stop(deadline, &mut late).await;
        self.others.stop(deadline, &mut late).await;
        // Before the lease is released: afterwards their writes would be refused.
        self.flush_events(deadline).await;
        if let Some(election) = &mut self.election {
            election.release(deadline, &mut late).await;
        }
        self.stop_caches.cancel();
        self.caches.close();
        if !deadline.holds(self.caches.wait()).await {
            late.push("the informers".to_owned());
        }
        let sources = async { while self.sources.join_next().await.is_some() {} };
        if !deadline.holds(sources).await {
            late.push("a map function".to_owned());
            self.sources.abort_all();
            self.sources.detach_all();
        }
        self.servers.stop(deadline, &mut late).await;
        // Who does not want to wait does not want to hear of it.
        if late.is_empty() || deadline.grace.is_zero() {
            return Ok(());
        }
        warn!(late = late.join(", "), "not everything ended in time");
        let seconds = deadline.grace.as_secs();
        Err(ManagerError::Late { seconds, late })
    }
}

/// Waits until leadership changes; for ever where nobody is elected.
async fn changed(election: &mut Option<Election>) -> Result<Leadership, JoinError> {
    match election {
        Some(election) => election.changed().await,
        None => std::future::pending().await,
    }
}

/// A manager that is dropped stops its tasks as well, though nobody waits for them.
impl Drop for House {
    fn drop(&mut self) {
        for stop in [&self.stop_caches, &self.abort_posters] {
            stop.cancel();
        }
    }
}

/// Runs what feeds the queues until `stop`.
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

/// What requests that are served in turn have in common.
fn namespace_of(request: &Request) -> u64 {
    group_of(&(request.cluster(), &request.namespace))
}

/// Waits until a task panics; for ever if none does.
async fn first_panic(tasks: &mut JoinSet<()>) -> JoinError {
    while let Some(ended) = tasks.join_next().await {
        if let Err(error) = ended {
            return error;
        }
    }
    std::future::pending().await
}
