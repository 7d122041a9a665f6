//! Turns each declared controller into a running controller, with its names, informers and queue.
//! This happens once, when the manager starts.

use std::collections::HashSet;
use std::sync::Arc;

use opkit_apimachinery::shard::ShardKey;
use opkit_workqueue::{MetricsProvider, Queue, QueueOptions, group_of};

use super::Manager;
use super::cluster::Cluster;
use super::parts::selected_for;
use crate::builder::AnyController;
use crate::builder::spec::ControllerSpec;
use crate::context::ClusterController;
use crate::context::apply::applied::AppliedChildren;
use crate::context::prune::OwnedKind;
use crate::object::Request;
use crate::reads::cross_namespace::{Grants, resource_of};
use crate::reads::{ControllerIdentity, Declared, Divided, MapContext, UndeclaredReads};
use crate::source::spec::Role;
use crate::source::{ControllerSources, DeletedObjects, Triggers};
use crate::state::States;
use crate::worker::metrics::ReconcileMetrics;
use crate::worker::slots::Slots;
use crate::worker::{Functions, RunningController};

/// Creates the running controllers of a manager.
pub(super) struct Resolver<'a> {
    manager: &'a Manager,
    clusters: &'a [Cluster],
    states: Arc<States>,
    grants: Arc<Grants>,
    metrics: ReconcileMetrics,
    queue_metrics: MetricsProvider,
    /// Slots of this replica, if the operator is sharded.
    slots: Option<Arc<Slots>>,
}

impl<'a> Resolver<'a> {
    /// Creates a resolver and registers the metrics of controllers and queues.
    pub(super) fn new(
        manager: &'a Manager,
        clusters: &'a [Cluster],
        slots: Option<&Arc<Slots>>,
    ) -> Self {
        let registry = &manager.options.metrics;
        let queue_metrics = MetricsProvider::default();
        let metrics = ReconcileMetrics::new(registry);
        queue_metrics.register(&mut registry.lock());
        Self {
            manager,
            clusters,
            states: Arc::new(manager.states.clone()),
            grants: Arc::new(manager.grants.clone()),
            metrics,
            queue_metrics,
            slots: slots.cloned(),
        }
    }

    /// Creates a running controller and starts its informers in all clusters. Also returns the
    /// triggers of the controller, each with the index of its source.
    pub(super) fn controller(
        &self,
        controller: AnyController,
    ) -> (RunningController, Vec<(usize, Triggers)>) {
        let AnyController {
            spec,
            triggers,
            rate_limiter,
        } = controller;
        let mut queue = QueueOptions::<Request> {
            fair_by: spec.options.is_fair.then_some(namespace_of),
            metrics: Some(self.queue_metrics.queue(&spec.name)),
            ..Default::default()
        };
        if let Some(limiter) = rate_limiter {
            queue.rate_limiter = limiter;
        }
        let identity = Arc::new(ControllerIdentity {
            name: spec.name.as_str().into(),
            kind: spec.kind.clone(),
            kind_name: spec.kind.noun().into(),
            field_manager: spec.field_manager(&self.manager.operator).into(),
        });
        let clusters = self.clusters.iter();
        let clusters = clusters.filter_map(|cluster| self.cluster(&spec, &identity, cluster));
        let clusters = clusters.collect();
        let workers = spec.options.max_concurrent_reconciles;
        let metrics = self.metrics.of(&identity.name, workers);
        let needs_leadership = spec.options.needs_leader_election;
        let slots = self.slots.as_ref().filter(|_| needs_leadership);
        let functions = Functions {
            reconciler: spec.reconciler,
            finalizer: spec.finalizer,
            error_policy: spec.error_policy,
            retries: spec.retries,
        };
        let deleted = slots.filter(|slots| slots.by == ShardKey::Uid && functions.take_key());
        let sources = ControllerSources {
            deleted: deleted.map(|_| DeletedObjects::default()),
            clusters,
            controller: identity,
            sources: spec.sources,
            event_filter: spec.event_filter,
            queue: Queue::new(queue),
            log: self.manager.options.log.clone(),
        };
        let (name, queue) = (sources.controller.name.clone(), sources.queue.clone());
        sources.log.add_queue(name, queue);
        let options = spec.options;
        let running = RunningController::new(sources, functions, options, metrics, &self.states);
        match slots {
            Some(slots) => (running.in_slots(slots.clone()), triggers),
            None => (running, triggers),
        }
    }

    /// Starts the informers of a controller in one cluster. The first source is the reconciled
    /// kind; every controller has at least this one.
    fn cluster(
        &self,
        spec: &ControllerSpec,
        identity: &Arc<ControllerIdentity>,
        cluster: &Cluster,
    ) -> Option<Arc<ClusterController>> {
        let mut declared = Declared {
            divided: self.slots.as_ref().map(|slots| Divided {
                by: slots.by,
                owned: slots.owned.clone(),
                types: HashSet::new(),
            }),
            ..Declared::default()
        };
        let (mut owned, mut unowned) = (Vec::new(), Vec::new());
        let mut informers = Vec::with_capacity(spec.sources.len());
        let selected = self.slots.as_ref();
        let selected = selected.map(|it| selected_for(it.by, &self.manager.cached, spec));
        let selected = selected.unwrap_or_else(|| vec![None; spec.sources.len()]);
        for (source, selected) in spec.sources.iter().zip(selected) {
            let watched = &source.watched;
            let informer = cluster.caches.informer(watched, selected);
            if let (Some(divided), Some(_)) = (&mut declared.divided, selected) {
                divided.types.extend(watched.type_id);
            }
            informers.push(informer.clone());
            let resource = resource_of(&watched.kind);
            let children = || OwnedKind {
                type_id: watched.type_id,
                informer: informer.clone(),
            };
            match source.role {
                Role::Owned => {
                    declared.owned.insert(resource);
                    owned.push(children());
                }
                Role::CreatedOnce => {
                    declared.created_once.insert(resource);
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
            match watched.type_id {
                Some(id) => declared.typed.insert(id, informer),
                None => declared.dynamic.insert(watched.kind.clone(), informer),
            };
        }
        self.declare_uncached(spec, cluster, &mut declared);
        let primary = informers.first()?.clone();
        for index in &spec.indexes {
            primary.add_index(index.clone());
        }
        Some(Arc::new(ClusterController {
            name: cluster.name.clone(),
            client: cluster.client.clone(),
            reads: MapContext {
                controller: identity.clone(),
                declared: Arc::new(declared),
                primary,
                grants: self.grants.clone(),
            },
            informers,
            applied: AppliedChildren::default(),
            events: match spec.options.needs_leader_election {
                true => cluster.leader_events.clone(),
                false => cluster.events.clone(),
            },
            owned,
            unowned,
        }))
    }
}

impl Resolver<'_> {
    /// Adds the kinds that a controller reads from the server in one cluster. What the controller
    /// declares has precedence over what the operator declares.
    fn declare_uncached(&self, spec: &ControllerSpec, cluster: &Cluster, declared: &mut Declared) {
        let all = self.manager.uncached.iter().chain(&spec.uncached);
        for uncached in all {
            let is_cached = uncached.or_cached.then_some(uncached.type_id);
            let informer = is_cached.and_then(|id| cluster.caches.of_type(id));
            declared.uncached.insert(uncached.type_id, informer);
        }
        declared.undeclared = self.manager.undeclared;
        if declared.undeclared != UndeclaredReads::CachedOrLive {
            return;
        }
        for id in cluster.caches.types() {
            let is_declared =
                declared.typed.contains_key(&id) || declared.uncached.contains_key(&id);
            let informer = (!is_declared).then(|| cluster.caches.of_type(id));
            if let Some(informer) = informer.flatten() {
                declared.uncached.insert(id, Some(informer));
            }
        }
    }
}

/// Returns the group of a request in a queue that is fair between namespaces: a hash of the
/// request's cluster and namespace.
fn namespace_of(request: &Request) -> u64 {
    group_of(&(request.cluster(), &request.namespace))
}
