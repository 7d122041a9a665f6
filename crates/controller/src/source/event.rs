//! Events of watched objects: create, update, delete and generic, as in controller-runtime.
//!
//! Predicates, map functions and the functions of a [`Source`](crate::Source) for single types of
//! events receive these events. In predicates, `K` is [`Stored`], the object as the cache stores
//! it, whose metadata is read without decoding. In map functions, `K` is the Rust type of the
//! watched kind.

use std::fmt;
use std::sync::Arc;

use opkit_cache::{Step, Stored};

/// Event of an object that was created, or is seen by this process for the first time.
pub struct CreateEvent<'a, K = Stored> {
    /// The object.
    pub object: &'a K,
    /// Whether the object is part of the initial list, so it existed before the operator started.
    pub is_initial: bool,
}

/// Event of an object that changed. In a resync, which reports unchanged objects, `old` and `new`
/// are the same version.
pub struct UpdateEvent<'a, K = Stored> {
    /// The object before the change.
    pub old: &'a K,
    /// The object after the change.
    pub new: &'a K,
}

/// Event of an object that was deleted.
pub struct DeleteEvent<'a, K = Stored> {
    /// The last known version of the object.
    pub object: &'a K,
    /// Whether `object` is the state at the time of the deletion. `false` if the watch missed the
    /// deletion, so that the object may have changed before it was deleted, for example its labels
    /// or its owner. The opposite of controller-runtime's `DeleteStateUnknown`.
    pub is_certain: bool,
}

/// Event of an object whose key was sent through a trigger from outside the cluster; see
/// [`Source::triggered_by`].
///
/// [`Source::triggered_by`]: crate::Source::triggered_by
pub struct GenericEvent<'a, K = Stored> {
    /// The object, from the cache.
    pub object: &'a K,
}

/// An event of a watched kind.
///
/// # Examples
/// ```
/// # mod opkit { pub use opkit_controller as controller; }
/// use k8s_openapi::api::core::v1::Node;
/// use opkit::controller::event::Event;
///
/// fn describe(event: &Event<Node>) -> String {
///     let name = event.object().metadata.name.clone().unwrap_or_default();
///     match event {
///         Event::Create(_) => format!("{name} is new"),
///         Event::Update(update) => format!("{name} had {:?}", update.old.metadata.labels),
///         Event::Delete(delete) if delete.is_certain => format!("{name} was deleted"),
///         Event::Delete(_) => format!("{name} was deleted while the watch was interrupted"),
///         Event::Generic(_) => format!("a trigger named {name}"),
///     }
/// }
/// ```
pub enum Event<'a, K = Stored> {
    /// An object was created, or is seen by this process for the first time.
    Create(CreateEvent<'a, K>),
    /// An object changed.
    Update(UpdateEvent<'a, K>),
    /// An object was deleted.
    Delete(DeleteEvent<'a, K>),
    /// The key of an object was sent through a trigger from outside the cluster.
    Generic(GenericEvent<'a, K>),
}

impl<'a, K> Event<'a, K> {
    /// Returns the object after the event. For a delete event, returns the last known version.
    pub fn object(&self) -> &'a K {
        match self {
            Event::Create(event) => event.object,
            Event::Update(event) => event.new,
            Event::Delete(event) => event.object,
            Event::Generic(event) => event.object,
        }
    }

    /// Returns the object before the change; `None` if the event is not an update.
    pub fn old(&self) -> Option<&'a K> {
        match self {
            Event::Update(event) => Some(event.old),
            _ => None,
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Event::Create(_) => "Create",
            Event::Update(_) => "Update",
            Event::Delete(_) => "Delete",
            Event::Generic(_) => "Generic",
        }
    }
}

impl<K> fmt::Debug for Event<'_, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(self.name()).finish_non_exhaustive()
    }
}

macro_rules! named_debug {
    ($($event:ident)*) => {$(
        impl<K> fmt::Debug for $event<'_, K> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($event)).finish_non_exhaustive()
            }
        }
    )*};
}

named_debug!(CreateEvent UpdateEvent DeleteEvent GenericEvent);

impl<'a> Event<'a> {
    /// Converts an event of the cache. Also returns whether the old and the new object are
    /// consecutive versions, without coalesced changes in between. Returns `None` for a type of
    /// event that this crate does not handle.
    pub(crate) fn of(step: Step<'a>) -> Option<(Self, bool)> {
        Some(match step {
            Step::Created { object, is_initial } => {
                (Event::Create(CreateEvent { object, is_initial }), true)
            }
            Step::Updated { old, new, is_whole } => {
                (Event::Update(UpdateEvent { old, new }), is_whole)
            }
            Step::Deleted { object, is_certain } => {
                (Event::Delete(DeleteEvent { object, is_certain }), true)
            }
            _ => return None,
        })
    }

    /// Decodes the objects of the event with `decode` and calls `function` with the decoded event.
    /// Returns `None` if decoding fails. If only one of the two objects of an update can be
    /// decoded, it is used as both the old and the new object.
    pub(crate) fn decoded<K, R>(
        &self,
        decode: impl Fn(&Stored) -> Option<Arc<K>>,
        function: impl FnOnce(&Event<'_, K>) -> R,
    ) -> Option<R> {
        let object = decode(self.object());
        let old = self.old().and_then(decode);
        let object = object.or_else(|| old.clone())?;
        let object = &*object;
        Some(function(&match self {
            Event::Create(CreateEvent { is_initial, .. }) => Event::Create(CreateEvent {
                object,
                is_initial: *is_initial,
            }),
            Event::Update(_) => Event::Update(UpdateEvent {
                old: old.as_deref().unwrap_or(object),
                new: object,
            }),
            Event::Delete(DeleteEvent { is_certain, .. }) => Event::Delete(DeleteEvent {
                object,
                is_certain: *is_certain,
            }),
            Event::Generic(_) => Event::Generic(GenericEvent { object }),
        }))
    }
}
