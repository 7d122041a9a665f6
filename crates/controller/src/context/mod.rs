//! The context of a reconcile: reads of the cache, children, status, events.

mod adopt;
pub(crate) mod apply;
mod cluster;
mod create_once;
pub(crate) mod delete;
mod fetch;
pub(crate) mod finalizer;
pub(crate) mod live;
pub(crate) mod prune;
pub(crate) mod status;
pub(crate) mod unowned;

use std::fmt;
use std::sync::{Arc, Weak};

use http::{Request, Response};
use http_body_util::BodyExt;
use kube::client::Body;
use opkit_apimachinery::protobuf;
use opkit_cache::{DynamicObject, Selection};
use opkit_client::{GroupVersionResource, Kind, Object, ObjectKey, RequestInfo};
use opkit_events::EventType;

pub(crate) use self::cluster::{ClusterController, Term};
pub use self::live::Live;
use crate::error::{Error, ReadError};
use crate::object::owner::{Head, Owner};
use crate::reads::cross_namespace;
use crate::record::trace::Trace;

/// The reads and writes of one reconcile. Cloning is cheap.
///
/// Each method documents its guarantees. No method holds a lock during a request. A call may be
/// repeated, for example when the reconcile is retried.
///
/// # Examples
/// ```
/// # use opkit_controller as opkit;
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// use opkit::{Action, Context, EventType, Result};
///
/// async fn reconcile(map: Arc<ConfigMap>, cx: Context) -> Result<Action> {
///     let mut secret = Secret::default();
///     secret.metadata.name = map.metadata.name.clone();
///     cx.apply(secret).await?;
///     cx.event(EventType::Normal, "Applied", "the secret is up to date");
///     cx.prune().await?; // deletes Secrets with other names that earlier reconciles applied
///     Ok(Action::await_change())
/// }
/// ```
pub struct Context<S = ()> {
    pub(crate) term: Arc<Term>,
    pub(crate) owner: Arc<Owner>,
    pub(crate) trace: Arc<Trace>,
    state: Arc<S>,
}

impl<S> Clone for Context<S> {
    fn clone(&self) -> Self {
        Self {
            term: self.term.clone(),
            owner: self.owner.clone(),
            trace: self.trace.clone(),
            state: self.state.clone(),
        }
    }
}

impl<S> fmt::Debug for Context<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("object", self.owner.key.key())
            .finish_non_exhaustive()
    }
}

/// A [`Context`] without the user's state, which has a type parameter.
#[derive(Debug)]
pub(crate) struct Stateless {
    pub(crate) term: Arc<Term>,
    pub(crate) owner: Owner,
    pub(crate) trace: Arc<Trace>,
}

impl Stateless {
    pub(crate) fn new(term: Arc<Term>, owner: Owner, trace: Arc<Trace>) -> Self {
        Self { term, owner, trace }
    }

    /// Returns the context with the state of type `S`.
    ///
    /// # Errors
    /// When the operator has no state of type `S`, which cannot happen after the check at the
    /// start.
    pub(crate) fn with_state<S: Send + Sync + 'static>(self) -> Result<Context<S>, Error> {
        let state = self.term.states.get::<S>();
        let state = state.ok_or_else(|| Error::msg("internal: the state is missing"))?;
        Ok(Context {
            term: self.term,
            owner: Arc::new(self.owner),
            trace: self.trace,
            state,
        })
    }
}

impl<S> Context<S> {
    /// Returns an object of a declared kind from the cache, or `None` if the cache does not have
    /// it. No request is sent. Writes of this operator are visible immediately, even before the
    /// watch delivers them. A key is `name`, which means the namespace of the reconciled object, or
    /// `(namespace, name)`.
    ///
    /// # Errors
    /// When the controller does not declare the kind, or the object cannot be decoded as its Rust
    /// type. Also when the kind is namespaced, but neither the key nor the reconciled object has a
    /// namespace.
    pub fn get<K: Object>(&self, key: impl Into<ObjectKey>) -> Result<Option<Arc<K>>, ReadError> {
        let key = live::key_of::<K>(self.owner.key.namespace.as_deref(), key)?;
        self.check_crossing::<K>(&key)?;
        self.trace.read_cache();
        Ok(self.term.cluster.reads.lister::<K>()?.get(&key)?)
    }

    fn check_crossing<K: Object>(&self, key: &ObjectKey) -> Result<(), ReadError> {
        cross_namespace::check::<K>(&self.term.cluster.reads, &self.owner, key)
    }

    /// Same as [`get`](Context::get), for a kind that is known only at run time.
    ///
    /// # Errors
    /// When the controller does not declare the kind, or the object cannot be decoded.
    pub fn get_dynamic(
        &self,
        kind: &Kind,
        key: impl Into<ObjectKey>,
    ) -> Result<Option<Arc<DynamicObject>>, ReadError> {
        let namespace = self.owner.key.namespace.as_deref();
        let key = (key.into()).or_namespace(namespace.filter(|_| kind.namespaced));
        cross_namespace::check_kind(&self.term.cluster.reads, &self.owner, kind, &key)?;
        self.trace.read_cache();
        self.term.cluster.reads.get_dynamic(kind, key)
    }

    /// Returns the selected objects of a declared kind from the cache. No request is sent. A
    /// selection without a namespace selects the namespace of the reconciled object, unless it
    /// selects [all namespaces](Selection::all_namespaces). For a kind that the controller declares
    /// with [`references`](crate::Controller::references), objects in other namespaces are left out
    /// unless the operator's `cross_namespace` function grants the reference.
    ///
    /// # Errors
    /// When the controller did not declare the kind.
    pub fn list<K: Object>(
        &self,
        selection: impl Into<Selection>,
    ) -> Result<Vec<Arc<K>>, ReadError> {
        let own = self.owner.key.namespace.as_deref();
        let selection = live::selection_of::<K>(own, selection);
        Ok(self.list_from(&self.term.cluster.reads.lister::<K>()?, &selection))
    }

    /// Returns the objects of a declared kind that the reconciled object controls, from the cache.
    /// The owner reference of a child names the reconciled object by group, kind, name and UID. If
    /// the reconciled object is namespaced, its children are in the same namespace.
    ///
    /// # Errors
    /// When the controller did not declare the kind.
    pub fn children<K: Object>(&self) -> Result<Vec<Arc<K>>, ReadError> {
        self.trace.read_cache();
        let dependents = self.owner.dependents();
        let mut children = self.term.cluster.reads.lister::<K>()?.list(&dependents);
        children.retain(|child| self.owner.controls(&child.meta().into()));
        Ok(children)
    }

    /// Records a Kubernetes Event about the reconciled object. Never waits: events are posted in
    /// the background, and dropped if too many are waiting to be posted.
    pub fn event(&self, event_type: EventType, reason: impl Into<String>, note: impl Into<String>) {
        self.term.cluster.events.record(
            self.owner.object_reference(),
            event_type,
            reason.into(),
            note.into(),
        );
    }

    /// Returns the state that [`Operator::state`] created, such as clients of other systems.
    ///
    /// [`Operator::state`]: https://docs.rs/opkit/latest/opkit/struct.Operator.html#method.state
    pub fn state(&self) -> &S {
        &self.state
    }

    pub(crate) fn state_arc(&self) -> Arc<S> {
        self.state.clone()
    }

    /// Returns the number of times in a row that the reconcile of this object has failed before
    /// this one: 0 for a first attempt. Errors, panics and timeouts are failures, whatever decides
    /// the time of the retry. A success ends the row, also one with [`Action::requeue`]; so does an
    /// error marked with [`Error::terminal`]. The number is kept in memory: it starts at 0 when the
    /// operator starts.
    ///
    /// [`Action::requeue`]: crate::Action::requeue
    pub fn attempt(&self) -> u32 {
        self.trace.attempt()
    }

    /// Returns the key of the reconciled object.
    pub fn key(&self) -> &ObjectKey {
        &self.owner.key
    }

    /// Returns the name of the cluster that the object is in; `None` for the cluster that the
    /// operator runs in.
    pub fn cluster(&self) -> Option<&str> {
        self.term.cluster.name.as_deref()
    }

    /// Returns a client for requests that `Context` has no method for. The requests are listed in
    /// the record of this reconcile.
    pub fn client(&self) -> kube::Client {
        let trace = Arc::downgrade(&self.trace);
        self.trace
            .client(|| recording(trace, self.term.client.kube()))
    }

    /// Returns the field manager of this controller's writes: `<operator>.<controller>`.
    pub fn field_manager(&self) -> &str {
        self.term.field_manager()
    }
}

/// Returns a client that records its requests in the trace until the reconcile ends.
fn recording(trace: Weak<Trace>, client: kube::Client) -> kube::Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (trace, client, info) = (trace.upgrade(), client.clone(), RequestInfo::of(&request));
        async move {
            let mut response = client.send(request).await?;
            if let Some(trace) = trace.filter(|_| response.status().is_success()) {
                let mut name = info.name.clone();
                if info.verb == "create" && name.is_none() {
                    // The server may have generated the name.
                    let (head, body) = response.into_parts();
                    let body = body.collect().await?;
                    let body = body.to_bytes();
                    name = name_of(&body);
                    response = Response::from_parts(head, Body::from(body));
                }
                record(&trace, &info, name);
            }
            Ok::<_, kube::Error>(response)
        }
    });
    kube::Client::new(service, namespace)
}

/// Returns the name of the object in the body of a response.
fn name_of(body: &[u8]) -> Option<String> {
    let json = serde_json::from_slice::<Head>(body).ok();
    // By way of a value, so that the protobuf decoder is not compiled for this type.
    let head = json.or_else(|| serde_json::from_value(protobuf::decode(body).ok()?).ok())?;
    head.metadata.name
}

/// Records a successful request in the trace.
fn record(trace: &Trace, info: &RequestInfo, name: Option<String>) {
    if !info.is_write() {
        return trace.read_live();
    }
    let verb = match &*info.verb {
        "create" => "create",
        "update" => "update",
        "patch" | "apply" => "patch",
        _ => "delete",
    };
    let resource = GroupVersionResource::new(&info.group, &info.version, &info.plural);
    let kind = Kind::at(&resource, info.namespace.is_some());
    let key = ObjectKey {
        namespace: info.namespace.clone(),
        name: name.unwrap_or_default(),
    };
    trace.wrote(
        verb,
        &kind,
        &key,
        info.subresource.as_deref().unwrap_or_default(),
    );
}

#[cfg(test)]
mod tests;
