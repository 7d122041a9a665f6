//! Kinds that are cached for a controller.

use std::any::TypeId;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use opkit_cache::{Informer, InformerFactory, InformerOptions, Shards};
use opkit_client::{Kind, Object};

type Start = dyn Fn(&InformerFactory, InformerOptions) -> Informer + Send + Sync;

/// A kind that is cached for a controller, as whole objects or only with metadata.
#[derive(Clone)]
pub(crate) struct Watched {
    pub(crate) kind: Kind,
    /// Rust type of the kind; `None` for a kind that is known only at run time.
    pub(crate) type_id: Option<TypeId>,
    start: Arc<Start>,
    pub(crate) metadata_only: bool,
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl Watched {
    pub(crate) fn typed<K: Object>(metadata_only: bool) -> Self {
        Self {
            kind: Kind::of::<K>(),
            type_id: Some(TypeId::of::<K>()),
            start: Arc::new(|factory, options| {
                factory.informer_with::<K>(options).informer().clone()
            }),
            metadata_only,
        }
    }

    pub(crate) fn dynamic(kind: Kind) -> Self {
        let of = kind.clone();
        Self {
            kind,
            type_id: None,
            start: Arc::new(move |factory, options| factory.dynamic(of.clone(), options)),
            metadata_only: false,
        }
    }

    /// Returns the informer of the kind, and starts the informer if it is not running yet. `cached`
    /// contains the informer options that the operator has set, by Rust type.
    pub(crate) fn start(
        &self,
        factory: &InformerFactory,
        cached: &HashMap<TypeId, InformerOptions>,
    ) -> Informer {
        (self.start)(factory, self.options(cached))
    }

    /// Same as [`start`](Self::start), for an informer of a part of the kind.
    pub(crate) fn start_part(
        &self,
        factory: &InformerFactory,
        cached: &HashMap<TypeId, InformerOptions>,
        shards: Shards,
    ) -> Informer {
        (self.start)(factory, self.options(cached).shards(shards))
    }

    fn options(&self, cached: &HashMap<TypeId, InformerOptions>) -> InformerOptions {
        let options = self.type_id.and_then(|id| cached.get(&id)).cloned();
        let mut options = options.unwrap_or_default();
        options.metadata_only |= self.metadata_only;
        options
    }
}
