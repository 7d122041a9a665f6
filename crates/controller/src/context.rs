//! What a reconcile works with: the cache, the children, the status, events.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use opkit_cache::Selection;
use opkit_client::{Object, ObjectKey, RestClient};

use crate::applied::AppliedChildren;
use crate::events::{EventRecorder, EventType};
use crate::owner::Owner;
use crate::prune::OwnedKind;
use crate::run::Run;
use crate::source::MapContext;
use crate::{ReadError, live};

/// What the reconciles of one controller share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) client: RestClient,
    pub(crate) field_manager: String,
    pub(crate) reads: MapContext,
    pub(crate) applied: AppliedChildren,
    pub(crate) events: EventRecorder,
    /// The kinds of children, which are pruned.
    pub(crate) owned: Vec<OwnedKind>,
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
    state: PhantomData<fn() -> S>,
}

impl<S> Clone for Context<S> {
    fn clone(&self) -> Self {
        Context {
            shared: self.shared.clone(),
            owner: self.owner.clone(),
            run: self.run.clone(),
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
            run: Arc::default(),
            state: PhantomData,
        }
    }

    pub(crate) fn with_state<S>(self) -> Context<S> {
        Context {
            shared: self.shared,
            owner: self.owner,
            run: self.run,
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
        let key = live::key_of::<K>(self.owner.key.namespace.as_deref(), key)?;
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
        let own = self.owner.key.namespace.as_deref();
        let selection = live::selection_of::<K>(own, selection);
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
