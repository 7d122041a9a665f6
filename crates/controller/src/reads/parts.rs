//! Parts of the kinds that a replica of a sharded operator caches.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::Arc;

use opkit_apimachinery::shard::{ShardKey, ShardSelector};
use opkit_cache::{Informer, InformerFactory, InformerOptions, Shards};
use parking_lot::Mutex;

use super::Watched;

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
