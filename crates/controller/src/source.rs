//! Sources: from what changed to which objects need a reconcile.

use std::collections::HashSet;
use std::sync::Arc;

use opkit_cache::{Delta, Event, InformerFactory, Listener, Meta, Selection, Stored};
use opkit_client::{Kind, Object, ObjectKey};
use opkit_workqueue::Reasons;
use tokio::sync::oneshot;
use tracing::debug;

use crate::ReadError;
use crate::controller::Source;
use crate::record::Cause;
use crate::worker::Running;

/// After so many events in one go, other tasks get a turn.
const IN_ONE_GO: u32 = 64;

/// What a map function may read: the cache of the kinds that its controller declared.
#[derive(Debug, Clone)]
pub struct MapContext {
    pub(crate) controller: Arc<str>,
    pub(crate) declared: Arc<HashSet<std::any::TypeId>>,
    pub(crate) factory: Arc<InformerFactory>,
}

impl MapContext {
    /// The objects of a declared kind, from the cache.
    ///
    /// # Errors
    /// When the kind is not declared.
    pub fn list<K: Object>(
        &self,
        selection: impl Into<Selection>,
    ) -> Result<Vec<Arc<K>>, ReadError> {
        Ok(self.lister::<K>()?.list(&selection.into()))
    }

    /// One object of a declared kind, from the cache.
    ///
    /// # Errors
    /// When the kind is not declared, or the object does not fit its Rust type.
    pub fn get<K: Object>(&self, key: impl Into<ObjectKey>) -> Result<Option<Arc<K>>, ReadError> {
        Ok(self.lister::<K>()?.get(&key.into())?)
    }

    pub(crate) fn lister<K: Object>(&self) -> Result<opkit_cache::Lister<K>, ReadError> {
        let declared = self.declared.contains(&std::any::TypeId::of::<K>());
        declared
            .then(|| self.factory.started::<K>())
            .flatten()
            .ok_or_else(|| ReadError::NotDeclared {
                controller: self.controller.to_string(),
                kind: Box::new(Kind::of::<K>()),
            })
    }
}

/// The owner of `child`, if its controller is of kind `owner`. Group and kind are compared, the
/// version is not: an owner may have been written with another one.
pub(crate) fn owner_of(owner: &Kind, child: &Meta<'_>) -> Vec<ObjectKey> {
    let Some(reference) = child.controller() else {
        return Vec::new();
    };
    let group = reference
        .api_version
        .split_once('/')
        .map_or("", |(group, _)| group);
    if reference.kind != owner.kind || group != owner.group {
        return Vec::new();
    }
    let namespace = child.namespace().filter(|_| owner.namespaced);
    vec![ObjectKey {
        namespace: namespace.map(Into::into),
        name: reference.name.into_owned(),
    }]
}

/// Takes the events of one source into the queue until dropped; tells `synced` when the first list
/// is in.
pub(crate) async fn run(
    running: Arc<Running>,
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
                    enqueue(&running, source, &delta);
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

fn enqueue(running: &Running, source: &Source, delta: &Delta) {
    if delta.new.is_none() {
        running.shared.applied.forget(source.type_id, &delta.key);
    }
    let keys: HashSet<ObjectKey> = match &source.map {
        None => own(running, delta).into_iter().collect(),
        Some(map) => {
            let objects = delta.old.iter().chain(&delta.between).chain(&delta.new);
            objects
                .flat_map(|object| map(object, &running.shared.reads))
                .collect()
        }
    };
    for key in keys {
        debug!(controller = running.spec.name, %key, kind = source.kind.kind, "queued");
        running.queue.add(key, Reasons::from(cause(source, delta)));
    }
}

fn own(running: &Running, delta: &Delta) -> Option<ObjectKey> {
    let passes = running.spec.predicate.as_ref().is_none_or(|predicate| {
        let (old, new) = (delta.old.as_ref(), delta.new.as_ref());
        // What a reconcile may have read in between is in no difference of old and new.
        delta.coalesced || predicate.passes(old.map(Stored::meta), new.map(Stored::meta))
    });
    passes.then(|| delta.key.clone())
}

fn cause(source: &Source, delta: &Delta) -> Cause {
    let kind = source
        .map
        .as_ref()
        .map(|_| source.kind.kind.as_str().into());
    let name = delta.key.name.clone();
    if delta.initial {
        Cause::InitialList
    } else if delta.new.is_none() {
        Cause::Deleted { kind, name }
    } else {
        Cause::Changed { kind, name }
    }
}

#[cfg(test)]
mod tests;
