//! The builder of a controller, typed outside and erased inside.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use kube::core::PartialObjectMeta;
use opkit_cache::DynamicObject;
use opkit_client::{Kind, Object};
use opkit_workqueue::{ItemExponential, RateLimiter};

use crate::builder::spec::{AnyController, ControllerSpec};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::object::Request;
use crate::reads::Watched;
use crate::reconcile::error_policy::ErrorPolicy;
use crate::reconcile::function::{
    Finalizer, Function, KeyFunction, Reconcile, Reconciler, converted,
};
use crate::reconcile::{Action, Cleanup};
use crate::source::{Triggers, WatchStream};
use crate::state::StateType;

/// A controller: a kind, the function that reconciles it, and what else it depends on.
///
/// # Examples
/// ```
/// # use opkit_controller as opkit;
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// use opkit::{Action, Context, Controller, Result, predicate};
///
/// async fn reconcile(map: Arc<ConfigMap>, cx: Context) -> Result<Action> {
///     Ok(Action::await_change())
/// }
/// let controller = Controller::new(reconcile)
///     .owns::<Secret>()
///     .primary(|maps| maps.only(predicate::labels_changed()))
///     .max_concurrent_reconciles(4);
/// ```
///
/// In kube's shape, with a state of one's own instead of a context:
/// ```
/// # use opkit_controller as opkit;
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use opkit::{Action, Controller};
///
/// struct App {
///     client: kube::Client,
/// }
/// async fn reconcile(map: Arc<ConfigMap>, app: Arc<App>) -> Result<Action, kube::Error> {
///     Ok(Action::await_change())
/// }
/// let controller = Controller::new(reconcile);
/// ```
///
/// By key, also for objects that are gone:
/// ```
/// # use opkit_controller as opkit;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use opkit::{Action, Context, Controller, Request, Result};
///
/// async fn reconcile(request: Request, cx: Context) -> Result<Action> {
///     match cx.get::<ConfigMap>(request.key().clone())? {
///         Some(map) => println!("{} has {:?}", request.name, map.data),
///         None => println!("{} is gone", request.name),
///     }
///     Ok(Action::await_change())
/// }
/// let controller = Controller::<ConfigMap, _>::keyed(reconcile);
/// ```
pub struct Controller<K, S = ()> {
    pub(crate) spec: ControllerSpec,
    /// With the number of the source that they are events of.
    pub(super) triggers: Vec<(usize, Triggers)>,
    rate_limiter: Option<Box<dyn RateLimiter<Request>>>,
    types: PhantomData<fn(K, S)>,
}

impl<K, S> fmt::Debug for Controller<K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Controller").field(&self.spec).finish()
    }
}

impl<K, S> From<Controller<K, S>> for AnyController {
    fn from(controller: Controller<K, S>) -> Self {
        Self {
            spec: controller.spec,
            triggers: controller.triggers,
            rate_limiter: controller.rate_limiter,
        }
    }
}

impl<K: Object, S: Send + Sync + 'static> Controller<K, S> {
    /// A controller that calls `reconcile` for each object of its kind that needs it.
    pub fn new<M, R>(reconcile: R) -> Self
    where
        R: Reconcile<M, Kind = K, State = S>,
    {
        let function = Function::new(move |object, context| reconcile.reconcile(object, context));
        let reconciler = ControllerSpec::object(function, R::SEES_DELETION);
        Self::of(Watched::typed::<K>(false), reconciler)
    }

    /// A controller that calls `reconcile` with keys: also for objects that are being deleted,
    /// unless a finalizer is declared, and once more when they are gone. A context of an object
    /// that is gone reads, and applies nothing.
    pub fn keyed<F, E, Fut>(reconcile: F) -> Self
    where
        F: Fn(Request, Context<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Action, E>> + Send + 'static,
        E: Into<Error> + 'static,
    {
        let reconciler = Reconciler::Key(KeyFunction::new(reconcile));
        Self::of(Watched::typed::<K>(false), reconciler)
    }

    /// Calls `function` for an object that is being deleted, until it answers [`Cleanup::Done`].
    /// The finalizer is stored on each object before its first reconcile.
    pub fn finalizer<F, E, Fut>(mut self, name: impl Into<String>, function: F) -> Self
    where
        F: Fn(Arc<K>, Context<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Cleanup, E>> + Send + 'static,
        E: Into<Error> + 'static,
    {
        self.spec.finalizer = Some(Finalizer {
            name: name.into(),
            function: Function::new(move |object: Arc<K>, context| {
                converted(function(object, context))
            }),
        });
        self
    }

    /// Decides by `policy` when an object is reconciled again after an error `E`; kube's
    /// `error_policy`, with the same signature. It is called for errors of the reconcile function
    /// and of the finalizer's, as long as they are an `E` and are not marked with
    /// [`Error::retry_after`] or [`Error::terminal`].
    ///
    /// [`Action::requeue`] is the delay, [`Action::await_change`] waits for the next change. A
    /// policy that returns `Option<Action>` leaves the object's backoff in place with `None`. Each
    /// error is counted and logged as one in any case. The policy of a [`keyed`](Controller::keyed)
    /// controller is not asked about objects that are gone.
    ///
    /// # Examples
    /// ```
    /// # use opkit_controller as opkit;
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use opkit::{Action, Context, Controller};
    ///
    /// # async fn reconcile(map: Arc<ConfigMap>, cx: Context) -> Result<Action, std::io::Error> {
    /// #     Ok(Action::await_change())
    /// # }
    /// fn error_policy(map: Arc<ConfigMap>, error: &std::io::Error, _: Arc<()>) -> Action {
    ///     match error.kind() {
    ///         std::io::ErrorKind::InvalidInput => Action::await_change(),
    ///         _ => Action::requeue(Duration::from_secs(30)),
    ///     }
    /// }
    /// let controller = Controller::new(reconcile).error_policy(error_policy);
    /// ```
    pub fn error_policy<E, R>(
        mut self,
        policy: impl Fn(Arc<K>, &E, Arc<S>) -> R + Send + Sync + 'static,
    ) -> Self
    where
        E: StdError + Send + Sync + 'static,
        R: Into<Option<Action>>,
    {
        self.spec.error_policy = Some(ErrorPolicy::new(policy));
        self
    }
}

impl<K: Object, S: Send + Sync + 'static> Controller<PartialObjectMeta<K>, S>
where
    PartialObjectMeta<K>: Object,
{
    /// A controller that caches, and is called with, the metadata of a kind alone.
    ///
    /// # Examples
    /// ```
    /// # use opkit_controller as opkit;
    /// use std::sync::Arc;
    /// use k8s_openapi::api::core::v1::Secret;
    /// use kube::core::PartialObjectMeta;
    /// use opkit::{Action, Context, Controller, Result};
    ///
    /// async fn reconcile(secret: Arc<PartialObjectMeta<Secret>>, cx: Context) -> Result<Action> {
    ///     Ok(Action::await_change())
    /// }
    /// let controller = Controller::metadata(reconcile);
    /// ```
    pub fn metadata<M, R>(reconcile: R) -> Self
    where
        R: Reconcile<M, Kind = PartialObjectMeta<K>, State = S>,
    {
        let function = Function::new(move |object, context| reconcile.reconcile(object, context));
        let reconciler = ControllerSpec::object(function, R::SEES_DELETION);
        Self::of(Watched::typed::<PartialObjectMeta<K>>(true), reconciler)
    }
}

impl<S: Send + Sync + 'static> Controller<DynamicObject, S> {
    /// A controller of a kind that is known only at run time.
    ///
    /// # Examples
    /// ```
    /// # mod opkit { pub use opkit_controller::*; pub use opkit_cache as cache; pub use opkit_client as client; }
    /// use std::sync::Arc;
    /// use opkit::cache::DynamicObject;
    /// use opkit::client::Kind;
    /// use opkit::{Action, Context, Controller, Result};
    ///
    /// async fn reconcile(object: Arc<DynamicObject>, cx: Context) -> Result<Action> {
    ///     println!("{} has {:?}", object.name(), object.get(&["spec", "replicas"]));
    ///     Ok(Action::await_change())
    /// }
    /// let controller = |kind: Kind| Controller::dynamic(kind, reconcile);
    /// ```
    pub fn dynamic<F, E, Fut>(kind: Kind, reconcile: F) -> Self
    where
        F: Fn(Arc<DynamicObject>, Context<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Action, E>> + Send + 'static,
        E: Into<Error> + 'static,
    {
        let function = Function::new(move |object: Arc<DynamicObject>, context| {
            converted(reconcile(object, context))
        });
        let reconciler = ControllerSpec::object(function, false);
        Self::of(Watched::dynamic(kind), reconciler)
    }
}

impl<K, S: Send + Sync + 'static> Controller<K, S> {
    fn of(watched: Watched, reconciler: Reconciler) -> Self {
        Self {
            spec: ControllerSpec::new(watched, reconciler, StateType::of::<S>()),
            triggers: Vec::new(),
            rate_limiter: None,
            types: PhantomData,
        }
    }

    /// Names the controller; by default it is the kind in lower case. The name is part of the
    /// field manager, so renaming a controller makes it a stranger to its children's fields.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.spec.name = name.into();
        self
    }

    /// How many objects may be reconciled at once; 1 by default. One object never is twice.
    pub fn max_concurrent_reconciles(mut self, count: usize) -> Self {
        self.spec.options.max_concurrent_reconciles = count.max(1);
        self
    }

    /// How long a reconcile may take; one that takes longer is dropped at its next await, counted,
    /// and retried as after an error. No limit by default.
    pub fn reconcile_timeout(mut self, limit: Duration) -> Self {
        self.spec.options.reconcile_timeout = Some(limit);
        self
    }

    /// How long the first lists of what this controller watches may take; 2 min by default.
    pub fn cache_sync_timeout(mut self, limit: Duration) -> Self {
        self.spec.options.cache_sync_timeout = Some(limit);
        self
    }

    /// Whether the controller waits for leadership, where the operator elects a leader; true by
    /// default. One that does not must do the same on several replicas without harm.
    pub fn needs_leader_election(mut self, needs: bool) -> Self {
        self.spec.options.needs_leader_election = needs;
        self
    }

    /// Serves namespaces in turn: one with thousands of waiting objects does not hold up the
    /// others.
    pub fn fair_between_namespaces(mut self) -> Self {
        self.spec.options.is_fair = true;
        self
    }

    /// How long a failing object waits: `first`, and twice as long each time, up to `most`. 5 ms
    /// and 1000 s by default.
    pub fn backoff(self, first: Duration, most: Duration) -> Self {
        self.rate_limiter(ItemExponential::new(first, most))
    }

    /// How long a failing object waits, by a limiter of one's own, or several:
    /// [`MaxOf`](crate::limiter::MaxOf) a backoff and a bucket for the whole controller, for
    /// instance.
    pub fn rate_limiter(mut self, limiter: impl RateLimiter<Request> + 'static) -> Self {
        self.rate_limiter = Some(Box::new(limiter));
        self
    }

    /// Reconciles what is sent through the other end of `triggers`; see
    /// [`trigger`](crate::trigger). The same as
    /// [`Source::triggered_by`](crate::Source::triggered_by) on the
    /// [`primary`](Controller::primary) source.
    pub fn triggered_by(mut self, triggers: Triggers) -> Self {
        self.triggers.push((0, triggers));
        self
    }

    /// Reconciles each key that `stream` gives; `name` is recorded as the reason. When the stream
    /// ends, the controller goes on without it.
    pub fn watches_stream<R: Into<Request> + 'static>(
        mut self,
        name: impl Into<String>,
        stream: impl WatchStream<R>,
    ) -> Self {
        self.triggers.push((0, Triggers::stream(name, stream)));
        self
    }
}
