//! Events of objects of a watched kind: create, update, delete and generic, as in
//! controller-runtime.
//!
//! Predicates, map functions and the handlers of a [`Source`](crate::Source) see them. In
//! predicates `K` is [`Stored`], the object as the cache has it, whose metadata is read in place;
//! in map functions it is the Rust type.

use std::fmt;
use std::sync::Arc;

use opkit_cache::{Step, Stored};

/// An object was created, or is new to this process.
pub struct CreateEvent<'a, K = Stored> {
    /// The object.
    pub object: &'a K,
    /// Whether it was there before the operator started: part of the first list.
    pub is_initial: bool,
}

/// An object changed, or is reported again by a resync: then both are the same version.
pub struct UpdateEvent<'a, K = Stored> {
    /// The object before.
    pub old: &'a K,
    /// The object after.
    pub new: &'a K,
}

/// An object is gone.
pub struct DeleteEvent<'a, K = Stored> {
    /// Its last known state.
    pub object: &'a K,
    /// Whether it was in this state when it was deleted. False if the watch missed the deletion:
    /// the object may have changed before, such as its labels or its owner. The opposite of
    /// controller-runtime's `DeleteStateUnknown`.
    pub is_certain: bool,
}

/// Something outside of the cluster named an object; see [`Source::triggered_by`].
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
///         Event::Delete(delete) if delete.is_certain => format!("{name} is gone"),
///         Event::Delete(_) => format!("{name} is gone, its deletion was missed"),
///         Event::Generic(_) => format!("somebody named {name}"),
///     }
/// }
/// ```
pub enum Event<'a, K = Stored> {
    /// An object was created, or is new to this process.
    Create(CreateEvent<'a, K>),
    /// An object changed.
    Update(UpdateEvent<'a, K>),
    /// An object is gone.
    Delete(DeleteEvent<'a, K>),
    /// Something outside of the cluster named an object.
    Generic(GenericEvent<'a, K>),
}

impl<'a, K> Event<'a, K> {
    /// Returns the object as it is now, or last was.
    pub fn object(&self) -> &'a K {
        match self {
            Event::Create(event) => event.object,
            Event::Update(event) => event.new,
            Event::Delete(event) => event.object,
            Event::Generic(event) => event.object,
        }
    }

    /// Returns the object before, where it changed.
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
    /// The event of a step of a delta, and whether old and new are versions right after each other;
    /// none for a step that is not known here.
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

    /// Calls `function` with the event on objects that `decode` makes; none if an object does not
    /// fit its type. Of an update it is enough that one does, which is given for both then.
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
