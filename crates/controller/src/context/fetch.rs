//! `Context::fetch` and `fetch_list`: reads from the cache or from the server, as declared.

use std::any::TypeId;
use std::sync::Arc;

use opkit_cache::{Lister, ObjectError, Selection};
use opkit_client::{Kind, Object, ObjectKey};

use super::Context;
use super::live::{key_of, selection_of};
use crate::error::ReadError;
use crate::reads::Route;

impl<S> Context<S> {
    /// Returns an object, or `None` if it does not exist, from where the controller or the operator
    /// declares the kind:
    ///
    /// - a kind that the controller watches: from the cache, as [`get`](Context::get)
    /// - [`uncached`](crate::Controller::uncached): from the server
    /// - [`cached_or_live`](crate::Controller::cached_or_live): from the cache, or else from the
    ///   server
    ///
    /// A key is `name`, which means the namespace of the reconciled object, or `(namespace, name)`.
    ///
    /// A replica of a sharded operator caches a part of a kind that the controller watches. An
    /// object that is not in the cache, and that another replica may have, is read from the server.
    ///
    /// # Errors
    /// When the kind is not declared, the object cannot be decoded as its Rust type, or a request
    /// fails. Also when the kind is namespaced, but neither the key nor the reconciled object has a
    /// namespace.
    ///
    /// # Cancel safety
    /// The future can be dropped at any time.
    pub async fn fetch<K: Object>(
        &self,
        key: impl Into<ObjectKey>,
    ) -> Result<Option<Arc<K>>, ReadError> {
        let key = key_of::<K>(self.owner.key.namespace.as_deref(), key)?;
        if let Some(found) = self.fetch_cached::<K>(&key)? {
            return Ok(found);
        }
        self.live().get(key).await
    }

    /// Returns the selected objects from where the controller or the operator declares the kind;
    /// see
    /// [`fetch`](Context::fetch). A selection without a namespace selects the namespace of the
    /// reconciled object, unless it selects [all namespaces](Selection::all_namespaces).
    ///
    /// A replica of a sharded operator reads a kind from the server if it caches only a part of the
    /// selected objects. It always reads selections by an index or by an owner from its cache.
    ///
    /// # Errors
    /// When the kind is not declared, or a request fails. Also when the selection is by an index
    /// and the kind is read from the server, which has no indexes.
    ///
    /// # Cancel safety
    /// The future can be dropped at any time.
    pub async fn fetch_list<K: Object>(
        &self,
        selection: impl Into<Selection>,
    ) -> Result<Vec<Arc<K>>, ReadError> {
        let selection = selection_of::<K>(self.owner.key.namespace.as_deref(), selection);
        match self.complete_lister::<K>(&selection)? {
            Some(lister) => Ok(self.list_from(&lister, &selection)),
            None => self.live().list(selection).await,
        }
    }

    /// Returns the result of reading an object from the cache, or `None` if it must be read from
    /// the server.
    fn fetch_cached<K: Object>(
        &self,
        key: &ObjectKey,
    ) -> Result<Option<Option<Arc<K>>>, ReadError> {
        let declared = &self.term.cluster.reads.declared;
        let (informer, asks_server) = match self.route::<K>()? {
            Route::Cache(informer) => {
                let namespace = key.namespace.as_deref();
                (informer, declared.is_divided(TypeId::of::<K>(), namespace))
            }
            Route::CacheOrServer(informer) => (informer, true),
            Route::Server => return Ok(None),
        };
        let Some(lister) = informer.lister::<K>() else {
            return Ok(None);
        };
        self.check_crossing::<K>(key)?;
        self.trace.read_cache();
        match lister.get(key) {
            Ok(None) if asks_server => Ok(None),
            // The operator may get the object: its memory budget says so.
            Err(error) if matches!(&*error, ObjectError::Evicted { .. }) => Ok(None),
            found => Ok(Some(found?)),
        }
    }

    /// Returns a lister of a cache that has all selected objects; `None` if the objects must be
    /// read from the server.
    fn complete_lister<K: Object>(
        &self,
        selection: &Selection,
    ) -> Result<Option<Lister<K>>, ReadError> {
        Ok(match self.route::<K>()? {
            Route::Cache(informer) => {
                let declared = &self.term.cluster.reads.declared;
                let namespace = selection.namespace.as_deref();
                let is_own = selection.index.is_some() || selection.owner_uid.is_some();
                match !is_own && declared.is_divided(TypeId::of::<K>(), namespace) {
                    true => None,
                    false => informer.lister(),
                }
            }
            Route::CacheOrServer(informer) => {
                match informer.has_all(selection.namespace.as_deref()) {
                    true => informer.lister(),
                    false => None,
                }
            }
            Route::Server => None,
        })
    }

    /// Returns the selected objects from the cache, without those that the reconciled object may
    /// not refer to.
    pub(super) fn list_from<K: Object>(
        &self,
        lister: &Lister<K>,
        selection: &Selection,
    ) -> Vec<Arc<K>> {
        self.trace.read_cache();
        let mut found = lister.list(selection);
        found.retain(|object| {
            self.check_crossing::<K>(&ObjectKey::of(object.meta()))
                .is_ok()
        });
        found
    }

    fn route<K: Object>(&self) -> Result<Route<'_>, ReadError> {
        let reads = &self.term.cluster.reads;
        let route = reads.declared.route(TypeId::of::<K>());
        route.ok_or_else(|| ReadError::NotReadable {
            controller: reads.controller.name.to_string(),
            kind: Box::new(Kind::of::<K>()),
        })
    }
}
