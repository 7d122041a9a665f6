//! Sources: from what changed to which objects need a reconcile.

use std::collections::HashSet;
use std::sync::Arc;

use opkit_cache::{Change, Delta, Event, FieldChange, Listener, Meta, ShownValues};
use opkit_client::{Kind, ObjectKey};
use opkit_workqueue::AddOptions;
use tokio::sync::oneshot;
use tracing::{Level, Span, debug, debug_span, enabled, trace};

use crate::builder::spec::{Role, SourceSpec};
use crate::object::Request;
use crate::object::owner::is_of_kind;
use crate::record::Cause;
use crate::record::causes::Why;
use crate::source::event::{Event as ObjectEvent, GenericEvent};
use crate::worker::{Running, Side};

/// How many fields that changed are told.
const FIELDS: usize = 4;

/// After so many events in one go, other tasks get a turn.
pub(super) const IN_ONE_GO: u32 = 64;

/// The priority of what nobody changed just now: the first list, and the periodic look at
/// everything. controller-runtime's.
pub(crate) const LOW_PRIORITY: i32 = -100;

/// The owners of `child` that are of kind `owner`: the controller, or any. An owner in a namespace
/// is in that of the child.
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

/// Takes the events of one source in one cluster into the queue until dropped; tells `synced` when
/// the first list is in.
pub(crate) async fn run(
    running: Arc<Running>,
    side: Arc<Side>,
    source: usize,
    mut listener: Listener,
    synced: oneshot::Sender<()>,
) {
    let mut synced = Some(synced);
    let mut in_one_go = 0;
    loop {
        in_one_go = (in_one_go + 1) % IN_ONE_GO;
        if in_one_go == 0 {
            tokio::task::yield_now().await;
        }
        match listener.recv().await {
            Event::Delta(delta) => {
                if let Some(source) = running.spec.sources.get(source) {
                    enqueue(&running, &side, source, &delta);
                }
            }
            Event::Synced => {
                if let Some(synced) = synced.take() {
                    // Nobody waits if the manager is stopping already.
                    let _ = synced.send(());
                }
            }
            _ => {}
        }
    }
}

fn enqueue(running: &Running, side: &Side, source: &SourceSpec, delta: &Delta) {
    if delta.new.is_none()
        && let Some(type_id) = source.watched.type_id
    {
        side.applied.forget(type_id, &delta.key);
    }
    let mut targets = Targets::default();
    delta.steps(|step| {
        if let Some((event, is_whole)) = ObjectEvent::of(step) {
            targets.take(running, side, source, &event, is_whole);
        }
    });
    if source.role == Role::Primary && delta.new.is_none() && !targets.is_itself {
        // No reconcile will find that the object is gone.
        let request = Request::new(side.cluster.clone(), delta.key.clone());
        running.log.forget(&running.name, &request);
    }
    if targets.is_none() {
        return;
    }
    // Where nobody has set up tracing at all, a span would format its fields for the log crate.
    let span = match enabled!(Level::DEBUG) {
        true => {
            debug_span!("event", kind = source.watched.kind.kind, object = %delta.key, change = ?delta.change)
        }
        false => Span::none(),
    };
    let is_news = !delta.initial && delta.change != Change::Sync && !is_unchanged(delta);
    for key in targets.keys(&delta.key) {
        trace!(controller = running.spec.name, %key, kind = source.watched.kind.kind, "queued");
        let request = Request::new(side.cluster.clone(), key);
        let options = AddOptions {
            priority: Some(if is_news { 0 } else { LOW_PRIORITY }),
            ..Default::default()
        };
        let why = Why::from(cause(source, delta, running.log.values())).linked(span.clone());
        running.queue.add_with(request, why, options);
    }
}

/// The objects that the events of one object lead to.
#[derive(Default)]
struct Targets {
    /// Whether the object itself is one.
    is_itself: bool,
    mapped: HashSet<ObjectKey>,
}

impl Targets {
    /// Takes in what an event leads to: nothing if it does not pass the filters.
    fn take(
        &mut self,
        running: &Running,
        side: &Side,
        source: &SourceSpec,
        event: &ObjectEvent<'_>,
        is_whole: bool,
    ) {
        let filters = [&source.predicate, &running.spec.event_filter];
        let mut filters = filters.into_iter().flatten();
        if !filters.all(|filter| filter.passes(event, is_whole)) {
            return;
        }
        self.is_itself |= source.role == Role::Primary;
        for map in &source.maps {
            self.mapped.extend(map(event, &side.reads));
        }
    }

    fn is_none(&self) -> bool {
        !self.is_itself && self.mapped.is_empty()
    }

    /// Each object once; the events are those of `itself`.
    fn keys(mut self, itself: &ObjectKey) -> impl Iterator<Item = ObjectKey> {
        let itself = self.is_itself.then(|| {
            self.mapped.remove(itself);
            itself.clone()
        });
        itself.into_iter().chain(self.mapped)
    }
}

/// Whether a generic event leads to the object that it names and to no other: there is nothing to
/// filter or to map, and so no need to look the object up.
pub(crate) fn is_plain(running: &Running, source: usize) -> bool {
    let declared = running.spec.sources.get(source);
    running.spec.event_filter.is_none()
        && declared.is_some_and(|declared| {
            let is_open = declared.predicate.is_none() && declared.maps.is_empty();
            declared.role == Role::Primary && is_open
        })
}

/// The objects that a generic event leads to: `request` names an object of the source's kind. One
/// of the reconciled kind need not be in the cache: then there is nothing to filter or to map.
pub(crate) fn generic_targets(running: &Running, source: usize, request: Request) -> Vec<Request> {
    let Some(declared) = running.spec.sources.get(source) else {
        return Vec::new();
    };
    let is_primary = declared.role == Role::Primary;
    // That there is no such cluster is for the reconcile to report.
    let side = running.side(&request);
    let informer = side.and_then(|side| side.informers.get(source));
    let stored = informer.and_then(|informer| informer.stored(request.key()));
    let (Some(side), Some(stored)) = (side, stored) else {
        if !is_primary {
            debug!(%request, kind = declared.watched.kind.kind, "no such object is in the cache");
        }
        return Vec::from_iter(is_primary.then_some(request));
    };
    let event = ObjectEvent::Generic(GenericEvent { object: &stored });
    let mut targets = Targets::default();
    targets.take(running, side, declared, &event, true);
    let keys = targets.keys(request.key());
    keys.map(|key| Request::new(side.cluster.clone(), key))
        .collect()
}

/// A list after a gap in the watch tells of objects that are as they were.
fn is_unchanged(delta: &Delta) -> bool {
    match (&delta.old, &delta.new) {
        (Some(old), Some(new)) if !delta.coalesced => {
            let (old, new) = (old.meta(), new.meta());
            // In this order: the version nearly always tells.
            old.resource_version() == new.resource_version() && old.uid() == new.uid()
        }
        _ => false,
    }
}

/// The first fields that changed, where versions of one object were told one by one.
fn changed_fields(delta: &Delta, values: ShownValues) -> Vec<FieldChange> {
    match (&delta.old, &delta.new) {
        (Some(old), Some(new)) if !delta.is_recreated() => new.changes_since(old, FIELDS, values),
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
