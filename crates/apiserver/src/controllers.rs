//! The controllers of the control plane: garbage collection, namespaces, CRDs and workloads.
//!
//! In a cluster, kube-apiserver runs the controllers of CRDs and APIServices itself; the other
//! controllers are those of kube-controller-manager, the scheduler and the kubelet, and [`Scope`]
//! can leave them out.
//!
//! One task reads the events of all resources in the order of the revisions, and adds a work item
//! to a queue for each object to check. The queue contains each work item at most once. A
//! controller that handles a work item reads the current state and makes the next changes; each
//! write is a new event. No state is kept between work items, so a controller may miss any number
//! of events.

mod aggregation;
mod api_services;
mod crds;
mod disruption;
mod endpoints;
mod garbage;
mod namespaces;
mod protection;
mod quotas;

use std::collections::{HashSet, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use tokio_util::sync::CancellationToken;

use crate::aggregator::API_SERVICES;
use crate::registry::budgets::RESOURCE as BUDGETS;
use crate::registry::{ROOT_CA, Registry};
use crate::status::ApiResult;
use crate::store::{Change, Event, Key};
use crate::{object, workloads};
pub(crate) use api_services::desired as desired_api_service;

/// The field manager of the controllers.
pub(crate) const MANAGER: &str = "kube-controller-manager";
/// The resource name of CRDs. The name of each CRD, such as `robots.example.com`, is the resource
/// name of the objects that the CRD defines.
const CRDS: &str = "customresourcedefinitions.apiextensions.k8s.io";
/// The label of the APIServices that the server manages itself.
const MANAGED: &str = "kube-aggregator.kubernetes.io/automanaged";
/// Maximum number of attempts at a work item that fails. After the last attempt, the object is
/// handled again at its next event.
const ATTEMPTS: u32 = 12;
/// Number of attempts without a pause. A write that fails for longer is usually refused by a
/// webhook, which may respond later.
const IMMEDIATE_ATTEMPTS: u32 = 5;
/// Pause before the first attempt with a pause. Each further pause is twice as long; the last is
/// about half a minute.
const BACKOFF: Duration = Duration::from_millis(500);

/// Number of writes between two runs of the controllers' task that count as much load by clients.
const BUSY: u64 = 4;
/// Maximum number of times that all other tasks of the runtime run before the next work item, while
/// there is much load by clients.
const YIELDS_MAX: u32 = 32;

/// A work item: one object for one controller.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Work {
    /// An object with owner references. The garbage collector deletes the object if no owner
    /// exists.
    Dependent {
        resource: String,
        key: Key,
    },
    /// An object that is being deleted, and that may wait for the deletion of its dependents.
    Owner {
        resource: String,
        key: Key,
    },
    /// All ClusterRoles that aggregate other ClusterRoles.
    AggregatedClusterRoles,
    Namespace(Key),
    CustomResourceDefinition(Key),
    /// An APIService that may be one of the server's own.
    ApiService(Key),
    Deployment(Key),
    ReplicaSet(Key),
    Pod(Key),
    /// A Service whose endpoints may have to change.
    Service(Key),
    PodDisruptionBudget(Key),
    PersistentVolumeClaim(Key),
    PersistentVolume(Key),
    ResourceQuota(Key),
}

/// A queue that contains each work item at most once. A work item that is added while it is
/// handled is queued again when that ends.
#[derive(Debug, Default)]
struct Queue {
    order: VecDeque<(Work, u32)>,
    waiting: HashSet<Work>,
    handled: HashSet<Work>,
    added_again: HashSet<Work>,
}

/// A work item that has been handled.
#[derive(Debug)]
struct FinishedStep {
    work: Work,
    attempt: u32,
    is_retried: bool,
}

impl Queue {
    fn add(&mut self, work: Work, attempt: u32) {
        if self.handled.contains(&work) {
            self.added_again.insert(work);
        } else if self.waiting.insert(work.clone()) {
            self.order.push_back((work, attempt));
        }
    }

    /// Returns the next work item. The caller must call [`Self::end`] after it is handled.
    fn take(&mut self) -> Option<(Work, u32)> {
        let (work, attempt) = self.order.pop_front()?;
        self.waiting.remove(&work);
        self.handled.insert(work.clone());
        Some((work, attempt))
    }

    fn end(&mut self, step: FinishedStep) {
        self.handled.remove(&step.work);
        if self.added_again.remove(&step.work) {
            self.add(step.work, 1);
        } else if step.is_retried {
            self.add(step.work, step.attempt + 1);
        }
    }
}

/// The controllers that a server runs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Scope {
    /// All controllers.
    Cluster,
    /// Only the controllers that are part of kube-apiserver.
    ApiServer,
}

/// Runs the controllers in `scope` until `stop` is cancelled.
///
/// # Cancel safety
/// The handling of a work item is never interrupted. The next run starts from the current state of
/// the store.
pub(crate) async fn run(registry: Arc<Registry>, scope: Scope, stop: CancellationToken) {
    let mut changed = registry.store.subscribe();
    let mut queue = Queue::default();
    // The steps that wait for a webhook.
    let mut waiting = FuturesUnordered::new();
    let mut cursor = 0;
    loop {
        changed.mark_unchanged();
        let store = &registry.store;
        let (events, revision) = store
            .all_events_after(cursor)
            .unwrap_or_else(|_| store.everything());
        cursor = revision;
        for event in &events {
            registry.aggregator.on_change(event.object.resource());
            enqueue_definition(&registry, event, &mut queue);
            if scope == Scope::Cluster {
                enqueue(&registry, event, &mut queue);
            }
        }
        for quota in registry.quotas.take_uncertain() {
            queue.add(Work::ResourceQuota(quota), 1);
        }
        while let Some(Some(step)) = waiting.next().now_or_never() {
            queue.end(step);
        }
        if let Some((work, attempt)) = queue.take() {
            let mut step = Box::pin(perform_caught(registry.clone(), work.clone(), attempt));
            match (&mut step).now_or_never() {
                Some(step) => queue.end(step),
                // The step waits for a webhook. Other objects do not wait for it.
                None => waiting.push(step),
            }
            yield_to_clients(&registry).await;
            if stop.is_cancelled() {
                return;
            }
            continue;
        }
        tokio::select! {
            result = changed.changed() => if result.is_err() { return },
            Some(step) = waiting.next(), if !waiting.is_empty() => queue.end(step),
            () = registry.quotas.uncertain() => {}
            () = stop.cancelled() => return,
        }
    }
}

/// Lets the other tasks of the runtime run before the next work item. A work item takes as long as
/// several requests, so requests come first while clients write many objects.
async fn yield_to_clients(registry: &Registry) {
    let mut revision = registry.store.revision();
    for _ in 0..YIELDS_MAX {
        tokio::task::yield_now().await;
        let now = registry.store.revision();
        if now.saturating_sub(revision) < BUSY {
            return;
        }
        revision = now;
    }
}

/// Adds work items to the queue for the CRD that must be checked after `event`, and for its
/// APIServices: the CRD that changed, or the CRD whose object was deleted and that may wait for its
/// last object.
fn enqueue_definition(registry: &Registry, event: &Event, queue: &mut Queue) {
    let resource = event.object.resource().as_ref();
    if resource == CRDS {
        queue.add(Work::CustomResourceDefinition(event.object.key()), 1);
        for api_service in api_services::of_definition(event) {
            queue.add(Work::ApiService(api_service), 1);
        }
    }
    if resource == API_SERVICES {
        queue.add(Work::ApiService(event.object.key()), 1);
    }
    let definition = Key::new("", resource);
    if event.change == Change::Deleted && is_deleting(registry, CRDS, &definition) {
        queue.add(Work::CustomResourceDefinition(definition), 1);
    }
}

/// Adds a work item to the queue for each object that a controller must check after `event`, except
/// for CRDs.
fn enqueue(registry: &Registry, event: &Event, queue: &mut Queue) {
    enqueue_garbage(registry, event, queue);
    for quota in quotas::affected(registry, event) {
        queue.add(Work::ResourceQuota(quota), 1);
    }
    let key = event.object.key();
    match event.object.resource().as_ref() {
        "namespaces" => queue.add(Work::Namespace(key), 1),
        aggregation::CLUSTER_ROLES => queue.add(Work::AggregatedClusterRoles, 1),
        "configmaps" if key.name == ROOT_CA => {
            queue.add(Work::Namespace(Key::new("", key.namespace)), 1);
        }
        "serviceaccounts" if event.change == Change::Deleted => {
            queue.add(Work::Namespace(Key::new("", key.namespace)), 1);
        }
        "deployments.apps" => queue.add(Work::Deployment(key), 1),
        "replicasets.apps" => {
            for owner in claimants(registry, event, "Deployment", "deployments.apps") {
                queue.add(Work::Deployment(owner), 1);
            }
            queue.add(Work::ReplicaSet(key), 1);
        }
        "pods" => {
            for owner in claimants(registry, event, "ReplicaSet", "replicasets.apps") {
                queue.add(Work::ReplicaSet(owner), 1);
            }
            for service in endpoints::services_of_pod(registry, event) {
                queue.add(Work::Service(service), 1);
            }
            for budget in disruption::budgets_of_pod(registry, event) {
                queue.add(Work::PodDisruptionBudget(budget), 1);
            }
            if event.change == Change::Deleted {
                for claim in protection::claims_of_pod(&event.object.decode()) {
                    queue.add(Work::PersistentVolumeClaim(claim), 1);
                }
            }
            queue.add(Work::Pod(key), 1);
        }
        protection::CLAIMS => queue.add(Work::PersistentVolumeClaim(key), 1),
        protection::VOLUMES => queue.add(Work::PersistentVolume(key), 1),
        BUDGETS => queue.add(Work::PodDisruptionBudget(key), 1),
        "services" | "endpoints" => queue.add(Work::Service(key), 1),
        "endpointslices.discovery.k8s.io" => {
            if let Some(service) = endpoints::service_of_slice(event) {
                queue.add(Work::Service(service), 1);
            }
        }
        _ => {}
    }
}

fn enqueue_garbage(registry: &Registry, event: &Event, queue: &mut Queue) {
    let object = &*event.object;
    let place = || (object.resource().to_string(), object.key());
    // Owners that wait for this object, or waited for it until it removed its owner reference.
    for version in [Some(object), event.previous.as_deref()]
        .into_iter()
        .flatten()
    {
        for owner in version.owners() {
            if let Some(owner) = registry.store.stored_by_uid(object::text(&owner, &["uid"]))
                && owner.is_deleting()
            {
                let (resource, key) = (owner.resource().to_string(), owner.key());
                queue.add(Work::Owner { resource, key }, 1);
            }
        }
    }
    if event.change != Change::Deleted {
        if object.is_deleting() {
            let (resource, key) = place();
            queue.add(Work::Owner { resource, key }, 1);
        }
        if object.has_owners() {
            let (resource, key) = place();
            queue.add(Work::Dependent { resource, key }, 1);
        }
        return;
    }
    for dependent in registry.store.stored_dependents(object.uid()) {
        let (resource, key) = (dependent.resource().to_string(), dependent.key());
        queue.add(Work::Dependent { resource, key }, 1);
    }
    // The namespace of the object, which may wait for the deletion of its last object.
    let namespace = Key::new("", object.namespace());
    if is_deleting(registry, "namespaces", &namespace) {
        queue.add(Work::Namespace(namespace), 1);
    }
}

/// Returns the keys of the current and the previous controller of an object. If the object has no
/// controller now, also returns the keys of all objects of `resource` in the same namespace,
/// because one of them might adopt the object.
fn claimants(registry: &Registry, event: &Event, kind: &str, resource: &str) -> Vec<Key> {
    let namespace = event.object.namespace();
    let versions = [Some(&event.object), event.previous.as_ref()];
    let mut keys: Vec<Key> = versions
        .into_iter()
        .flatten()
        .filter_map(|version| {
            let owners = version.owners();
            let name = workloads::controller_of(&owners, kind)?;
            Some(Key::new(namespace, name))
        })
        .collect();
    let is_controlled = workloads::controller_reference(&event.object.owners()).is_some();
    if event.change != Change::Deleted && !is_controlled {
        let (owners, _) = registry.store.list_stored(resource, Some(namespace));
        keys.extend(owners.iter().map(|owner| owner.key()));
    }
    keys
}

fn is_deleting(registry: &Registry, resource: &str, key: &Key) -> bool {
    registry
        .store
        .stored(resource, key)
        .is_some_and(|object| object.is_deleting())
}

/// Handles a work item. A panic is caught: it must not stop the other controllers.
async fn perform_caught(registry: Arc<Registry>, work: Work, attempt: u32) -> FinishedStep {
    let result = AssertUnwindSafe(perform(&registry, &work))
        .catch_unwind()
        .await;
    let is_retried = match result {
        Ok(Ok(())) => false,
        Ok(Err(error)) => {
            tracing::debug!(?work, attempt, ?error, "controller step failed");
            let is_retried = attempt < ATTEMPTS && !error.is_not_found();
            if is_retried && attempt >= IMMEDIATE_ATTEMPTS {
                let doubled = 1 << (attempt - IMMEDIATE_ATTEMPTS);
                tokio::time::sleep(BACKOFF.saturating_mul(doubled)).await;
            }
            is_retried
        }
        Err(_) => {
            tracing::error!(?work, "controller step panicked");
            false
        }
    };
    FinishedStep {
        work,
        attempt,
        is_retried,
    }
}

async fn perform(registry: &Registry, work: &Work) -> ApiResult<()> {
    match work {
        Work::Dependent { resource, key } => {
            garbage::check_dependent(registry, resource, key).await
        }
        Work::Owner { resource, key } => garbage::release_owner(registry, resource, key).await,
        Work::AggregatedClusterRoles => aggregation::step(registry).await,
        Work::Namespace(key) => namespaces::step(registry, key).await,
        Work::CustomResourceDefinition(key) => crds::step(registry, key).await,
        Work::ApiService(key) => api_services::step(registry, key).await,
        Work::Deployment(key) => workloads::deployment::step(registry, key).await,
        Work::ReplicaSet(key) => workloads::replicaset::step(registry, key).await,
        Work::Pod(key) => workloads::pod::step(registry, key).await,
        Work::PersistentVolumeClaim(key) => protection::release_claim(registry, key).await,
        Work::PersistentVolume(key) => protection::release_volume(registry, key).await,
        Work::PodDisruptionBudget(key) => disruption::step(registry, key).await,
        Work::ResourceQuota(key) => quotas::step(registry, key).await,
        Work::Service(key) => endpoints::step(registry, key).await,
    }
}
