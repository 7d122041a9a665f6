//! The informers of the kinds that an operator declares, in one cluster.

use std::any::TypeId;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use opkit_apimachinery::shard::ShardKey;
use opkit_cache::{Informer, InformerFactory, InformerOptions, Lister};
use opkit_client::{Kind, Object};

use super::Reads;
use crate::error::ReadError;
use crate::reads::parts::{PartInformer, Parts, Selected};
use crate::reads::{Declared, Watched};

/// The informers of the kinds that an operator declares, in one cluster. They may not be started
/// yet.
pub(crate) struct Caches {
    factory: Arc<InformerFactory>,
    /// Declarations, with how a sharded operator selects the objects of the kind; `None` if it
    /// caches the whole kind. Of several declarations of one Rust type, the last one is read.
    kinds: Vec<(Watched, Option<Selected>)>,
    options: HashMap<TypeId, InformerOptions>,
    pub(super) timeout: Duration,
    /// Informers of parts; set if this process is a replica of a sharded operator.
    parts: OnceLock<Parts>,
}

impl Caches {
    /// Creates the informers of the kinds on first use. `options` contains the informer options
    /// that the operator has set, by Rust type.
    pub(crate) fn new(
        factory: Arc<InformerFactory>,
        mut kinds: Vec<(Watched, Option<Selected>)>,
        options: HashMap<TypeId, InformerOptions>,
        timeout: Duration,
    ) -> Self {
        // Whole objects are read rather than metadata, the whole kind rather than a part, and the
        // objects of a controller rather than those that belong to them.
        kinds.sort_by_key(|(watched, selected)| {
            let is_owned = *selected == Some(Selected::Owner);
            (!watched.metadata_only, selected.is_none(), !is_owned)
        });
        Self {
            factory,
            kinds,
            options,
            timeout,
            parts: OnceLock::new(),
        }
    }

    /// Caches only parts of the kinds that are selected, because the replicas of the operator
    /// divide the objects. Must be called before an informer is started.
    pub(crate) fn divide(&self, by: ShardKey) {
        self.parts.get_or_init(|| Parts::new(by));
    }

    /// Returns the informers that were started and read parts of their kinds.
    pub(crate) fn part_informers(&self) -> Vec<PartInformer> {
        self.parts.get().map(Parts::informers).unwrap_or_default()
    }

    /// Returns the informer of a kind, and starts the informer if it is not running yet. In a
    /// sharded operator, the informer reads the selected part of the kind.
    pub(crate) fn informer(&self, watched: &Watched, selected: Option<Selected>) -> Informer {
        match self.parts.get().zip(selected) {
            Some((parts, selected)) => {
                parts.informer(&self.factory, &self.options, (watched, selected))
            }
            None => watched.start(&self.factory, &self.options),
        }
    }

    /// Returns the declared kinds that have a Rust type.
    fn typed(&self) -> impl DoubleEndedIterator<Item = (TypeId, &(Watched, Option<Selected>))> {
        let kinds = self.kinds.iter();
        kinds.filter_map(|kind| Some((kind.0.type_id?, kind)))
    }

    /// Returns the Rust types of the declared kinds.
    pub(crate) fn types(&self) -> impl Iterator<Item = TypeId> {
        self.typed().map(|(id, _)| id)
    }

    /// Returns the informer of a declared Rust type, and starts the informer if it is not running
    /// yet. Returns `None` if nothing declares the type.
    pub(crate) fn of_type(&self, id: TypeId) -> Option<Informer> {
        let found = self.typed().rev().find(|(declared, _)| *declared == id);
        found.map(|(_, (watched, selected))| self.informer(watched, *selected))
    }

    /// Starts the informers that are not running yet, and returns all of them.
    pub(super) fn informers(&self) -> impl Iterator<Item = Informer> {
        let kinds = self.typed();
        kinds.map(|(_, (watched, selected))| self.informer(watched, *selected))
    }

    /// Returns a lister of a declared kind, and starts its informer if it is not running yet.
    pub(super) fn lister<K: Object>(&self) -> Result<Lister<K>, ReadError> {
        let informer = self.of_type(TypeId::of::<K>());
        informer
            .and_then(|it| it.lister())
            .ok_or_else(|| ReadError::NotCached {
                kind: Box::new(Kind::of::<K>()),
            })
    }

    /// Returns the informer of a declared kind that has no Rust type, and starts it if it is not
    /// running yet.
    pub(super) fn dynamic(&self, kind: &Kind) -> Result<Informer, ReadError> {
        let mut kinds = self.kinds.iter().rev();
        let declared = kinds.find(|(it, _)| it.type_id.is_none() && it.kind == *kind);
        let informer = declared.map(|(watched, selected)| self.informer(watched, *selected));
        informer.ok_or_else(|| ReadError::NotCached {
            kind: Box::new(kind.clone()),
        })
    }

    /// Starts the informers that are not running yet, and returns reads from their caches.
    pub(crate) fn start(&self) -> Reads {
        let mut declared = Declared::default();
        for (id, (watched, selected)) in self.typed() {
            let informer = self.informer(watched, *selected);
            declared.typed.insert(id, informer);
        }
        Reads {
            declared: Arc::new(declared),
            factory: self.factory.clone(),
            timeout: self.timeout,
        }
    }
}
