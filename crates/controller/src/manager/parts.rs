//! Parts of the kinds that a replica of a sharded operator caches.

use std::sync::Arc;

use opkit_apimachinery::shard::{ShardKey, ShardSelector};
use opkit_cache::{Informer, InformerFactory, Shards};
use parking_lot::Mutex;

use super::Manager;
use crate::builder::spec::ControllerSpec;
use crate::reads::Watched;
use crate::source::spec::{Role, SourceSpec};

/// How objects of a kind are selected for a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Selected {
    /// By the namespace or the UID of the object.
    Object(ShardKey),
    /// By the UIDs of the owners of the object.
    Owner,
}

impl Selected {
    /// Returns the part of the kind with the hashes of `range`.
    pub(super) fn shards(self, range: &ShardSelector) -> Shards {
        match self {
            Self::Object(_) => Shards::range(range.clone()),
            Self::Owner => Shards::owners(range.clone()),
        }
    }
}

/// Returns how the kind of each source of a controller is selected; `None` if the whole kind is
/// cached. By namespace, every namespaced kind is selected. By UID, only the reconciled kind and
/// the kinds of children with owner references are. A kind that is declared in several roles has
/// one informer, which reads what all roles need, so that every read shows the controller's own
/// writes.
pub(super) fn selected(by: ShardKey, sources: &[SourceSpec]) -> Vec<Option<Selected>> {
    let of_source = |source: &SourceSpec| match (by, source.role) {
        (ShardKey::Namespace, _) => {
            let namespaced = source.watched.kind.namespaced;
            namespaced.then_some(Selected::Object(by))
        }
        (ShardKey::Uid, Role::Primary) => Some(Selected::Object(by)),
        (ShardKey::Uid, Role::Owned | Role::CreatedOnce) => Some(Selected::Owner),
        (ShardKey::Uid, Role::Unowned | Role::Referenced | Role::Watched) => None,
    };
    let alike = |one: &SourceSpec, other: &SourceSpec| {
        one.watched.kind == other.watched.kind && one.watched.type_id == other.watched.type_id
    };
    let of_kind = |source: &SourceSpec| {
        let selected = of_source(source);
        let mut same = sources.iter().filter(|other| alike(source, other));
        selected.filter(|selected| same.all(|other| of_source(other) == Some(*selected)))
    };
    sources.iter().map(of_kind).collect()
}

/// An informer that reads a part of its kind.
#[derive(Debug)]
pub(super) struct PartInformer {
    pub(super) factory: Arc<InformerFactory>,
    pub(super) informer: Informer,
    pub(super) selected: Selected,
    /// Number of watches that read the part.
    pub(super) watches: u32,
    cluster: Option<Arc<str>>,
    watched: Watched,
}

/// The informers of the controllers that read parts of their kinds.
#[derive(Debug)]
pub(super) struct Parts {
    by: ShardKey,
    informers: Mutex<Vec<PartInformer>>,
}

impl Parts {
    pub(super) fn new(by: ShardKey) -> Self {
        Self {
            by,
            informers: Mutex::default(),
        }
    }

    pub(super) fn into_informers(self) -> Vec<PartInformer> {
        self.informers.into_inner()
    }

    /// Returns how the kinds of a controller's sources are selected.
    pub(super) fn selected(
        &self,
        manager: &Manager,
        spec: &ControllerSpec,
    ) -> Vec<Option<Selected>> {
        let mut selected = match spec.options.needs_leader_election {
            true => selected(self.by, &spec.sources),
            // Every replica runs the controller for all objects.
            false => vec![None; spec.sources.len()],
        };
        for (selected, source) in selected.iter_mut().zip(&spec.sources) {
            let options = source
                .watched
                .type_id
                .and_then(|id| manager.cached.get(&id));
            if options.is_some_and(|options| options.shards.range.is_some()) {
                *selected = None;
            }
        }
        selected
    }

    /// Returns the informer of a part of a kind. The part is empty until this replica owns slots.
    pub(super) fn informer(
        &self,
        manager: &Manager,
        factory: &Arc<InformerFactory>,
        cluster: Option<&Arc<str>>,
        (watched, selected): (&Watched, Selected),
    ) -> Informer {
        let mut informers = self.informers.lock();
        let is_same = |it: &&PartInformer| {
            let (one, other) = (&it.watched, watched);
            it.cluster.as_ref() == cluster
                && it.selected == selected
                && (&one.kind, one.type_id, one.metadata_only)
                    == (&other.kind, other.type_id, other.metadata_only)
        };
        if let Some(found) = informers.iter().find(is_same) {
            return found.informer.clone();
        }
        let nothing = ShardSelector::slots(self.by, [], 1);
        let options = watched.type_id.and_then(|id| manager.cached.get(&id));
        let watches = options.map_or(1, |options| options.shards.watches);
        let shards = selected.shards(&nothing).watches(watches);
        let informer = watched.start_part(factory, &manager.cached, shards);
        informers.push(PartInformer {
            factory: factory.clone(),
            informer: informer.clone(),
            selected,
            watches,
            cluster: cluster.cloned(),
            watched: watched.clone(),
        });
        informer
    }
}

#[cfg(test)]
mod tests;
