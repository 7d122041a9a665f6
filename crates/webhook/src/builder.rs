//! [`Webhook`]: the functions that decide about the objects of one kind, and their settings.

mod functions;
mod settings;

use std::any::type_name;
use std::collections::BTreeSet;
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::core::DynamicObject;
use opkit_client::{Kind, Object};
use opkit_controller::{Error, ReadDeclarations};
use serde_json::Value;

use self::functions::{Mutating, Validating};
pub use self::settings::{FailurePolicy, ReinvocationPolicy, RuleScope, SideEffects};
use self::settings::{Sort, WebhookSettings};
use crate::admission::endpoint::AdmissionEndpoint;
use crate::admission::request::{AdmissionRequest, Operation};
use crate::handler::ErasedHandler;
use crate::{Admission, WebhookContext};

/// Admission webhooks of one kind: functions that set defaults, and functions that allow or refuse
/// requests. The API server calls them before it stores an object.
///
/// `K` is a kind of the operator, a kind of Kubernetes, such as `Pod`, or
/// `kube::core::PartialObjectMeta<Pod>` if the functions need only the metadata. For a kind that is
/// known only at run time, use [`Webhook::dynamic`].
///
/// The functions are plain functions, so a unit test calls them without a server. Objects arrive in
/// the version of `K`, whichever version the client sent.
///
/// Updates of objects that are being deleted pass without a call, or an object that has become
/// invalid could never be deleted; see [`while_deleting`](Self::while_deleting). If a function
/// panics, the request is refused, or passes with [`FailurePolicy::Ignore`].
///
/// # Examples
/// ```
/// # use opkit_webhook as opkit;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use opkit::{Admission, Webhook};
///
/// fn set_defaults(map: &mut ConfigMap) {
///     map.data.get_or_insert_default().entry("colour".into()).or_insert("red".into());
/// }
/// fn check(map: &ConfigMap, old: Option<&ConfigMap>) -> Admission {
///     let mut admission = Admission::allowed();
///     if old.is_some_and(|old| old.data != map.data) {
///         admission.forbidden("data", "may not be changed");
///     }
///     admission
/// }
/// let webhook = Webhook::new().defaulting(set_defaults).validating(check);
///
/// let mut map = ConfigMap::default();
/// set_defaults(&mut map);
/// assert_eq!(check(&map, Some(&ConfigMap::default())).invalid_fields(), ["data"]);
/// # drop(webhook);
/// ```
pub struct Webhook<K> {
    settings: WebhookSettings,
    reads: ReadDeclarations,
    mutating: Mutating<K>,
    validating: Validating<K>,
}

impl<K> fmt::Debug for Webhook<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook")
            .field("kind", &self.settings.kind)
            .finish_non_exhaustive()
    }
}

impl<K: Object> Webhook<K> {
    /// Creates the webhook of a kind, without functions.
    #[expect(
        clippy::new_without_default,
        reason = "a webhook without functions is an error"
    )]
    pub fn new() -> Self {
        Self::of(Kind::of::<K>())
    }
}

impl Webhook<DynamicObject> {
    /// Creates the webhook of a kind that is known only at run time, without functions.
    pub fn dynamic(kind: Kind) -> Self {
        Self::of(kind)
    }
}

/// Object that a webhook can decode.
pub trait AdmissionObject:
    kube::Resource + Clone + serde::Serialize + serde::de::DeserializeOwned + Send + Sync + 'static
{
}

impl<K> AdmissionObject for K where
    K: kube::Resource
        + Clone
        + serde::Serialize
        + serde::de::DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// Result of a function of [`Webhook::defaulting_with`]: the changed object, alone or with an
/// [`Admission`] for warnings or a refusal.
pub trait Defaulted<K>: Send + 'static {
    /// Returns the object and the decision.
    fn into_parts(self) -> (K, Admission);
}

impl<K: Send + 'static> Defaulted<K> for K {
    fn into_parts(self) -> (K, Admission) {
        (self, Admission::allowed())
    }
}

impl<K: Send + 'static> Defaulted<K> for (K, Admission) {
    fn into_parts(self) -> Self {
        self
    }
}

impl<K: AdmissionObject> Webhook<K> {
    fn of(kind: Kind) -> Self {
        Self {
            settings: WebhookSettings::new(kind),
            reads: ReadDeclarations::default(),
            mutating: Mutating::default(),
            validating: Validating::default(),
        }
    }

    /// Adds a function that sets fields of objects that are created or updated. Set only what a
    /// default of the schema cannot express, such as a value that depends on another field.
    ///
    /// Only the changes of the function are sent to the API server, so fields that `K` does not
    /// know stay as they are. The function may be called several times for one request.
    pub fn defaulting(mut self, function: impl Fn(&mut K) + Send + Sync + 'static) -> Self {
        self.mutating.plain.push(Arc::new(function));
        self
    }

    /// Adds a function that sets fields, as [`defaulting`](Self::defaulting) does, with the
    /// request, the caches and the state: `async fn(AdmissionRequest<K>, WebhookContext<S>) ->
    /// Result<K>`. The function returns the changed object, or the object and an [`Admission`].
    ///
    /// If the function returns an error, the request is refused, or passes with
    /// [`FailurePolicy::Ignore`].
    pub fn defaulting_with<F, Fut, S, E, D>(mut self, function: F) -> Self
    where
        F: Fn(AdmissionRequest<K>, WebhookContext<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<D, E>> + Send + 'static,
        S: Send + Sync + 'static,
        E: Into<Error> + 'static,
        D: Defaulted<K>,
    {
        self.reads.state::<S>();
        self.mutating.with.push(Arc::new(move |request, context| {
            let function = context
                .typed::<S>()
                .map(|context| function(request, context));
            async move {
                let changed = function?.await.map_err(Into::into)?;
                Ok(changed.into_parts())
            }
            .boxed()
        }));
        self
    }

    /// Adds a function that decides about objects that are created or updated. It takes the object
    /// after the request and, for an update, the object before it. All functions of this method are
    /// called, so that the client gets all errors at once.
    pub fn validating(
        mut self,
        function: impl Fn(&K, Option<&K>) -> Admission + Send + Sync + 'static,
    ) -> Self {
        self.validating.plain.push(Arc::new(function));
        self
    }

    /// Adds a function that decides about objects that are deleted.
    pub fn validating_delete(
        mut self,
        function: impl Fn(&K) -> Admission + Send + Sync + 'static,
    ) -> Self {
        self.validating.delete.push(Arc::new(function));
        self
    }

    /// Adds a function that decides with the request, the caches and the state:
    /// `async fn(AdmissionRequest<K>, WebhookContext<S>) -> Result<Admission>`. It is called after
    /// the other functions if none of them refuses the request. Kinds that the function reads from
    /// the cache are declared with [`reads`](Self::reads).
    ///
    /// If the function returns an error, the request is refused, or passes with
    /// [`FailurePolicy::Ignore`].
    ///
    /// # Examples
    /// ```
    /// # mod opkit { pub use opkit_controller::*; pub use opkit_webhook::*; }
    /// use k8s_openapi::api::core::v1::{ConfigMap, Pod};
    /// use opkit::{Admission, AdmissionRequest, Result, Webhook, WebhookContext};
    ///
    /// async fn check(request: AdmissionRequest<Pod>, cx: WebhookContext) -> Result<Admission> {
    ///     let closed = cx.get::<ConfigMap>((request.namespace(), "closed"))?;
    ///     Ok(Admission::allowed_if(closed.is_none(), "the namespace is closed"))
    /// }
    /// let webhook = Webhook::new().validating_with(check).reads::<ConfigMap>();
    /// # drop(webhook);
    /// ```
    pub fn validating_with<F, Fut, S, E>(mut self, function: F) -> Self
    where
        F: Fn(AdmissionRequest<K>, WebhookContext<S>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Admission, E>> + Send + 'static,
        S: Send + Sync + 'static,
        E: Into<Error> + 'static,
    {
        self.reads.state::<S>();
        self.validating.with.push(Arc::new(move |request, context| {
            let function = context
                .typed::<S>()
                .map(|context| function(request, context));
            async move { function?.await.map_err(Into::into) }.boxed()
        }));
        self
    }

    /// Declares that the functions of this webhook read `R` from the cache. The operator caches the
    /// kind, and its role allows to list and watch it. A request waits until the cache is filled.
    pub fn reads<R: Object>(mut self) -> Self {
        self.reads.kind::<R>();
        self
    }

    /// Replaces the name of the webhook, which is part of its path. By default it is the name of
    /// the kind in lower case. Two webhooks for the same kind need different names.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.settings.name = Some(name.into());
        self
    }

    /// Calls the webhook for a subresource, such as `status`, instead of the object itself.
    pub fn subresource(mut self, name: impl Into<String>) -> Self {
        self.settings.subresource = Some(name.into());
        self
    }

    /// Calls the webhook for a subresource of another kind, whose objects are of the kind of this
    /// webhook: `Webhook::<Eviction>::new().subresource_of::<Pod>("eviction")`.
    pub fn subresource_of<P: Object>(mut self, name: impl Into<String>) -> Self {
        self.settings.resource = Kind::of::<P>();
        self.subresource(name)
    }

    /// Calls the webhook for these operations. The default is create and update, and delete if
    /// there is a function for it. Functions that set fields are never called for a deletion.
    pub fn operations(mut self, operations: impl IntoIterator<Item = Operation>) -> Self {
        self.settings.operations = Some(operations.into_iter().collect());
        self
    }

    /// Sets what happens to a request if the webhook cannot decide: the API server cannot reach it,
    /// it takes too long, or a function panics or returns an error. The default is
    /// [`FailurePolicy::Fail`].
    pub fn failure_policy(mut self, policy: FailurePolicy) -> Self {
        self.settings.failure_policy = policy;
        self
    }

    /// Sets how long the API server waits for the webhook, from 1 s to 30 s; 10 s by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = timeout;
        self
    }

    /// Calls the webhook only for requests for which a CEL expression is true. May be called
    /// several times: all expressions must be true.
    pub fn match_condition(
        mut self,
        name: impl Into<String>,
        expression: impl Into<String>,
    ) -> Self {
        let condition = (name.into(), expression.into());
        self.settings.match_conditions.push(condition);
        self
    }

    /// Calls the webhook only for objects in namespaces with these labels.
    pub fn namespace_selector(mut self, selector: LabelSelector) -> Self {
        self.settings.namespace_selector = Some(selector);
        self
    }

    /// Calls the webhook only for objects with these labels. A client can avoid the webhook by
    /// leaving the labels out.
    pub fn object_selector(mut self, selector: LabelSelector) -> Self {
        self.settings.object_selector = Some(selector);
        self
    }

    /// Declares whether the functions change something outside of the request. The default is
    /// [`SideEffects::None`].
    pub fn side_effects(mut self, side_effects: SideEffects) -> Self {
        self.settings.side_effects = side_effects;
        self
    }

    /// Sets whether functions that set fields are called again if a later webhook changes the
    /// object. The default is [`ReinvocationPolicy::Never`].
    pub fn reinvocation_policy(mut self, policy: ReinvocationPolicy) -> Self {
        self.settings.reinvocation_policy = policy;
        self
    }

    /// Calls the webhook only for namespaced or only for cluster-scoped objects. The default is
    /// both.
    pub fn scope(mut self, scope: RuleScope) -> Self {
        self.settings.scope = scope;
        self
    }

    /// Calls the functions also for updates of objects that are being deleted. A function that then
    /// refuses the removal of a finalizer keeps the object from being deleted.
    pub fn while_deleting(mut self) -> Self {
        self.settings.while_deleting = true;
        self
    }
}

type AsyncMutate<K> = dyn Fn(AdmissionRequest<K>, WebhookContext<()>) -> BoxFuture<'static, Result<(K, Admission), Error>>
    + Send
    + Sync;
type AsyncValidate<K> = dyn Fn(AdmissionRequest<K>, WebhookContext<()>) -> BoxFuture<'static, Result<Admission, Error>>
    + Send
    + Sync;

/// Webhooks of one kind without type parameters, as the operator accepts them.
#[derive(Debug)]
pub struct AnyWebhook {
    settings: WebhookSettings,
    reads: ReadDeclarations,
    kind_name: &'static str,
    mutating: Option<Arc<AdmissionEndpoint>>,
    validating: Option<Arc<AdmissionEndpoint>>,
}

impl<K: AdmissionObject> From<Webhook<K>> for AnyWebhook {
    fn from(webhook: Webhook<K>) -> Self {
        let Webhook {
            mut settings,
            reads,
            mutating,
            validating,
        } = webhook;
        settings.decides_deletion = !validating.delete.is_empty();
        let explicit = settings.operations.clone();
        let (is_mutating, is_validating) = (!mutating.is_empty(), !validating.is_empty());
        let mutating = settings.endpoint(Sort::Mutating, mutating.erase(&reads));
        let validating = validating.erase(&reads, explicit);
        let validating = settings.endpoint(Sort::Validating, validating);
        Self {
            kind_name: type_name::<K>(),
            mutating: is_mutating.then_some(mutating),
            validating: is_validating.then_some(validating),
            settings,
            reads,
        }
    }
}

impl AnyWebhook {
    /// Returns the kind of the objects.
    pub fn kind(&self) -> &Kind {
        &self.settings.kind
    }

    /// Returns the kinds and states that the functions read.
    pub fn reads(&self) -> &ReadDeclarations {
        &self.reads
    }

    /// Checks everything that can be checked without a cluster.
    ///
    /// # Errors
    /// A sentence about the setting that is not valid.
    pub fn check(&self) -> Result<(), String> {
        let flaw = |flaw: String| format!("the webhook of {}: {flaw}", self.settings.kind.noun());
        if self.mutating.is_none() && self.validating.is_none() {
            let problem = "it has no function: add .defaulting(..) or .validating(..)";
            return Err(flaw(format!("{problem} to Webhook::<{}>", self.kind_name)));
        }
        let sorts = [
            (Sort::Mutating, self.mutating.is_some()),
            (Sort::Validating, self.validating.is_some()),
        ];
        for (sort, _) in sorts.into_iter().filter(|(_, is_used)| *is_used) {
            self.settings.check(sort).map_err(flaw)?;
        }
        Ok(())
    }

    /// Returns the entry in a `MutatingWebhookConfiguration`, with the path as the only part of its
    /// client configuration. `None` if no function sets fields.
    pub fn mutating_configuration(&self) -> Option<Value> {
        self.mutating.as_ref()?;
        Some(self.settings.configuration(Sort::Mutating))
    }

    /// Returns the entry in a `ValidatingWebhookConfiguration`, as
    /// [`mutating_configuration`](Self::mutating_configuration) does. `None` if no function
    /// decides.
    pub fn validating_configuration(&self) -> Option<Value> {
        self.validating.as_ref()?;
        Some(self.settings.configuration(Sort::Validating))
    }

    /// Returns the paths with their handlers.
    pub(crate) fn into_handlers(self) -> Vec<(String, Arc<dyn ErasedHandler>)> {
        let mut handlers: Vec<(String, Arc<dyn ErasedHandler>)> = Vec::new();
        if let Some(mutating) = self.mutating {
            handlers.push((self.settings.path(Sort::Mutating), mutating));
        }
        if let Some(validating) = self.validating {
            handlers.push((self.settings.path(Sort::Validating), validating));
        }
        handlers
    }

    /// Returns the paths that the webhooks are served at.
    pub fn paths(&self) -> BTreeSet<String> {
        let mutating = self.mutating.as_ref().map(|_| Sort::Mutating);
        let validating = self.validating.as_ref().map(|_| Sort::Validating);
        let sorts = mutating.into_iter().chain(validating);
        sorts.map(|sort| self.settings.path(sort)).collect()
    }
}

#[cfg(test)]
mod tests;
