//! [`WebhookContext`]: what a function of a webhook may read.

mod test_objects;

use std::fmt;
use std::sync::Arc;

use opkit_cache::Selection;
use opkit_client::{Client, Kind, ListOptions, Object, ObjectKey, RequestError};
use opkit_controller::{Error, ReadError};

pub(crate) use self::test_objects::TestObjects;
use crate::handler::Services;

/// Caches, live reads and state for a function of a webhook. There is no method that writes: a
/// request may be a dry run, and a webhook without side effects is called for dry runs too.
///
/// # Examples
/// ```
/// # mod opkit { pub use opkit_controller::*; pub use opkit_webhook::*; }
/// use k8s_openapi::api::core::v1::{ConfigMap, Pod};
/// use opkit::{Admission, AdmissionRequest, Result, WebhookContext};
///
/// struct App {
///     pods_max: usize,
/// }
///
/// async fn check(request: AdmissionRequest<Pod>, cx: WebhookContext<App>) -> Result<Admission> {
///     // Of the same namespace, from the cache: declare it with `.reads::<Pod>()`.
///     let pods = cx.list::<Pod>(())?;
///     let is_open = cx.live().get::<ConfigMap>("open").await?.is_some();
///     let is_allowed = is_open || pods.len() < cx.state().pods_max;
///     Ok(Admission::allowed_if(is_allowed, "there are too many pods"))
/// }
/// ```
pub struct WebhookContext<S = ()> {
    services: Arc<Services>,
    /// Namespace of the request, if any.
    namespace: Option<Arc<str>>,
    state: Arc<S>,
}

impl<S> Clone for WebhookContext<S> {
    fn clone(&self) -> Self {
        Self {
            services: self.services.clone(),
            namespace: self.namespace.clone(),
            state: self.state.clone(),
        }
    }
}

impl<S> fmt::Debug for WebhookContext<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebhookContext")
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

impl WebhookContext<()> {
    pub(crate) fn new(services: Arc<Services>, namespace: Option<Arc<str>>) -> Self {
        Self {
            services,
            namespace,
            state: Arc::new(()),
        }
    }

    /// Returns the context with the state of type `S`.
    ///
    /// # Errors
    /// When the operator has no state of type `S`, which cannot happen after the check at the
    /// start.
    pub(crate) fn typed<S: Send + Sync + 'static>(&self) -> Result<WebhookContext<S>, Error> {
        let state = self.services.state::<S>();
        let state = state.ok_or_else(|| Error::msg("internal: the state is missing"))?;
        Ok(WebhookContext {
            services: self.services.clone(),
            namespace: self.namespace.clone(),
            state,
        })
    }
}

impl<S> WebhookContext<S> {
    /// Creates a context with a state, for a test of a function without a server. Its caches have
    /// the objects that are added with [`with`](Self::with); live reads return an error.
    ///
    /// # Examples
    /// ```
    /// # mod opkit { pub use opkit_controller::*; pub use opkit_webhook::*; }
    /// use k8s_openapi::api::core::v1::{ConfigMap, Pod};
    /// use opkit::{Admission, AdmissionRequest, Result, WebhookContext};
    ///
    /// async fn check(request: AdmissionRequest<Pod>, cx: WebhookContext) -> Result<Admission> {
    ///     let is_closed = cx.get::<ConfigMap>("closed")?.is_some();
    ///     Ok(Admission::allowed_if(!is_closed, "the namespace is closed"))
    /// }
    ///
    /// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
    /// let mut closed = ConfigMap::default();
    /// closed.metadata.name = Some("closed".to_owned());
    /// closed.metadata.namespace = Some("shops".to_owned());
    /// let cx = WebhookContext::for_test(()).with([closed]);
    /// let create = || AdmissionRequest::create(Pod::default());
    /// assert!(!check(create(), cx.clone().in_namespace("shops")).await?.is_allowed());
    /// assert!(check(create(), cx.in_namespace("games")).await?.is_allowed());
    /// # opkit::Result::<()>::Ok(()) }).unwrap();
    /// ```
    pub fn for_test(state: S) -> Self {
        Self {
            services: Arc::default(),
            namespace: None,
            state: Arc::new(state),
        }
    }

    /// Adds objects of a kind to the caches of a context for a test. A kind that is not added
    /// cannot be read, as a kind that is not declared.
    /// Clones of the context read the same objects.
    #[must_use]
    pub fn with<K: Object>(self, objects: impl IntoIterator<Item = K>) -> Self {
        self.services.test_objects.add(objects);
        self
    }

    /// Sets the namespace of the request, which reads without a namespace mean, in a context for a
    /// test.
    #[must_use]
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Returns an object of a declared kind from the cache, or `None` if the cache does not have
    /// it. A key is `name`, which means the namespace of the request, or `(namespace, name)`.
    ///
    /// # Errors
    /// When the kind is declared neither with [`Webhook::reads`](crate::Webhook::reads) nor by a
    /// controller, its cache is not filled yet, or the object cannot be decoded as its Rust type.
    pub fn get<K: Object>(&self, key: impl Into<ObjectKey>) -> Result<Option<Arc<K>>, ReadError> {
        let kind = Kind::of::<K>();
        let key = self.key(&kind, key);
        match &self.services.reads {
            Some(reads) => reads.get(key),
            None => (self.services.test_objects.get(&key)).ok_or_else(|| not_cached(kind)),
        }
    }

    /// Returns the selected objects of a declared kind from the cache. A selection without a
    /// namespace selects the namespace of the request, unless it selects [all
    /// namespaces](Selection::all_namespaces).
    ///
    /// # Errors
    /// When the kind is declared neither with [`Webhook::reads`](crate::Webhook::reads) nor by a
    /// controller, or its cache is not filled yet.
    pub fn list<K: Object>(
        &self,
        selection: impl Into<Selection>,
    ) -> Result<Vec<Arc<K>>, ReadError> {
        let kind = Kind::of::<K>();
        match &self.services.reads {
            Some(reads) => reads.list(self.selection(&kind, selection)),
            None => {
                let selection = self.selection(&kind, selection);
                let found = self.services.test_objects.list(&selection);
                found.ok_or_else(|| not_cached(kind))
            }
        }
    }

    /// Returns reads from the API server instead of the cache. Each read sends a request, while the
    /// client of the API server waits. The operator needs a rule that allows the read, see
    /// `Operator::rule`.
    pub fn live(&self) -> LiveReads<'_, S> {
        LiveReads(self)
    }

    /// Returns the operator's state.
    pub fn state(&self) -> &S {
        &self.state
    }

    fn key(&self, kind: &Kind, key: impl Into<ObjectKey>) -> ObjectKey {
        let namespace = self.namespace.as_deref().filter(|_| kind.namespaced);
        key.into().or_namespace(namespace)
    }

    fn selection(&self, kind: &Kind, selection: impl Into<Selection>) -> Selection {
        let mut selection = selection.into();
        if selection.namespace.is_none() && !selection.all_namespaces && kind.namespaced {
            selection.namespace = self.namespace.as_deref().map(str::to_owned);
        }
        selection
    }
}

/// Reads from the API server; see [`WebhookContext::live`].
#[derive(Debug)]
pub struct LiveReads<'a, S>(&'a WebhookContext<S>);

impl<S> LiveReads<'_, S> {
    /// Returns an object, or `None` if it does not exist.
    ///
    /// # Errors
    /// When the request fails, or the object cannot be decoded as its Rust type.
    ///
    /// # Cancel safety
    /// The future can be dropped at any time.
    pub async fn get<K: Object>(&self, key: impl Into<ObjectKey>) -> Result<Option<K>, LiveError> {
        let key = self.0.key(&Kind::of::<K>(), key);
        Ok(self.client()?.get_opt(key).await?)
    }

    /// Returns the selected objects, read page by page.
    ///
    /// # Errors
    /// When a request fails, an object cannot be decoded as its Rust type, or the selection is by
    /// an index, which only the cache has.
    ///
    /// # Cancel safety
    /// The future can be dropped at any time.
    pub async fn list<K: Object>(
        &self,
        selection: impl Into<Selection>,
    ) -> Result<Vec<K>, LiveError> {
        let selection = self.0.selection(&Kind::of::<K>(), selection);
        if selection.index.is_some() || selection.owner_uid.is_some() {
            return Err(LiveError::Selection);
        }
        let mut options = ListOptions::new();
        if let Some(namespace) = &selection.namespace {
            options = options.in_namespace(namespace);
        }
        if let Some(labels) = &selection.labels {
            options = options.labels(&labels.to_string());
        }
        let objects = self.client()?.list_all::<K>(&options).await?;
        Ok(objects.into_iter().collect())
    }

    fn client(&self) -> Result<Client, LiveError> {
        let run = self.0.services.run.as_ref().ok_or(LiveError::NoServer)?;
        Ok(Client::new(run.client()))
    }
}

/// Reason why a live read failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// A request failed.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The selection is by an index or an owner.
    #[error("a live list cannot select by an index or an owner: read the cache")]
    Selection,
    /// The context was created for a test without a server.
    #[error("this context has no API server: it was created with WebhookContext::for_test")]
    NoServer,
}

fn not_cached(kind: Kind) -> ReadError {
    ReadError::NotCached {
        kind: Box::new(kind),
    }
}

#[cfg(test)]
mod tests;
