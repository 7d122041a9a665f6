//! The builder of a controller, typed outside and erased inside.

use std::any::TypeId;
use std::collections::HashSet;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;

use opkit_cache::{Informer, InformerFactory, Stored};
use opkit_client::{Kind, Object, ObjectKey};

use crate::predicate::Predicate;
use crate::reconcile::{Function, Reconcile};
use crate::source::{self, MapContext};
use crate::{Action, Cleanup, Context, Result};

/// A controller: a kind, the function that reconciles it, and what else it depends on.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// use opkit_controller::{Action, Context, Controller, Result, predicate};
///
/// async fn reconcile(map: Arc<ConfigMap>, cx: Context) -> Result<Action> {
///     Ok(Action::await_change())
/// }
/// let controller = Controller::new(reconcile)
///     .owns::<Secret>()
///     .with_predicate(predicate::labels_changed())
///     .max_concurrent_reconciles(4);
/// ```
#[derive(Debug)]
pub struct Controller<K, S = ()> {
    spec: ControllerSpec,
    types: PhantomData<fn(K, S)>,
}

/// A controller without its types: what a manager takes.
#[derive(Debug)]
pub struct AnyController {
    pub(crate) spec: ControllerSpec,
}

impl AnyController {
    /// The name of the controller.
    pub fn name(&self) -> &str {
        &self.spec.name
    }

    /// The kind that it reconciles.
    pub fn kind(&self) -> &Kind {
        &self.spec.kind
    }
}

impl<K> From<Controller<K>> for AnyController {
    fn from(controller: Controller<K>) -> Self {
        AnyController {
            spec: controller.spec,
        }
    }
}

#[derive(Debug)]
pub(crate) struct ControllerSpec {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) reconcile: Function<Action>,
    pub(crate) finalizer: Option<Finalizer>,
    pub(crate) predicate: Option<Predicate>,
    pub(crate) max_concurrent_reconciles: usize,
    pub(crate) start: fn(&InformerFactory) -> Informer,
    /// The kind itself and the others.
    pub(crate) sources: Vec<Source>,
    pub(crate) declared: HashSet<TypeId>,
}

#[derive(Debug)]
pub(crate) struct Finalizer {
    pub(crate) name: String,
    pub(crate) function: Function<Cleanup>,
}

type Map = dyn Fn(&Stored, &MapContext) -> Vec<ObjectKey> + Send + Sync;

/// A kind whose changes lead to reconciles.
pub(crate) struct Source {
    pub(crate) kind: Kind,
    pub(crate) type_id: TypeId,
    pub(crate) start: fn(&InformerFactory) -> Informer,
    /// Whether its objects are children, which are pruned.
    pub(crate) is_owned: bool,
    /// None for the kind itself.
    pub(crate) map: Option<Arc<Map>>,
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

impl Source {
    fn new<K: Object>(map: Option<Arc<Map>>) -> Self {
        Source {
            kind: Kind::of::<K>(),
            type_id: TypeId::of::<K>(),
            start: |factory| factory.informer::<K>().informer().clone(),
            is_owned: false,
            map,
        }
    }
}

impl<K: Object, S: Send + Sync + 'static> Controller<K, S> {
    /// A controller that calls `reconcile` for each object of its kind that needs it.
    pub fn new<M>(reconcile: impl Reconcile<M, Kind = K, State = S>) -> Self {
        let kind = Kind::of::<K>();
        Controller {
            spec: ControllerSpec {
                name: kind.kind.to_lowercase(),
                kind,
                reconcile: Function::new(move |object, context| {
                    reconcile.reconcile(object, context)
                }),
                finalizer: None,
                predicate: None,
                max_concurrent_reconciles: 1,
                start: |factory| factory.informer::<K>().informer().clone(),
                sources: vec![Source::new::<K>(None)],
                declared: [TypeId::of::<K>()].into(),
            },
            types: PhantomData,
        }
    }

    /// Names the controller; by default it is the kind in lower case. The name is part of the
    /// field manager, so renaming a controller makes it a stranger to its children's fields.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.spec.name = name.into();
        self
    }

    /// Reconciles the owner when a child of kind `C` changes, and caches `C`. Children are those
    /// with a controller reference to an object of this kind: what `Context::apply` makes.
    pub fn owns<C: Object>(self) -> Self {
        let owner = self.spec.kind.clone();
        let mut controller = self.source::<C>(Arc::new(move |child, _| {
            source::owner_of(&owner, &child.meta())
        }));
        if let Some(source) = controller.spec.sources.last_mut() {
            source.is_owned = true;
        }
        controller
    }

    /// Reconciles the objects that `map` answers when an object of kind `C` changes, and caches
    /// `C`. For a change, `map` is called with the object before and after, and, of changes that came
    /// too fast to be told one by one, with those in between that had other labels or owners. Keys
    /// without a namespace are in that of the changed object.
    pub fn watches<C: Object>(
        self,
        map: impl Fn(&C, &MapContext) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        let namespaced = self.spec.kind.namespaced;
        self.source::<C>(Arc::new(move |object, context| {
            let namespace = object.namespace().filter(|_| namespaced);
            // One that does not fit its type leads nowhere, as the cache has warned.
            let keys = object.get::<C>().map(|object| map(&object, context));
            keys.unwrap_or_default()
                .into_iter()
                .map(|key| key.or_namespace(namespace.as_deref()))
                .collect()
        }))
    }

    /// Calls `function` for an object that is being deleted, until it answers [`Cleanup::Done`].
    /// The finalizer is stored on each object before its first reconcile.
    pub fn finalizer<F, Fut>(mut self, name: impl Into<String>, function: F) -> Self
    where
        F: Fn(Arc<K>, Context<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Cleanup>> + Send + 'static,
    {
        self.spec.finalizer = Some(Finalizer {
            name: name.into(),
            function: Function::new(move |object, context| Box::pin(function(object, context))),
        });
        self
    }

    /// Reconciles only for those changes of the kind itself that `predicate` passes.
    pub fn with_predicate(mut self, predicate: Predicate) -> Self {
        self.spec.predicate = Some(predicate);
        self
    }

    /// How many objects may be reconciled at once; 1 by default. One object never is twice.
    pub fn max_concurrent_reconciles(mut self, count: usize) -> Self {
        self.spec.max_concurrent_reconciles = count.max(1);
        self
    }

    fn source<C: Object>(mut self, map: Arc<Map>) -> Self {
        self.spec.sources.push(Source::new::<C>(Some(map)));
        self.spec.declared.insert(TypeId::of::<C>());
        self
    }
}
