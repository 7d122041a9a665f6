//! What else a controller depends on: children, references, and anything with a map function.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kube::core::PartialObjectMeta;
use opkit_cache::{DynamicObject, Index, Selection, Stored};
use opkit_client::{Kind, Object, ObjectKey};

use crate::predicate::Predicate;
use crate::source::{self, MapContext};
use crate::spec::{Map, Role, Source, Watched};
use crate::{Controller, cross_namespace};

impl<K, S: Send + Sync + 'static> Controller<K, S> {
    /// Reconciles the owner when a child of kind `C` changes, and caches `C`. Children are those
    /// with a controller reference to an object of this kind: what `Context::apply` makes.
    pub fn owns<C: Object>(self) -> Self {
        let map = self.owner_map(false);
        self.source(Watched::typed::<C>(false), Role::Owned, map)
    }

    /// As [`owns`](Controller::owns), caching only the metadata of children.
    pub fn owns_metadata<C: Object>(self) -> Self
    where
        PartialObjectMeta<C>: Object,
    {
        let map = self.owner_map(false);
        let watched = Watched::typed::<PartialObjectMeta<C>>(true);
        self.source(watched, Role::Owned, map)
    }

    /// As [`owns`](Controller::owns), for a kind that is known only at run time.
    pub fn owns_dynamic(self, kind: Kind) -> Self {
        let map = self.owner_map(false);
        self.source(Watched::dynamic(kind), Role::Owned, map)
    }

    /// Reconciles every owner of this kind when an object of kind `C` changes, also those that are
    /// not its controller, and caches `C`.
    pub fn watches_owners<C: Object>(self) -> Self {
        let map = self.owner_map(true);
        self.source(Watched::typed::<C>(false), Role::Watched, map)
    }

    /// Reconciles the objects that `map` answers when an object of kind `C` changes, and caches
    /// `C`. For a change, `map` is called with the object before and after, and, of changes that came
    /// too fast to be told one by one, with those in between that had other labels or owners. Keys
    /// without a namespace are in that of the changed object.
    pub fn watches<C: Object>(
        self,
        map: impl Fn(&C, &MapContext) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        let map = self.typed_map(map);
        self.source(Watched::typed::<C>(false), Role::Watched, map)
    }

    /// As [`watches`](Controller::watches), asking the server for metadata only: cheap.
    pub fn watches_metadata<C: Object>(
        self,
        map: impl Fn(&PartialObjectMeta<C>, &MapContext) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self
    where
        PartialObjectMeta<C>: Object,
    {
        let map = self.typed_map(map);
        let watched = Watched::typed::<PartialObjectMeta<C>>(true);
        self.source(watched, Role::Watched, map)
    }

    /// As [`watches`](Controller::watches), for a kind that is known only at run time.
    pub fn watches_dynamic(
        self,
        kind: Kind,
        map: impl Fn(&DynamicObject, &MapContext) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        let namespaced = self.spec.kind.namespaced;
        let map: Arc<Map> = Arc::new(move |object, context| {
            let read = object.any().ok();
            let read = read.and_then(|read| read.into_any().downcast::<DynamicObject>().ok());
            let keys = read.map(|read| map(&read, context)).unwrap_or_default();
            completed(keys, object, namespaced)
        });
        self.source(Watched::dynamic(kind), Role::Watched, map)
    }

    /// Of the kind that was declared last, by a method that starts with `owns`, `watches` or
    /// `references`, leads only to a reconcile what `predicate` passes. Several combine: a change must
    /// pass all of them. Anywhere else it is an error at start; for the changes of the reconciled
    /// kind there is [`with_predicate`](Controller::with_predicate).
    pub fn only(mut self, predicate: Predicate) -> Self {
        let last = self.spec.sources.last_mut();
        match last.filter(|last| last.role != Role::Primary && !self.spec.is_trigger_last) {
            Some(last) => last.filter(predicate),
            None => self.spec.has_misplaced_filter = true,
        }
        self
    }

    /// The owners of this kind: the controller alone, or any.
    fn owner_map(&self, any: bool) -> Arc<Map> {
        let owner = self.spec.kind.clone();
        Arc::new(move |child, _| source::owners_of(&owner, &child.meta(), any))
    }

    fn typed_map<C: Object>(
        &self,
        map: impl Fn(&C, &MapContext) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Arc<Map> {
        let namespaced = self.spec.kind.namespaced;
        Arc::new(move |object, context| {
            // One that does not fit its type leads nowhere, as the cache has warned.
            let keys = object.get::<C>().map(|object| map(&object, context));
            completed(keys.unwrap_or_default(), object, namespaced)
        })
    }

    fn source(mut self, watched: Watched, role: Role, map: Arc<Map>) -> Self {
        self.spec.is_trigger_last = false;
        self.spec.sources.push(Source {
            watched,
            role,
            map: Some(map),
            predicate: None,
        });
        self
    }
}

impl<K: Object, S: Send + Sync + 'static> Controller<K, S> {
    /// Reconciles an object of this kind when an object of kind `C` changes that `keys` says it
    /// names, and caches `C`. opkit keeps the reverse index. A key without a namespace is in that of the object;
    /// one in another namespace counts, and can be read, only where the operator declares
    /// `cross_namespace::<C>` and that grants it.
    ///
    /// # Examples
    /// ```
    /// use std::sync::Arc;
    /// use k8s_openapi::api::core::v1::{ConfigMap, Pod};
    /// use opkit_controller::{Action, Context, Controller, ObjectKey, Result};
    ///
    /// fn config_maps(pod: &Pod) -> Vec<ObjectKey> {
    ///     let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    ///     volumes.filter_map(|volume| Some(volume.config_map.as_ref()?.name.as_str().into())).collect()
    /// }
    /// async fn reconcile(pod: Arc<Pod>, cx: Context) -> Result<Action> {
    ///     Ok(Action::await_change())
    /// }
    /// let controller = Controller::new(reconcile).references::<ConfigMap>(config_maps);
    /// ```
    pub fn references<C: Object>(
        mut self,
        keys: impl Fn(&K) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        static DECLARED: AtomicU64 = AtomicU64::new(0);
        let number = DECLARED.fetch_add(1, Ordering::Relaxed);
        let target = Kind::of::<C>();
        let name = format!("references {} {number}", target.kind);
        let namespaced = target.namespaced;
        let index = Index::typed(name.clone(), move |object: &K| {
            let own = object.meta().namespace.as_deref().filter(|_| namespaced);
            let named = keys(object).into_iter();
            named.map(|key| key.or_namespace(own).to_string()).collect()
        });
        self.spec.indexes.push(index);
        let map = move |object: &Stored, context: &MapContext| {
            let key = object.key();
            let naming = Selection::default()
                .all_namespaces()
                .by_index(&name, key.to_string());
            let Ok(lister) = context.lister::<K>() else {
                return Vec::new();
            };
            let mut from = lister.keys(&naming);
            from.retain(|from| cross_namespace::leads(context, from, &target, &key));
            from
        };
        self.source(Watched::typed::<C>(false), Role::Referenced, Arc::new(map))
    }
}

/// Keys without a namespace are in that of the object that they were made from.
fn completed(keys: Vec<ObjectKey>, object: &Stored, namespaced: bool) -> Vec<ObjectKey> {
    let namespace = object.namespace().filter(|_| namespaced);
    let keys = keys.into_iter();
    keys.map(|key| key.or_namespace(namespace.as_deref()))
        .collect()
}
