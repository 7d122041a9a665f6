//! The source of a controller as a user declares it: filters of its events, and map functions from
//! events to objects to reconcile.

use std::fmt;
use std::sync::Arc;

use opkit_cache::Stored;
use opkit_client::{Kind, ObjectKey};

use crate::reads::MapContext;
use crate::source::event::{CreateEvent, DeleteEvent, Event, GenericEvent, UpdateEvent};
use crate::source::predicate::Predicate;
use crate::source::spec::Map;
use crate::source::{Triggers, enqueue};

/// A watched kind of a controller: which of its events lead to a reconcile, and of which objects.
///
/// The methods of [`Controller`](crate::Controller) that end in `_with`, and
/// [`primary`](crate::Controller::primary), hand one to a function, which returns it changed.
///
/// # Examples
/// ```
/// # use opkit_controller as opkit;
/// use std::sync::Arc;
/// use k8s_openapi::api::apps::v1::Deployment;
/// use k8s_openapi::api::core::v1::{ConfigMap, Node};
/// use opkit::{Action, Context, Controller, ObjectKey, Result, predicate};
///
/// async fn reconcile(map: Arc<ConfigMap>, cx: Context) -> Result<Action> {
///     Ok(Action::await_change())
/// }
/// fn on_node(node: &Node) -> Vec<ObjectKey> {
///     Vec::new() // those that depend on it
/// }
/// let controller = Controller::new(reconcile)
///     .primary(|maps| maps.only(predicate::label_selector("app=web").expect("a selector")))
///     .owns_with::<Deployment>(|deployments| deployments.only(predicate::generation_changed()))
///     .watches_with::<Node>(|nodes| {
///         nodes
///             .on_create(|event, cx| on_node(event.object))
///             .on_delete(|event, cx| on_node(event.object))
///     });
/// ```
pub struct Source<K> {
    /// The kind that is reconciled.
    reconciled: Arc<Kind>,
    decode: fn(&Stored) -> Option<Arc<K>>,
    pub(crate) maps: Vec<Arc<Map>>,
    pub(crate) predicate: Option<Predicate>,
    pub(crate) triggers: Vec<Triggers>,
}

impl<K> fmt::Debug for Source<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("maps", &self.maps.len())
            .field("is_filtered", &self.predicate.is_some())
            .finish_non_exhaustive()
    }
}

impl<K: 'static> Source<K> {
    pub(crate) fn new(reconciled: &Arc<Kind>, decode: fn(&Stored) -> Option<Arc<K>>) -> Self {
        Self {
            reconciled: reconciled.clone(),
            decode,
            maps: Vec::new(),
            predicate: None,
            triggers: Vec::new(),
        }
    }

    /// Lets only those events lead to a reconcile that `predicate` passes. Several combine: an
    /// event must pass all of them.
    pub fn only(mut self, predicate: impl Into<Predicate>) -> Self {
        predicate.into().and_then(&mut self.predicate);
        self
    }

    /// Reconciles also the objects that `map` returns for the object of an event. For an update,
    /// `map` is called with the object before and after. Keys without a namespace are in that of
    /// the object of the event.
    pub fn map(
        self,
        map: impl Fn(&K, &MapContext) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        self.map_events(move |event, context| {
            let mut keys = event.old().map(|old| map(old, context)).unwrap_or_default();
            keys.extend(map(event.object(), context));
            keys
        })
    }

    /// Reconciles also the objects that `map` returns for an event, which shows what happened.
    ///
    /// Changes that came too fast to be reported one by one are reported as updates of the versions
    /// that had other labels or owners.
    pub fn map_events(
        self,
        map: impl Fn(&Event<'_, K>, &MapContext) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        let (decode, namespaced) = (self.decode, self.reconciled.namespaced);
        self.lead(move |event, context| {
            // One that does not fit its type leads nowhere, as the cache has warned.
            let keys = event.decoded(decode, |event| map(event, context));
            let namespace = event.object().namespace().filter(|_| namespaced);
            let keys = keys.unwrap_or_default().into_iter();
            keys.map(|key| key.or_namespace(namespace.as_deref()))
                .collect()
        })
    }

    /// Reconciles the objects that `handle` returns when an object is created, or is new to this
    /// process. One of four functions, as controller-runtime's `handler.Funcs` has them; an event
    /// without a function leads nowhere.
    pub fn on_create(
        self,
        handle: impl Fn(&CreateEvent<'_, K>, &MapContext) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        self.map_events(move |event, context| match event {
            Event::Create(event) => handle(event, context),
            _ => Vec::new(),
        })
    }

    /// Reconciles the objects that `handle` returns when an object changes.
    pub fn on_update(
        self,
        handle: impl Fn(&UpdateEvent<'_, K>, &MapContext) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        self.map_events(move |event, context| match event {
            Event::Update(event) => handle(event, context),
            _ => Vec::new(),
        })
    }

    /// Reconciles the objects that `handle` returns when an object is gone.
    pub fn on_delete(
        self,
        handle: impl Fn(&DeleteEvent<'_, K>, &MapContext) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        self.map_events(move |event, context| match event {
            Event::Delete(event) => handle(event, context),
            _ => Vec::new(),
        })
    }

    /// Reconciles the objects that `handle` returns when an object is named by
    /// [`triggered_by`](Source::triggered_by).
    pub fn on_generic(
        self,
        handle: impl Fn(&GenericEvent<'_, K>, &MapContext) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        self.map_events(move |event, context| match event {
            Event::Generic(event) => handle(event, context),
            _ => Vec::new(),
        })
    }

    /// Reconciles the owners of the reconciled kind of an object, also those that are not its
    /// controller.
    pub fn map_owners(self) -> Self {
        self.lead_to_owners(true)
    }

    /// Takes the requests that come through the other end of `triggers` as generic events of this
    /// source: they name objects of its kind, go through its filters and to its map functions. On a
    /// kind that is not the reconciled one, an object that is not in the cache leads nowhere. See
    /// [`trigger`](crate::trigger).
    pub fn triggered_by(mut self, triggers: Triggers) -> Self {
        self.triggers.push(triggers);
        self
    }

    /// The owners of the reconciled kind: the controller alone, or any.
    pub(crate) fn lead_to_owners(self, any: bool) -> Self {
        let owner = self.reconciled.clone();
        let owners = move |object: &Stored| enqueue::owners_of(&owner, &object.meta(), any);
        self.lead(move |event, _| of_versions(event, &owners))
    }

    pub(crate) fn lead(
        mut self,
        map: impl Fn(&Event<'_>, &MapContext) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        self.maps.push(Arc::new(map));
        self
    }
}

/// Returns the keys that `map` returns for the object of an event before and after the change.
fn of_versions(event: &Event<'_>, map: &impl Fn(&Stored) -> Vec<ObjectKey>) -> Vec<ObjectKey> {
    let mut keys = event.old().map(map).unwrap_or_default();
    keys.extend(map(event.object()));
    keys
}

/// All sources of a controller together, for filters; see
/// [`every_source`](crate::Controller::every_source).
#[derive(Debug, Default)]
pub struct EverySource {
    pub(crate) predicate: Option<Predicate>,
}

impl EverySource {
    /// Lets only those events, of whatever source, lead to a reconcile that `predicate` passes.
    /// Several combine: an event must pass all of them.
    pub fn only(mut self, predicate: impl Into<Predicate>) -> Self {
        predicate.into().and_then(&mut self.predicate);
        self
    }
}
