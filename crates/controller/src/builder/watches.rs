//! The other kinds that a controller depends on: children, references, and kinds with map
//! functions.

use std::sync::atomic::{AtomicU64, Ordering};

use kube::core::PartialObjectMeta;
use opkit_cache::{DynamicObject, Index, Selection, Stored};
use opkit_client::{Kind, Object, ObjectKey};

use super::source::{EverySource, Source};
use crate::builder::Controller;
use crate::context::unowned;
use crate::reads::{MapContext, Watched, cross_namespace};
use crate::source::spec::{Role, SourceSpec};

impl<K, S: Send + Sync + 'static> Controller<K, S> {
    /// Caches the kind `C`, and reconciles the owner when a child of kind `C` changes. A child is
    /// an object with a controller reference to an object of the reconciled kind, as
    /// [`Context::apply`](crate::Context::apply) sets it.
    pub fn owns<C: Object>(self) -> Self {
        self.owns_with::<C>(|source| source)
    }

    /// Same as [`owns`](Controller::owns), with filters and further map functions on the source.
    pub fn owns_with<C: Object>(self, set: impl FnOnce(Source<C>) -> Source<C>) -> Self {
        let source = self.typed_source().map_to_owners(false);
        self.source(Watched::typed::<C>(false), Role::Owned, set(source))
    }

    /// Same as [`owns`](Controller::owns), for children that the controller creates with
    /// [`Context::create_once`](crate::Context::create_once) and never changes or prunes. The role
    /// of the operator then has no permission to change or delete objects of this kind.
    pub fn creates_once<C: Object>(self) -> Self {
        let source = self.typed_source::<C>().map_to_owners(false);
        self.source(Watched::typed::<C>(false), Role::CreatedOnce, source)
    }

    /// Same as [`owns`](Controller::owns), but caches only the metadata of children.
    pub fn owns_metadata<C: Object>(self) -> Self
    where
        PartialObjectMeta<C>: Object,
    {
        self.owns_metadata_with::<C>(|source| source)
    }

    /// Same as [`owns_metadata`](Controller::owns_metadata), with filters and further map functions
    /// on the source.
    pub fn owns_metadata_with<C: Object>(
        self,
        set: impl FnOnce(Source<PartialObjectMeta<C>>) -> Source<PartialObjectMeta<C>>,
    ) -> Self
    where
        PartialObjectMeta<C>: Object,
    {
        let source = self.typed_source().map_to_owners(false);
        let watched = Watched::typed::<PartialObjectMeta<C>>(true);
        self.source(watched, Role::Owned, set(source))
    }

    /// Same as [`owns`](Controller::owns), for a kind that is known only at run time.
    pub fn owns_dynamic(self, kind: Kind) -> Self {
        self.owns_dynamic_with(kind, |source| source)
    }

    /// Same as [`owns_dynamic`](Controller::owns_dynamic), with filters and further map functions
    /// on the source.
    pub fn owns_dynamic_with(
        self,
        kind: Kind,
        set: impl FnOnce(Source<DynamicObject>) -> Source<DynamicObject>,
    ) -> Self {
        let source = self.dynamic_source().map_to_owners(false);
        self.source(Watched::dynamic(kind), Role::Owned, set(source))
    }

    /// Allows [`Context::apply_unowned`](crate::Context::apply_unowned) for the kind `C`, which
    /// applies children in other namespaces and cluster-scoped children. Caches `C`, and reconciles
    /// the owner when such a child changes. The generated permissions allow reading and writing
    /// objects of kind `C`, and writing the list of children to an annotation of the owner.
    pub fn applies_unowned<C: Object>(self) -> Self {
        self.applies_unowned_with::<C>(|source| source)
    }

    /// Same as [`applies_unowned`](Controller::applies_unowned), with filters and further map
    /// functions on the source.
    pub fn applies_unowned_with<C: Object>(self, set: impl FnOnce(Source<C>) -> Source<C>) -> Self {
        let kind = Kind::of::<C>();
        let source = self.typed_source().add_map(move |event, context| {
            let old = event
                .old()
                .and_then(|old| unowned::owner_of(old, &kind, context));
            let new = unowned::owner_of(event.object(), &kind, context);
            old.into_iter().chain(new).collect()
        });
        self.source(Watched::typed::<C>(false), Role::Unowned, set(source))
    }

    /// Caches the kind `C`. When an object of kind `C` changes, every owner of the object that is
    /// of the reconciled kind is reconciled, not only the owner that is marked as the controller.
    pub fn watches_owners<C: Object>(self) -> Self {
        self.watches_with::<C>(Source::map_owners)
    }

    /// Caches the kind `C`, and reconciles the objects that `map` returns when an object of kind
    /// `C` changes. For an update, `map` is called with the object before and after the change. If
    /// several changes are reported together because they follow each other too fast, `map` is also
    /// called with the versions in between whose labels or owners differ. A key without a namespace
    /// gets the namespace of the changed object.
    pub fn watches<C: Object>(
        self,
        map: impl Fn(&C, &MapContext) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        self.watches_with::<C>(|source| source.map(map))
    }

    /// Caches the kind `C`, and reconciles the objects that the map functions of a [`Source`]
    /// return for events of objects of kind `C`. `set` configures the source: its filters, and its
    /// map functions for all events or for one type of event.
    ///
    /// # Examples
    /// ```
    /// # use opkit_controller as opkit;
    /// use std::sync::Arc;
    /// use k8s_openapi::api::core::v1::{ConfigMap, Node};
    /// use opkit::{Action, Context, Controller, Result, predicate};
    ///
    /// async fn reconcile(map: Arc<ConfigMap>, cx: Context) -> Result<Action> {
    ///     Ok(Action::await_change())
    /// }
    /// let controller = Controller::new(reconcile).watches_with::<Node>(|nodes| {
    ///     nodes
    ///         .only(predicate::labels_changed())
    ///         .map(|node, cx| vec![("zones", node.metadata.name.as_deref().unwrap_or("")).into()])
    /// });
    /// ```
    pub fn watches_with<C: Object>(self, set: impl FnOnce(Source<C>) -> Source<C>) -> Self {
        let source = self.typed_source();
        self.source(Watched::typed::<C>(false), Role::Watched, set(source))
    }

    /// Same as [`watches`](Controller::watches), but requests and caches only metadata, which needs
    /// less memory.
    pub fn watches_metadata<C: Object>(
        self,
        map: impl Fn(&PartialObjectMeta<C>, &MapContext) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self
    where
        PartialObjectMeta<C>: Object,
    {
        self.watches_metadata_with::<C>(|source| source.map(map))
    }

    /// Same as [`watches_with`](Controller::watches_with), but requests and caches only metadata,
    /// which needs less memory.
    pub fn watches_metadata_with<C: Object>(
        self,
        set: impl FnOnce(Source<PartialObjectMeta<C>>) -> Source<PartialObjectMeta<C>>,
    ) -> Self
    where
        PartialObjectMeta<C>: Object,
    {
        let source = self.typed_source();
        let watched = Watched::typed::<PartialObjectMeta<C>>(true);
        self.source(watched, Role::Watched, set(source))
    }

    /// Same as [`watches`](Controller::watches), for a kind that is known only at run time.
    pub fn watches_dynamic(
        self,
        kind: Kind,
        map: impl Fn(&DynamicObject, &MapContext) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        self.watches_dynamic_with(kind, |source| source.map(map))
    }

    /// Same as [`watches_with`](Controller::watches_with), for a kind that is known only at run
    /// time.
    pub fn watches_dynamic_with(
        self,
        kind: Kind,
        set: impl FnOnce(Source<DynamicObject>) -> Source<DynamicObject>,
    ) -> Self {
        let source = self.dynamic_source();
        self.source(Watched::dynamic(kind), Role::Watched, set(source))
    }

    /// Sets filters for the events of all sources, whether declared before or after this call. An
    /// event must pass these filters and those of its own source.
    pub fn every_source(mut self, set: impl FnOnce(EverySource) -> EverySource) -> Self {
        let predicate = self.spec.event_filter.take();
        self.spec.event_filter = set(EverySource { predicate }).predicate;
        self
    }

    fn typed_source<C: Object>(&self) -> Source<C> {
        Source::new(&self.spec.kind, |stored| stored.get().ok())
    }

    fn dynamic_source(&self) -> Source<DynamicObject> {
        Source::new(&self.spec.kind, |stored| {
            stored.any().ok()?.into_any().downcast().ok()
        })
    }

    fn source<C>(mut self, watched: Watched, role: Role, source: Source<C>) -> Self {
        let number = self.spec.sources.len();
        let triggers = source.triggers.into_iter();
        self.triggers
            .extend(triggers.map(|triggers| (number, triggers)));
        self.spec.sources.push(SourceSpec {
            watched,
            role,
            maps: source.maps,
            predicate: source.predicate,
        });
        self
    }
}

impl<K: Send + Sync + 'static, S: Send + Sync + 'static> Controller<K, S> {
    /// Configures the source of the reconciled kind: filters of its events, and further objects to
    /// reconcile.
    ///
    /// # Examples
    /// ```
    /// # use opkit_controller as opkit;
    /// use std::sync::Arc;
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use opkit::{Action, Context, Controller, Result, predicate};
    ///
    /// async fn reconcile(deployment: Arc<Deployment>, cx: Context) -> Result<Action> {
    ///     Ok(Action::await_change())
    /// }
    /// // Changes of the status alone do not cause a reconcile.
    /// let controller = Controller::new(reconcile)
    ///     .primary(|deployments| deployments.only(predicate::generation_changed()));
    /// ```
    pub fn primary(mut self, set: impl FnOnce(Source<K>) -> Source<K>) -> Self {
        let Some(own) = self.spec.sources.first_mut() else {
            return self;
        };
        let mut source = Source::new(&self.spec.kind, |stored| {
            stored.any().ok()?.into_any().downcast().ok()
        });
        source.maps = std::mem::take(&mut own.maps);
        source.predicate = own.predicate.take();
        let source = set(source);
        own.maps = source.maps;
        own.predicate = source.predicate;
        let triggers = source.triggers.into_iter();
        self.triggers.extend(triggers.map(|triggers| (0, triggers)));
        self
    }
}

impl<K: Object, S: Send + Sync + 'static> Controller<K, S> {
    /// Caches the kind `C`. When an object of kind `C` changes, all objects of the reconciled kind
    /// that refer to the changed object are reconciled. `keys` returns the keys of the objects that
    /// one reconciled object refers to; opkit keeps the reverse index. A key without a namespace
    /// gets the namespace of the referring object. A reference to another namespace is used, and
    /// can be read, only if the operator declares `cross_namespace::<C>` with a function that
    /// grants the reference.
    ///
    /// # Examples
    /// ```
    /// # use opkit_controller as opkit;
    /// use std::sync::Arc;
    /// use k8s_openapi::api::core::v1::{ConfigMap, Pod};
    /// use opkit::{Action, Context, Controller, ObjectKey, Result};
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
        self,
        keys: impl Fn(&K) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        self.references_with::<C>(keys, |source| source)
    }

    /// Same as [`references`](Controller::references), with filters and further map functions on
    /// the source.
    pub fn references_with<C: Object>(
        mut self,
        keys: impl Fn(&K) -> Vec<ObjectKey> + Send + Sync + 'static,
        set: impl FnOnce(Source<C>) -> Source<C>,
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
        let referring = move |object: &Stored, context: &MapContext| {
            let key = object.key();
            let selection = Selection::default()
                .all_namespaces()
                .by_index(&name, key.to_string());
            let Ok(lister) = context.lister::<K>() else {
                return Vec::new();
            };
            let mut from = lister.keys(&selection);
            from.retain(|from| cross_namespace::leads(context, from, &target, &key));
            from
        };
        let source = self.typed_source().add_map(move |event, context| {
            // The old and the new object have the same key.
            referring(event.object(), context)
        });
        self.source(Watched::typed::<C>(false), Role::Referenced, set(source))
    }
}
