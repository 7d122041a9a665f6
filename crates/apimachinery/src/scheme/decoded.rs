//! An object whose type is determined by its kind at run time.

use std::any::{Any, type_name};
use std::fmt;

use super::Boxed;
use crate::identity::GroupVersionKind;

/// An object decoded by a [`Scheme`](super::Scheme): its kind, and the typed object in a box.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::identity::GroupVersionKind;
/// use opkit_apimachinery::scheme::Decoded;
///
/// let decoded = Decoded::new(GroupVersionKind::new("", "v1", "Text"), String::from("a"));
/// assert!(decoded.is::<String>());
/// assert_eq!(decoded.downcast::<String>().ok().as_deref(), Some("a"));
/// ```
pub struct Decoded {
    pub(super) gvk: GroupVersionKind,
    pub(super) object: Boxed,
}

impl Decoded {
    /// Creates a `Decoded` from a kind and a typed object, without decoding.
    pub fn new<T: Any + Send + Sync>(gvk: GroupVersionKind, object: T) -> Self {
        Self {
            gvk,
            object: Box::new(object),
        }
    }

    /// Returns the kind of the object.
    pub fn gvk(&self) -> &GroupVersionKind {
        &self.gvk
    }

    /// Reports whether the object is a `T`.
    pub fn is<T: Any>(&self) -> bool {
        self.object.is::<T>()
    }

    /// Returns a reference to the object if it is a `T`.
    pub fn downcast_ref<T: Any>(&self) -> Option<&T> {
        self.object.downcast_ref()
    }

    /// Returns a mutable reference to the object if it is a `T`.
    pub fn downcast_mut<T: Any>(&mut self) -> Option<&mut T> {
        self.object.downcast_mut()
    }

    /// Returns the object if it is a `T`.
    ///
    /// # Errors
    ///
    /// Returns `self` unchanged if the object is not a `T`.
    pub fn downcast<T: Any>(self) -> Result<T, Self> {
        let gvk = self.gvk;
        match self.object.downcast::<T>() {
            Ok(object) => Ok(*object),
            Err(object) => Err(Self { gvk, object }),
        }
    }
}

impl fmt::Debug for Decoded {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct(type_name::<Self>())
            .field("gvk", &self.gvk)
            .finish_non_exhaustive()
    }
}
