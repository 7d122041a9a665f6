//! What a reconcile works with: the cache, the children, the status, events.

use std::any::TypeId;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use opkit_cache::Selection;
use opkit_client::{Kind, Object, ObjectKey, RestClient};

use crate::applied::AppliedChildren;
use crate::events::{EventRecorder, EventType};
use crate::owner::Owner;
use crate::source::MapContext;
use crate::{ReadError, WriteError};

/// What the reconciles of one controller share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) client: RestClient,
    pub(crate) field_manager: String,
    pub(crate) reads: MapContext,
    pub(crate) applied: AppliedChildren,
    pub(crate) events: EventRecorder,
}

/// Everything a reconcile does to the cluster goes through here. Cloning is cheap.
///
/// What it promises is written at each method; none of them holds a lock over a request, and all of
/// them may be repeated.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::{ConfigMap, Secret};
/// use opkit_controller::{Action, Context, EventType, Result};
///
/// async fn reconcile(map: Arc<ConfigMap>, cx: Context) -> Result<Action> {
///     let mut secret = Secret::default();
///     secret.metadata.name = map.metadata.name.clone();
///     let secret = cx.apply(secret).await?;
///     for former in cx.children::<Secret>()? {
///         if former.metadata.name != secret.metadata.name {
///             cx.delete(&former).await?;
///         }
///     }
///     cx.event(EventType::Normal, "Applied", "the secret is up to date");
///     Ok(Action::await_change())
/// }
/// ```
pub struct Context<S = ()> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) owner: Arc<Owner>,
    state: PhantomData<fn() -> S>,
}

impl<S> Clone for Context<S> {
    fn clone(&self) -> Self {
        Context {
            shared: self.shared.clone(),
            owner: self.owner.clone(),
            state: PhantomData,
        }
    }
}

impl<S> fmt::Debug for Context<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("object", &self.owner.key)
            .finish_non_exhaustive()
    }
}

impl Context {
    pub(crate) fn new(shared: Arc<Shared>, owner: Owner) -> Self {
        Context {
            shared,
            owner: Arc::new(owner),
            state: PhantomData,
        }
    }

    pub(crate) fn with_state<S>(self) -> Context<S> {
        Context {
            shared: self.shared,
            owner: self.owner,
            state: PhantomData,
        }
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
        let namespaced = Kind::of::<K>().namespaced;
        let namespace = self.owner.key.namespace.as_deref().filter(|_| namespaced);
        let key = key.into().or_namespace(namespace);
        if namespaced && key.namespace.is_none() {
            return Err(ReadError::NoNamespace {
                kind: Box::new(Kind::of::<K>()),
                name: key.name,
            });
        }
        Ok(self.shared.reads.lister::<K>()?.get(&key)?)
    }

    /// The selected objects of a declared kind, from the cache: no request. Without a namespace in
    /// the selection, those in the namespace of the reconciled object, unless the selection asks for
    /// [all namespaces](Selection::all_namespaces).
    ///
    /// # Errors
    /// When the controller did not declare the kind.
    pub fn list<K: Object>(
        &self,
        selection: impl Into<Selection>,
    ) -> Result<Vec<Arc<K>>, ReadError> {
        let mut selection = selection.into();
        let unsaid = selection.namespace.is_none() && !selection.all_namespaces;
        if unsaid && Kind::of::<K>().namespaced {
            selection.namespace = self.owner.key.namespace.clone();
        }
        Ok(self.shared.reads.lister::<K>()?.list(&selection))
    }

    /// The objects of a declared kind that the reconciled object controls, from the cache.
    ///
    /// # Errors
    /// When the controller did not declare the kind.
    pub fn children<K: Object>(&self) -> Result<Vec<Arc<K>>, ReadError> {
        let selection = Selection::default().owned_by(&self.owner.uid);
        let mut children = self.shared.reads.lister::<K>()?.list(&selection);
        children.retain(|child| self.owner.controls(child.meta()));
        Ok(children)
    }

    /// Deletes `object` if it still is what was read: its UID and resourceVersion are sent along.
    /// An object that is gone, or being deleted, already is no error.
    ///
    /// # Errors
    /// When the object changed since it was read, or the request fails.
    ///
    /// # Cancel safety
    /// Once the request is sent, the object may be deleted although the future is dropped.
    pub async fn delete<K: Object>(&self, object: &Arc<K>) -> Result<(), WriteError> {
        let meta = object.meta();
        let (kind, key) = (Kind::of::<K>(), ObjectKey::of(meta));
        let (uid, version) = (meta.uid.as_deref(), meta.resource_version.as_deref());
        if meta.deletion_timestamp.is_some() {
            return Ok(());
        }
        let answer = match self.shared.client.delete(&kind, &key, uid, version).await {
            Err(error) if error.is_not_found() => None,
            answer => Some(answer?),
        };
        self.shared.applied.forget(TypeId::of::<K>(), &key);
        if let Ok(lister) = self.shared.reads.lister::<K>() {
            // An object that has finalizers is answered and lives on; else a status is.
            let informer = lister.informer();
            let lives = answer.and_then(|answer| informer.read(&answer).ok());
            match lives.filter(|object| object.meta().is_deleting()) {
                Some(object) => informer.observe(&object),
                None => informer.observe_deletion(&key, uid.unwrap_or_default()),
            }
        }
        Ok(())
    }

    /// Tells the users of the reconciled object what happened, as a Kubernetes Event. Never waits:
    /// events are posted in the background, and dropped if too many wait.
    pub fn event(&self, event_type: EventType, reason: impl Into<String>, note: impl Into<String>) {
        self.shared
            .events
            .record(self.owner.clone(), event_type, reason.into(), note.into());
    }

    /// The client below, for everything else.
    pub fn client(&self) -> kube::Client {
        self.shared.client.kube()
    }

    /// As whom this controller writes: `<operator>.<controller>`.
    pub fn field_manager(&self) -> &str {
        &self.shared.field_manager
    }
}
