//! Reads of declared kinds from the cache of one cluster.

use std::any::TypeId;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use foldhash::fast::RandomState;
use opkit_cache::{DynamicObject, Informer, Lister, Selection};
use opkit_client::{GroupResource, Kind, Object, ObjectKey};

use super::cross_namespace::Grants;
use super::{ControllerIdentity, Divided, UndeclaredReads};
use crate::error::ReadError;

/// Reads from the cache for the map functions of a controller: the objects of the kinds that the
/// controller declares, in one cluster.
#[derive(Debug, Clone)]
pub struct MapContext {
    pub(crate) controller: Arc<ControllerIdentity>,
    pub(crate) declared: Arc<Declared>,
    /// Informer of the reconciled kind.
    pub(crate) primary: Informer,
    pub(crate) grants: Arc<Grants>,
}

/// The informers of the kinds that a controller declares, in one cluster.
#[derive(Debug, Default)]
pub(crate) struct Declared {
    pub(crate) typed: HashMap<TypeId, Informer, RandomState>,
    pub(crate) dynamic: HashMap<Kind, Informer>,
    /// Kinds that are read from the server, with the informer that is read first, if any.
    pub(crate) uncached: HashMap<TypeId, Option<Informer>, RandomState>,
    /// Where kinds that are not declared are read.
    pub(crate) undeclared: UndeclaredReads,
    /// Kinds of which a replica of a sharded operator caches a part.
    pub(crate) divided: Option<Divided>,
    /// Kinds of children with owner references, regardless of the API version and of whether only
    /// metadata is cached. `Context::apply` accepts only these kinds.
    pub(crate) owned: HashSet<GroupResource, RandomState>,
    /// Kinds of children with owner references that the controller only creates.
    /// `Context::create_once` accepts these kinds and those in `owned`.
    pub(crate) created_once: HashSet<GroupResource, RandomState>,
    /// Kinds of children without owner references, which `Context::apply_unowned` accepts.
    pub(crate) unowned: HashSet<GroupResource, RandomState>,
    /// Kinds that may be read in another namespace only if the operator's `cross_namespace`
    /// function grants the reference.
    pub(crate) referenced: HashSet<GroupResource, RandomState>,
}

impl MapContext {
    /// Returns the selected objects of a declared kind from the cache.
    ///
    /// # Errors
    /// When the kind is not declared.
    pub fn list<K: Object>(
        &self,
        selection: impl Into<Selection>,
    ) -> Result<Vec<Arc<K>>, ReadError> {
        Ok(self.lister::<K>()?.list(&selection.into()))
    }

    /// Returns an object of a declared kind from the cache, or `None` if the cache does not have
    /// it.
    ///
    /// # Errors
    /// When the kind is not declared, or the object cannot be decoded as its Rust type.
    pub fn get<K: Object>(&self, key: impl Into<ObjectKey>) -> Result<Option<Arc<K>>, ReadError> {
        Ok(self.lister::<K>()?.get(&key.into())?)
    }

    /// Returns an object of a declared kind that is known only at run time, or `None` if the cache
    /// does not have it.
    ///
    /// # Errors
    /// When the kind is not declared, or the object cannot be decoded.
    pub fn get_dynamic(
        &self,
        kind: &Kind,
        key: impl Into<ObjectKey>,
    ) -> Result<Option<Arc<DynamicObject>>, ReadError> {
        let Some(informer) = self.declared.dynamic.get(kind) else {
            return Err(self.not_declared(kind.clone()));
        };
        let found = informer.get(&key.into())?;
        Ok(found.and_then(|found| found.into_any().downcast().ok()))
    }

    pub(crate) fn lister<K: Object>(&self) -> Result<Lister<K>, ReadError> {
        let informer = self.declared.typed.get(&TypeId::of::<K>());
        informer.and_then(Informer::lister).ok_or_else(|| {
            match self.declared.uncached.contains_key(&TypeId::of::<K>()) {
                true => ReadError::Uncached {
                    controller: self.controller.name.to_string(),
                    kind: Box::new(Kind::of::<K>()),
                },
                false => self.not_declared(Kind::of::<K>()),
            }
        })
    }

    fn not_declared(&self, kind: Kind) -> ReadError {
        ReadError::NotDeclared {
            controller: self.controller.name.to_string(),
            kind: Box::new(kind),
        }
    }
}
