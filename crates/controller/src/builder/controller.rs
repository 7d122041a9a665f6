//! The typed builder of a controller.

use std::error::Error as StdError;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use kube::core::PartialObjectMeta;
use opkit_apimachinery::conditions::Condition;
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
use crate::reconcile::retries::MaxRetries;
use crate::reconcile::{Action, Cleanup};
use crate::source::{Triggers, WatchStream};
use crate::state::StateType;

/// A controller: a kind, the function that reconciles it, and the other kinds that it depends on.
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
/// With kube's signature, which has the user's own state instead of a context:
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
/// With a function that takes a key, and is also called for deleted objects:
/// ```
/// # use opkit_controller as opkit;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use opkit::{Action, Context, Controller, Request, Result};
///
/// async fn reconcile(request: Request, cx: Context) -> Result<Action> {
///     match cx.get::<ConfigMap>(request.key().clone())? {
///         Some(map) => println!("{} has {:?}", request.name, map.data),
///         None => println!("{} is deleted", request.name),
///     }
///     Ok(Action::await_change())
/// }
/// let controller = Controller::<ConfigMap, _>::keyed(reconcile);
/// ```
pub struct Controller<K, S = ()> {
    pub(crate) spec: ControllerSpec,
    /// Triggers, each with the index (in `sources`) of the source that receives the trigger's keys
    /// as generic events.
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
    /// Creates a controller that calls `reconcile` with each object that needs a reconcile.
    pub fn new<M, R>(reconcile: R) -> Self
    where
        R: Reconcile<M, Kind = K, State = S>,
    {
        let function = Function::new(move |object, context| reconcile.reconcile(object, context));
        let reconciler = ControllerSpec::object(function, R::SEES_DELETION);
        Self::of(Watched::typed::<K>(false), reconciler)
    }

    /// Creates a controller that calls `reconcile` with the key of an object instead of the object.
    /// `reconcile` is also called for objects that are being deleted, unless the controller
    /// declares a finalizer, and once more after an object is deleted. The context of a deleted
    /// object can read but cannot apply children.
    pub fn keyed<F, E, Fut>(reconcile: F) -> Self
    where
        F: Fn(Request, Context<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Action, E>> + Send + 'static,
        E: Into<Error> + 'static,
    {
        let reconciler = Reconciler::Key(KeyFunction::new(reconcile));
        Self::of(Watched::typed::<K>(false), reconciler)
    }

    /// Declares the finalizer `name`, which is added to each object before its first reconcile.
    /// `function` is called for an object that is being deleted, until `function` returns
    /// [`Cleanup::Done`].
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

    /// Sets the function that decides when an object is retried after an error `E`. The signature
    /// is that of kube's `error_policy`. The policy is called for errors of type `E` that the
    /// reconcile function or the finalizer's function returns, unless the error is marked with
    /// [`Error::retry_after`] or [`Error::terminal`].
    ///
    /// If the policy returns [`Action::requeue`], the object is retried after that delay; with
    /// [`Action::await_change`], at its next change. A policy may also return `Option<Action>`,
    /// where `None` retries with the object's backoff. Each error is counted and logged in any
    /// case. The policy of a [`keyed`](Controller::keyed) controller is not called for deleted
    /// objects.
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
    /// Creates a controller that caches only the metadata of its kind. `reconcile` is called with
    /// the metadata.
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
    /// Creates a controller of a kind that is known only at run time.
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

    /// Sets the name of the controller; the default is the kind in lower case. The name is part of
    /// the field manager, so a renamed controller no longer owns the fields of its children.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.spec.name = name.into();
        self
    }

    /// Sets how many objects are reconciled concurrently; 1 by default. The same object is never
    /// reconciled twice at the same time.
    pub fn max_concurrent_reconciles(mut self, count: usize) -> Self {
        self.spec.options.max_concurrent_reconciles = count.max(1);
        self
    }

    /// Sets the longest duration of a reconcile. A reconcile that takes longer is dropped at its
    /// next await, counted, and retried as after an error. No limit by default.
    pub fn reconcile_timeout(mut self, limit: Duration) -> Self {
        self.spec.options.reconcile_timeout = Some(limit);
        self
    }

    /// Sets the longest duration of the initial lists of the watched kinds; 2 min by default.
    pub fn cache_sync_timeout(mut self, limit: Duration) -> Self {
        self.spec.options.cache_sync_timeout = Some(limit);
        self
    }

    /// Sets whether the controller runs only on the leader, if the operator uses leader election;
    /// `true` by default. With `false`, the controller runs on all replicas at the same time and
    /// must tolerate that.
    pub fn needs_leader_election(mut self, needs: bool) -> Self {
        self.spec.options.needs_leader_election = needs;
        self
    }

    /// Takes queued objects from the namespaces in rotation, so that a namespace with thousands of
    /// queued objects does not delay the other namespaces.
    pub fn fair_between_namespaces(mut self) -> Self {
        self.spec.options.is_fair = true;
        self
    }

    /// Reconciles every object again in each `period`, even if nothing has changed, for
    /// dependencies whose changes no watch reports. Replaces the period of the operator
    /// (`Operator::resync`); `None` turns resyncs off. Off by default.
    ///
    /// A resync delivers each cached object of each source as an update whose old and new object
    /// are the same version, to the filters and map functions of the source. The filters
    /// [`generation_changed`](crate::predicate::generation_changed), `labels_changed`,
    /// `annotations_changed` and `resource_version_changed` drop it, as in controller-runtime.
    /// Nothing is requested from the server. The requests have a low priority, and at most about
    /// 100 of them wait at a time, so that changes are not delayed. The period varies by 10 %; the
    /// shortest is 1 s.
    ///
    /// # Examples
    /// ```
    /// # use opkit_controller as opkit;
    /// use std::sync::Arc;
    /// use std::time::Duration;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use opkit::{Action, Context, Controller, Result};
    ///
    /// // Compares a bucket outside of the cluster with its ConfigMap.
    /// async fn reconcile(map: Arc<ConfigMap>, cx: Context) -> Result<Action> {
    ///     Ok(Action::await_change())
    /// }
    /// let controller = Controller::new(reconcile).resync(Duration::from_secs(3600));
    /// ```
    pub fn resync(mut self, period: impl Into<Option<Duration>>) -> Self {
        self.spec.options.resync = Some(period.into().unwrap_or_default());
        self
    }

    /// Sets the retry delay of a failing object: `first`, doubled with each failure, up to `most`.
    /// 5 ms and 1000 s by default.
    pub fn backoff(self, first: Duration, most: Duration) -> Self {
        self.rate_limiter(ItemExponential::new(first, most))
    }

    /// Limits how often a failing object is retried: after `count` retries that failed too, the
    /// object is not retried until it, or an object that it depends on, changes. A trigger and a
    /// resync reconcile it as well. It then starts again, with `count` retries.
    ///
    /// The condition `then` is set on the object, with the error as its message and the reason
    /// `RetriesExhausted` unless `then` has a reason. It is removed when the object is reconciled
    /// successfully; a condition that the reconcile sets itself, such as `Ready`, is the
    /// reconcile's. The object's kind must have `status.conditions`; for other kinds, write `None`.
    /// In any case a Warning event `RetriesExhausted` is recorded.
    ///
    /// Without this call, an object is retried without a limit.
    ///
    /// # Examples
    /// ```
    /// # use opkit_controller as opkit;
    /// use std::sync::Arc;
    /// use k8s_openapi::api::apps::v1::Deployment;
    /// use k8s_openapi::api::core::v1::ConfigMap;
    /// use opkit::{Action, Condition, Context, Controller, Result};
    ///
    /// async fn reconcile(deployment: Arc<Deployment>, cx: Context) -> Result<Action> {
    ///     println!("failed {} times so far", cx.attempt());
    ///     Ok(Action::await_change())
    /// }
    /// let controller = Controller::new(reconcile).max_retries(5, Condition::new("Stalled", true));
    ///
    /// // A kind without conditions.
    /// async fn keep(map: Arc<ConfigMap>, cx: Context) -> Result<Action> {
    ///     Ok(Action::await_change())
    /// }
    /// let maps = Controller::new(keep).max_retries(5, None);
    /// ```
    pub fn max_retries(mut self, count: u32, then: impl Into<Option<Condition>>) -> Self {
        self.spec.retries = Some(Arc::new(MaxRetries::new(count, then.into())));
        self
    }

    /// Sets the rate limiter that decides the retry delay of a failing object. For example,
    /// [`MaxOf`](crate::limiter::MaxOf) combines a backoff per object with a token bucket for the
    /// whole controller.
    pub fn rate_limiter(mut self, limiter: impl RateLimiter<Request> + 'static) -> Self {
        self.rate_limiter = Some(Box::new(limiter));
        self
    }

    /// Reconciles the objects whose keys are sent through the other end of `triggers`; see
    /// [`trigger`](crate::trigger). Same as
    /// [`Source::triggered_by`](crate::Source::triggered_by) on the
    /// [`primary`](Controller::primary) source.
    pub fn triggered_by(mut self, triggers: Triggers) -> Self {
        self.triggers.push((0, triggers));
        self
    }

    /// Reconciles each key that `stream` yields; `name` is recorded as the cause of the reconcile.
    /// When the stream ends, the controller continues without the stream.
    pub fn watches_stream<R: Into<Request> + 'static>(
        mut self,
        name: impl Into<String>,
        stream: impl WatchStream<R>,
    ) -> Self {
        self.triggers.push((0, Triggers::stream(name, stream)));
        self
    }
}
