//! Parts of the kinds that a replica of a sharded operator caches.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::Arc;

use opkit_apimachinery::shard::{ShardKey, ShardSelector};
use opkit_cache::{Informer, InformerFactory, InformerOptions, Shards};
use parking_lot::Mutex;

use super::Watched;
use crate::builder::spec::ControllerSpec;
use crate::source::spec::{Role, SourceSpec};

/// How objects of a kind are selected for a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Selected {
    /// By the namespace or the UID of the object.
    Object(ShardKey),
    /// By the UIDs of the owners of the object.
    Owner,
}

impl Selected {
    /// Returns the part of the kind with the hashes of `range`.
    pub(crate) fn shards(self, range: &ShardSelector) -> Shards {
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
fn selected(by: ShardKey, sources: &[SourceSpec]) -> Vec<Option<Selected>> {
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

/// Returns how the kinds of a controller's sources are selected in a sharded operator. `cached`
/// contains the informer options that the operator has set, by Rust type.
pub(crate) fn selected_for(
    by: ShardKey,
    cached: &HashMap<TypeId, InformerOptions>,
    spec: &ControllerSpec,
) -> Vec<Option<Selected>> {
    let mut selected = match spec.options.needs_leader_election {
        true => selected(by, &spec.sources),
        // Every replica runs the controller for all objects.
        false => vec![None; spec.sources.len()],
    };
    for (selected, source) in selected.iter_mut().zip(&spec.sources) {
        let options = source.watched.type_id.and_then(|id| cached.get(&id));
        if options.is_some_and(|options| options.shards.range.is_some()) {
            *selected = None;
        }
    }
    selected
}

/// An informer that reads a part of its kind.
#[derive(Debug, Clone)]
pub(crate) struct PartInformer {
    pub(crate) factory: Arc<InformerFactory>,
    pub(crate) informer: Informer,
    pub(crate) selected: Selected,
    /// Number of watches that read the part.
    pub(crate) watches: u32,
    watched: Watched,
}

/// The informers of one cluster that read parts of their kinds.
#[derive(Debug)]
pub(crate) struct Parts {
    by: ShardKey,
    informers: Mutex<Vec<PartInformer>>,
}

impl Parts {
    pub(crate) fn new(by: ShardKey) -> Self {
        Self {
            by,
            informers: Mutex::default(),
        }
    }

    /// Returns the informers that were started.
    pub(crate) fn informers(&self) -> Vec<PartInformer> {
        self.informers.lock().clone()
    }

    /// Returns the informer of a part of a kind, and starts the informer if it is not running yet.
    /// The part is empty until this replica owns slots. `cached` contains the informer options that
    /// the operator has set, by Rust type.
    pub(crate) fn informer(
        &self,
        factory: &Arc<InformerFactory>,
        cached: &HashMap<TypeId, InformerOptions>,
        (watched, selected): (&Watched, Selected),
    ) -> Informer {
        let mut informers = self.informers.lock();
        let is_same = |it: &&PartInformer| {
            let (one, other) = (&it.watched, watched);
            it.selected == selected
                && (&one.kind, one.type_id, one.metadata_only)
                    == (&other.kind, other.type_id, other.metadata_only)
        };
        if let Some(found) = informers.iter().find(is_same) {
            return found.informer.clone();
        }
        let nothing = ShardSelector::slots(self.by, [], 1);
        let options = watched.type_id.and_then(|id| cached.get(&id));
        let watches = options.map_or(1, |options| options.shards.watches);
        let shards = selected.shards(&nothing).watches(watches);
        let informer = watched.start_part(factory, cached, shards);
        informers.push(PartInformer {
            factory: factory.clone(),
            informer: informer.clone(),
            selected,
            watches,
            watched: watched.clone(),
        });
        informer
    }
}

#[cfg(test)]
mod tests;
