//! What a reconcile works with: the cache, the children, the status, events.

mod adopt;
pub(crate) mod apply;
mod create_once;
pub(crate) mod delete;
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
use opkit_cache::{DynamicObject, Informer, Selection};
use opkit_client::{GroupVersionResource, Kind, Object, ObjectKey, RequestInfo, RestClient};
use opkit_events::{EventRecorder, EventType};

pub use self::live::Live;
use crate::context::apply::applied::AppliedChildren;
use crate::context::prune::OwnedKind;
use crate::error::{Error, ReadError};
use crate::object::owner::{Head, Owner};
use crate::reads::{MapContext, cross_namespace};
use crate::record::trace::Run;
use crate::state::States;

/// What the reconciles of one controller in one cluster share.
#[derive(Debug, Clone)]
pub(crate) struct Shared {
    pub(crate) client: RestClient,
    pub(crate) field_manager: String,
    pub(crate) cluster: Option<Arc<str>>,
    pub(crate) reads: MapContext,
    pub(crate) applied: Arc<AppliedChildren>,
    pub(crate) events: EventRecorder,
    pub(crate) states: Arc<States>,
    /// The cache of the reconciled kind.
    pub(crate) primary: Informer,
    /// The kinds of children, which are pruned.
    pub(crate) owned: Vec<OwnedKind>,
    /// The kinds of children without owner references.
    pub(crate) unowned: Vec<OwnedKind>,
}

/// Everything a reconcile does to the cluster goes through here. Cloning is cheap.
///
/// What it promises is written at each method; none of them holds a lock over a request, and all of
/// them may be repeated.
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
///     cx.prune().await?; // secrets of other names, of former runs
///     Ok(Action::await_change())
/// }
/// ```
pub struct Context<S = ()> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) owner: Arc<Owner>,
    pub(crate) run: Arc<Run>,
    state: Arc<S>,
}

impl<S> Clone for Context<S> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
            owner: self.owner.clone(),
            run: self.run.clone(),
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

/// What becomes a [`Context`] with the state that a function reads.
#[derive(Debug)]
pub(crate) struct Stateless {
    pub(crate) shared: Arc<Shared>,
    pub(crate) owner: Owner,
    pub(crate) run: Arc<Run>,
}

impl Stateless {
    pub(crate) fn new(shared: Arc<Shared>, owner: Owner, run: Arc<Run>) -> Self {
        Self { shared, owner, run }
    }

    /// The context with the state that the function reads.
    ///
    /// # Errors
    /// When nobody gave it, which the start would have found.
    pub(crate) fn with_state<S: Send + Sync + 'static>(self) -> Result<Context<S>, Error> {
        let state = self.shared.states.get::<S>();
        let state = state.ok_or_else(|| Error::msg("internal: a state that nobody gave"))?;
        Ok(Context {
            shared: self.shared,
            owner: Arc::new(self.owner),
            run: self.run,
            state,
        })
    }
}

impl<S> Context<S> {
    /// An object of a declared kind, from the cache: no request. What this operator applied is seen
    /// at once, also before the watch tells it. A key is `name`, in the namespace
    /// of the reconciled object, or `(namespace, name)`.
    ///
    /// # Errors
    /// When the controller did not declare the kind, the object does not fit its Rust type, or the
    /// key needs a namespace and neither it nor the reconciled object has one.
    pub fn get<K: Object>(&self, key: impl Into<ObjectKey>) -> Result<Option<Arc<K>>, ReadError> {
        let key = live::key_of::<K>(self.owner.key.namespace.as_deref(), key)?;
        self.check_crossing::<K>(&key)?;
        self.run.read_cache();
        Ok(self.shared.reads.lister::<K>()?.get(&key)?)
    }

    fn check_crossing<K: Object>(&self, key: &ObjectKey) -> Result<(), ReadError> {
        cross_namespace::check::<K>(&self.shared.reads, &self.owner, key)
    }

    /// An object of a declared kind that is known only at run time, from the cache; otherwise as
    /// [`get`](Context::get).
    ///
    /// # Errors
    /// When the controller did not declare the kind, or the object cannot be read.
    pub fn get_dynamic(
        &self,
        kind: &Kind,
        key: impl Into<ObjectKey>,
    ) -> Result<Option<Arc<DynamicObject>>, ReadError> {
        let namespace = self.owner.key.namespace.as_deref();
        let key = (key.into()).or_namespace(namespace.filter(|_| kind.namespaced));
        cross_namespace::check_kind(&self.shared.reads, &self.owner, kind, &key)?;
        self.run.read_cache();
        self.shared.reads.get_dynamic(kind, key)
    }

    /// The selected objects of a declared kind, from the cache: no request. Without a namespace in
    /// the selection, those in the namespace of the reconciled object, unless the selection asks
    /// for [all namespaces](Selection::all_namespaces). Of a referenced kind, those of other
    /// namespaces are left out unless they are granted.
    ///
    /// # Errors
    /// When the controller did not declare the kind.
    pub fn list<K: Object>(
        &self,
        selection: impl Into<Selection>,
    ) -> Result<Vec<Arc<K>>, ReadError> {
        let own = self.owner.key.namespace.as_deref();
        let selection = live::selection_of::<K>(own, selection);
        self.run.read_cache();
        let mut found = self.shared.reads.lister::<K>()?.list(&selection);
        found.retain(|object| {
            self.check_crossing::<K>(&ObjectKey::of(object.meta()))
                .is_ok()
        });
        Ok(found)
    }

    /// Returns the objects of a declared kind that the reconciled object controls, from the cache.
    /// Children of an object in a namespace are in that namespace; their owner reference names it
    /// by group, kind, name and UID.
    ///
    /// # Errors
    /// When the controller did not declare the kind.
    pub fn children<K: Object>(&self) -> Result<Vec<Arc<K>>, ReadError> {
        self.run.read_cache();
        let dependents = self.owner.dependents();
        let mut children = self.shared.reads.lister::<K>()?.list(&dependents);
        children.retain(|child| self.owner.controls(&child.meta().into()));
        Ok(children)
    }

    /// Tells the users of the reconciled object what happened, as a Kubernetes Event. Never waits:
    /// events are posted in the background, and dropped if too many wait.
    pub fn event(&self, event_type: EventType, reason: impl Into<String>, note: impl Into<String>) {
        self.shared.events.record(
            self.owner.object_reference(),
            event_type,
            reason.into(),
            note.into(),
        );
    }

    /// What [`Operator::state`] made: clients of other systems, settings.
    ///
    /// [`Operator::state`]: https://docs.rs/opkit/latest/opkit/struct.Operator.html#method.state
    pub fn state(&self) -> &S {
        &self.state
    }

    pub(crate) fn state_arc(&self) -> Arc<S> {
        self.state.clone()
    }

    /// The key of the reconciled object.
    pub fn key(&self) -> &ObjectKey {
        &self.owner.key
    }

    /// The name of the cluster that the object is in; none for the one that the operator runs in.
    pub fn cluster(&self) -> Option<&str> {
        self.shared.cluster.as_deref()
    }

    /// A client, for everything else. What it does is part of the record of this reconcile.
    pub fn client(&self) -> kube::Client {
        let run = Arc::downgrade(&self.run);
        self.run.client(|| noting(run, self.shared.client.kube()))
    }

    /// As whom this controller writes: `<operator>.<controller>`.
    pub fn field_manager(&self) -> &str {
        &self.shared.field_manager
    }
}

/// A client that notes what it is used for, as long as the run lasts.
fn noting(run: Weak<Run>, client: kube::Client) -> kube::Client {
    let namespace = client.default_namespace().to_owned();
    let service = tower::service_fn(move |request: Request<Body>| {
        let (run, client, info) = (run.upgrade(), client.clone(), RequestInfo::of(&request));
        async move {
            let mut answer = client.send(request).await?;
            if let Some(run) = run.filter(|_| answer.status().is_success()) {
                let mut name = info.name.clone();
                if info.verb == "create" && name.is_none() {
                    // The server may have made the name.
                    let (head, body) = answer.into_parts();
                    let body = body.collect().await?;
                    let body = body.to_bytes();
                    name = name_of(&body);
                    answer = Response::from_parts(head, Body::from(body));
                }
                note(&run, &info, name);
            }
            Ok::<_, kube::Error>(answer)
        }
    });
    kube::Client::new(service, namespace)
}

/// The name of an object as it was received.
fn name_of(body: &[u8]) -> Option<String> {
    let json = serde_json::from_slice::<Head>(body).ok();
    let head = json.or_else(|| protobuf::from_slice(body).ok())?;
    head.metadata.name
}

fn note(run: &Run, info: &RequestInfo, name: Option<String>) {
    if !info.is_write() {
        return run.read_live();
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
    run.wrote(
        verb,
        &kind,
        &key,
        info.subresource.as_deref().unwrap_or_default(),
    );
}

#[cfg(test)]
mod tests;
