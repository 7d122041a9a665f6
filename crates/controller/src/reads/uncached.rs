//! Kinds that a controller reads without watching them, and where the reads go.

use std::any::TypeId;
use std::collections::HashSet;

use opkit_apimachinery::shard::{ShardKey, hash};
use opkit_cache::Informer;
use opkit_client::{Kind, Object};
use opkit_leaderelection::OwnedSlots;

use super::Declared;

/// Where [`Context::fetch`](crate::Context::fetch) and `fetch_list` read the kinds that neither the
/// controller nor the operator declares; see `Operator::undeclared_reads`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum UndeclaredReads {
    /// Nowhere: the read is an error that names the declaration to add.
    #[default]
    Refused,
    /// From the server: each read sends a request.
    Uncached,
    /// From the cache of another controller of the operator, as
    /// [`Controller::cached_or_live`](crate::Controller::cached_or_live) reads, or else from the
    /// server.
    CachedOrLive,
}

/// A kind that is read from the server.
#[derive(Debug, Clone)]
pub(crate) struct UncachedKind {
    pub(crate) kind: Kind,
    pub(crate) type_id: TypeId,
    /// Whether the cache is read first, if a controller of the operator has one.
    pub(crate) or_cached: bool,
}

impl UncachedKind {
    pub(crate) fn of<K: Object>(or_cached: bool) -> Self {
        Self {
            kind: Kind::of::<K>(),
            type_id: TypeId::of::<K>(),
            or_cached,
        }
    }
}

/// Where a kind is read.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Route<'a> {
    Cache(&'a Informer),
    /// From the cache, and from the server what the cache does not have.
    CacheOrServer(&'a Informer),
    Server,
}

/// Kinds of which a replica of a sharded operator caches a part.
#[derive(Debug)]
pub(crate) struct Divided {
    pub(crate) by: ShardKey,
    pub(crate) owned: OwnedSlots,
    pub(crate) types: HashSet<TypeId>,
}

impl Declared {
    /// Reports whether objects of a kind in `namespace` may exist that only another replica of a
    /// sharded operator caches.
    pub(crate) fn is_divided(&self, type_id: TypeId, namespace: Option<&str>) -> bool {
        let divided = self.divided.as_ref();
        let divided = divided.filter(|it| it.types.contains(&type_id));
        divided.is_some_and(|it| match (it.by, namespace) {
            (ShardKey::Namespace, Some(namespace)) => !it.owned.serves(hash(namespace)),
            // The UID of an object that is not cached is unknown.
            (ShardKey::Uid, _) | (ShardKey::Namespace, None) => true,
        })
    }

    /// Returns where a kind is read; `None` if the kind is not declared.
    pub(crate) fn route(&self, type_id: TypeId) -> Option<Route<'_>> {
        if let Some(cached) = self.uncached.get(&type_id) {
            return Some(match cached {
                Some(informer) => Route::CacheOrServer(informer),
                None => Route::Server,
            });
        }
        match self.typed.get(&type_id) {
            Some(informer) => Some(Route::Cache(informer)),
            None => (self.undeclared != UndeclaredReads::Refused).then_some(Route::Server),
        }
    }
}
