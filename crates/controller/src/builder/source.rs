//! Declaration of a source, which is a kind that a controller watches: filters of its events, and
//! map functions from events to the objects to reconcile.

use std::fmt;
use std::sync::Arc;

use opkit_cache::Stored;
use opkit_client::{Kind, ObjectKey};

use crate::reads::MapContext;
use crate::source::event::{CreateEvent, DeleteEvent, Event, GenericEvent, UpdateEvent};
use crate::source::predicate::Predicate;
use crate::source::spec::Map;
use crate::source::{Triggers, enqueue};

/// A kind that a controller watches: filters of its events, and functions that return the objects
/// to reconcile for an event.
///
/// [`primary`](crate::Controller::primary), and the methods of [`Controller`](crate::Controller)
/// whose names end in `_with`, pass a `Source` to a function that configures and returns it.
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
///     Vec::new() // the ConfigMaps that depend on the node
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
    /// The reconciled kind.
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

    /// Adds a filter: only events that `predicate` passes cause a reconcile. If called several
    /// times, an event must pass all filters.
    pub fn only(mut self, predicate: impl Into<Predicate>) -> Self {
        predicate.into().and_then(&mut self.predicate);
        self
    }

    /// Also reconciles the objects that `map` returns for the object of an event. For an update,
    /// `map` is called twice: with the object before and after the change. A key without a
    /// namespace gets the namespace of the event's object.
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

    /// Also reconciles the objects that `map` returns for an event.
    ///
    /// Several changes of an object that follow each other too fast may be reported together. Then
    /// `map` is called for the last version, and for those earlier versions whose labels or owners
    /// differ.
    pub fn map_events(
        self,
        map: impl Fn(&Event<'_, K>, &MapContext) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        let (decode, namespaced) = (self.decode, self.reconciled.namespaced);
        self.add_map(move |event, context| {
            // An object that cannot be decoded causes no reconcile; the cache has logged a warning.
            let keys = event.decoded(decode, |event| map(event, context));
            let namespace = event.object().namespace().filter(|_| namespaced);
            let keys = keys.unwrap_or_default().into_iter();
            keys.map(|key| key.or_namespace(namespace.as_deref()))
                .collect()
        })
    }

    /// Reconciles the objects that `handle` returns when an object is created, or is seen by this
    /// process for the first time. Like controller-runtime's `handler.Funcs`, a source has four
    /// such functions, one for each type of event. An event whose function is not set causes no
    /// reconcile.
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

    /// Reconciles the objects that `handle` returns when an object is deleted.
    pub fn on_delete(
        self,
        handle: impl Fn(&DeleteEvent<'_, K>, &MapContext) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        self.map_events(move |event, context| match event {
            Event::Delete(event) => handle(event, context),
            _ => Vec::new(),
        })
    }

    /// Reconciles the objects that `handle` returns for an object whose key is sent through a
    /// trigger; see [`triggered_by`](Source::triggered_by).
    pub fn on_generic(
        self,
        handle: impl Fn(&GenericEvent<'_, K>, &MapContext) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        self.map_events(move |event, context| match event {
            Event::Generic(event) => handle(event, context),
            _ => Vec::new(),
        })
    }

    /// Also reconciles every owner of an object that is of the reconciled kind, not only the owner
    /// that is marked as the controller.
    pub fn map_owners(self) -> Self {
        self.map_to_owners(true)
    }

    /// Handles each key that is sent through the other end of `triggers` as a generic event of this
    /// source. The key names an object of this source's kind, and the event passes through the
    /// filters and map functions of this source. If this source is not of the reconciled kind, the
    /// key of an object that is not in the cache causes no reconcile. See
    /// [`trigger`](crate::trigger).
    pub fn triggered_by(mut self, triggers: Triggers) -> Self {
        self.triggers.push(triggers);
        self
    }

    /// Also reconciles the owners of an object that are of the reconciled kind: all owners if
    /// `any`, else only the owner that is marked as the controller.
    pub(crate) fn map_to_owners(self, any: bool) -> Self {
        let owner = self.reconciled.clone();
        let owners = move |object: &Stored| enqueue::owners_of(&owner, &object.meta(), any);
        self.add_map(move |event, _| keys_of_versions(event, &owners))
    }

    pub(crate) fn add_map(
        mut self,
        map: impl Fn(&Event<'_>, &MapContext) -> Vec<ObjectKey> + Send + Sync + 'static,
    ) -> Self {
        self.maps.push(Arc::new(map));
        self
    }
}

/// Returns the keys that `map` returns for the object of an event, and for an update also those for
/// the object before the change.
fn keys_of_versions(event: &Event<'_>, map: &impl Fn(&Stored) -> Vec<ObjectKey>) -> Vec<ObjectKey> {
    let mut keys = event.old().map(map).unwrap_or_default();
    keys.extend(map(event.object()));
    keys
}

/// Filters of all sources of a controller together; see
/// [`every_source`](crate::Controller::every_source).
#[derive(Debug, Default)]
pub struct EverySource {
    pub(crate) predicate: Option<Predicate>,
}

impl EverySource {
    /// Adds a filter to all sources: only events that `predicate` passes cause a reconcile. If
    /// called several times, an event must pass all filters.
    pub fn only(mut self, predicate: impl Into<Predicate>) -> Self {
        predicate.into().and_then(&mut self.predicate);
        self
    }
}
