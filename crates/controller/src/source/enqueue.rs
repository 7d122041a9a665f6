//! Adds requests to the queue for the events of an informer.

use std::collections::HashSet;
use std::sync::Arc;

use opkit_apimachinery::shard::hash;
use opkit_cache::{Change, Delta, Event, FieldChange, Listener, Meta, ShownValues};
use opkit_client::{Kind, ObjectKey};
use opkit_workqueue::{AddOptions, Queue};
use tokio::sync::oneshot;
use tracing::{Level, Span, debug, debug_span, enabled, trace};

use super::deleted::DeletedObjects;
use super::event::{Event as ObjectEvent, GenericEvent};
use super::predicate::Predicate;
use super::spec::{Role, SourceSpec};
use crate::context::ClusterController;
use crate::object::Request;
use crate::object::owner::is_of_kind;
use crate::reads::ControllerIdentity;
use crate::record::causes::Causes;
use crate::record::{Cause, ReconcileLog};

/// Largest number of changed fields that one cause contains. Bounds the size of a record.
const MAX_FIELDS: usize = 4;

/// Number of events after which a task that fills the queue yields to other tasks.
pub(super) const YIELD_AFTER: u32 = 64;

/// Priority of objects that did not just change: objects of the initial list and of a resync. Same
/// value as in controller-runtime.
pub(crate) const LOW_PRIORITY: i32 = -100;

/// Returns the keys of the owners of `child` that are of the kind `owner`. If `any` is true,
/// returns all such owners, else only the owner that is marked as the controller. The key of a
/// namespaced owner gets the namespace of the child.
pub(crate) fn owners_of(owner: &Kind, child: &Meta<'_>, any: bool) -> Vec<ObjectKey> {
    let references = match any {
        true => child.owners(),
        false => child.controller().into_iter().collect(),
    };
    let references = references.into_iter();
    let of_kind = references.filter(|reference| is_of_kind(reference, owner));
    of_kind
        .map(|reference| ObjectKey {
            namespace: (child.namespace().filter(|_| owner.namespaced)).map(Into::into),
            name: reference.name.into_owned(),
        })
        .collect()
}

/// The sources of a running controller, and the queue that they fill.
#[derive(Debug)]
pub(crate) struct ControllerSources {
    pub(crate) controller: Arc<ControllerIdentity>,
    /// Declared sources; the first is the reconciled kind.
    pub(crate) sources: Vec<SourceSpec>,
    /// Filter of the events of all sources.
    pub(crate) event_filter: Option<Predicate>,
    pub(crate) clusters: Vec<Arc<ClusterController>>,
    pub(crate) queue: Queue<Request, Causes>,
    pub(crate) log: ReconcileLog,
    /// Deleted objects that were not reconciled yet, if the operator is sharded by UID and the
    /// controller's function takes a key.
    pub(crate) deleted: Option<DeletedObjects>,
}

impl ControllerSources {
    /// Adds a request to the queue for each event of one source in one cluster, until the future is
    /// dropped. Notifies `synced` after the initial list.
    pub(crate) async fn run(
        self: Arc<Self>,
        cluster: Arc<ClusterController>,
        source: usize,
        mut listener: Listener,
        synced: oneshot::Sender<()>,
    ) {
        let mut synced = Some(synced);
        let mut in_one_go = 0;
        loop {
            in_one_go = (in_one_go + 1) % YIELD_AFTER;
            if in_one_go == 0 {
                tokio::task::yield_now().await;
            }
            match self.next(&mut listener).await {
                Event::Delta(delta) => {
                    if let Some(source) = self.sources.get(source) {
                        self.enqueue(&cluster, source, &delta);
                    }
                }
                Event::Synced => {
                    if let Some(synced) = synced.take() {
                        // There is no receiver if the manager is stopping already.
                        let _ = synced.send(());
                    }
                }
                _ => {}
            }
        }
    }

    fn enqueue(&self, cluster: &ClusterController, source: &SourceSpec, delta: &Delta) {
        if delta.new.is_none()
            && let Some(type_id) = source.watched.type_id
        {
            cluster.applied.forget(type_id, &delta.key);
        }
        if source.role == Role::Primary
            && let (Some(deleted), Some(last)) = (&self.deleted, delta.last.as_ref())
            && !last.has_left
            && let Some(uid) = last.object.meta().uid()
        {
            let request = Request::new(cluster.name.clone(), delta.key.clone());
            deleted.insert(request, hash(&uid));
        }
        let mut targets = Targets::default();
        delta.steps(|step| {
            if let Some((event, is_whole)) = ObjectEvent::of(step) {
                targets.add(self, cluster, source, &event, is_whole);
            }
        });
        if source.role == Role::Primary && delta.new.is_none() && !targets.is_itself {
            // No later reconcile would find out that the object is deleted.
            let request = Request::new(cluster.name.clone(), delta.key.clone());
            self.log.forget(&self.controller.name, &request);
        }
        if targets.is_none() {
            return;
        }
        // Without a subscriber for tracing, a span would format its fields for the log crate.
        let span = match enabled!(Level::DEBUG) {
            true => {
                debug_span!("event", kind = source.watched.kind.kind, object = %delta.key, change = ?delta.change)
            }
            false => Span::none(),
        };
        let is_news = !delta.initial && delta.change != Change::Sync && !is_unchanged(delta);
        for key in targets.keys(&delta.key) {
            trace!(controller = &*self.controller.name, %key, kind = source.watched.kind.kind, "queued");
            let request = Request::new(cluster.name.clone(), key);
            let options = AddOptions {
                priority: Some(if is_news { 0 } else { LOW_PRIORITY }),
                ..Default::default()
            };
            let cause = cause(source, delta, self.log.values());
            let causes = Causes::from(cause).linked(span.clone());
            self.queue.add_with(request, causes, options);
        }
    }

    /// Returns the cluster that a request names, or `None` if the operator has no cluster of that
    /// name.
    fn cluster(&self, request: &Request) -> Option<&Arc<ClusterController>> {
        let name = request.cluster();
        let mut clusters = self.clusters.iter();
        clusters.find(|cluster| cluster.name.as_deref() == name)
    }

    /// Reports whether a generic event of the source causes a reconcile of the object in the event
    /// only. Such a source has no filters and no map functions, so the object need not be looked
    /// up.
    pub(super) fn is_plain(&self, source: usize) -> bool {
        let declared = self.sources.get(source);
        self.event_filter.is_none()
            && declared.is_some_and(|declared| {
                let is_open = declared.predicate.is_none() && declared.maps.is_empty();
                declared.role == Role::Primary && is_open
            })
    }

    /// Returns the objects to reconcile for a generic event of the source. `request` names an
    /// object of the source's kind. An object of the reconciled kind that is not in the cache is
    /// reconciled without filters and map functions.
    pub(super) fn generic_targets(&self, source: usize, request: Request) -> Vec<Request> {
        let Some(declared) = self.sources.get(source) else {
            return Vec::new();
        };
        let is_primary = declared.role == Role::Primary;
        // A cluster that does not exist is reported by the reconcile.
        let cluster = self.cluster(&request);
        let informer = cluster.and_then(|cluster| cluster.informers.get(source));
        let stored = informer.and_then(|informer| informer.stored(request.key()));
        let (Some(cluster), Some(stored)) = (cluster, stored) else {
            if !is_primary {
                debug!(%request, kind = declared.watched.kind.kind, "the object is not in the cache");
            }
            return Vec::from_iter(is_primary.then_some(request));
        };
        let event = ObjectEvent::Generic(GenericEvent { object: &stored });
        let mut targets = Targets::default();
        targets.add(self, cluster, declared, &event, true);
        let keys = targets.keys(request.key());
        keys.map(|key| Request::new(cluster.name.clone(), key))
            .collect()
    }
}

/// The objects to reconcile for the events of one watched object.
#[derive(Default)]
struct Targets {
    /// Whether the watched object itself is reconciled.
    is_itself: bool,
    mapped: HashSet<ObjectKey>,
}

impl Targets {
    /// Adds the objects to reconcile for an event. Adds nothing if the event does not pass the
    /// filters.
    fn add(
        &mut self,
        sources: &ControllerSources,
        cluster: &ClusterController,
        source: &SourceSpec,
        event: &ObjectEvent<'_>,
        is_whole: bool,
    ) {
        let filters = [&source.predicate, &sources.event_filter];
        let mut filters = filters.into_iter().flatten();
        if !filters.all(|filter| filter.passes(event, is_whole)) {
            return;
        }
        self.is_itself |= source.role == Role::Primary;
        for map in &source.maps {
            self.mapped.extend(map(event, &cluster.reads));
        }
    }

    fn is_none(&self) -> bool {
        !self.is_itself && self.mapped.is_empty()
    }

    /// Returns the key of each object to reconcile once. `itself` is the key of the watched object.
    fn keys(mut self, itself: &ObjectKey) -> impl Iterator<Item = ObjectKey> {
        let itself = self.is_itself.then(|| {
            self.mapped.remove(itself);
            itself.clone()
        });
        itself.into_iter().chain(self.mapped)
    }
}

/// Reports whether the object did not change. A list after an interrupted watch also delivers
/// unchanged objects.
fn is_unchanged(delta: &Delta) -> bool {
    match (&delta.old, &delta.new) {
        (Some(old), Some(new)) if !delta.coalesced => {
            let (old, new) = (old.meta(), new.meta());
            // The version is compared first, because it nearly always decides.
            old.resource_version() == new.resource_version() && old.uid() == new.uid()
        }
        _ => false,
    }
}

/// Returns the first fields that changed. Returns none if the object was created, deleted, or
/// deleted and created again.
fn changed_fields(delta: &Delta, values: ShownValues) -> Vec<FieldChange> {
    match (&delta.old, &delta.new) {
        (Some(old), Some(new)) if !delta.is_recreated() => {
            new.changes_since(old, MAX_FIELDS, values)
        }
        _ => Vec::new(),
    }
}

fn cause(source: &SourceSpec, delta: &Delta, values: ShownValues) -> Cause {
    let is_primary = source.role == Role::Primary;
    let kind = (!is_primary).then(|| source.watched.kind.kind.as_str().into());
    let name = delta.key.name.clone();
    if delta.initial {
        Cause::InitialList
    } else if delta.change == Change::Sync {
        Cause::Resync
    } else if delta.new.is_none() {
        Cause::Deleted { kind, name }
    } else {
        let fields = changed_fields(delta, values);
        Cause::Changed { kind, name, fields }
    }
}

#[cfg(test)]
mod tests;
