//! An object whose type is known only by its kind.

use std::any::{Any, type_name};
use std::fmt;

use super::Boxed;
use crate::identity::GroupVersionKind;

/// An object that a [`Scheme`](super::Scheme) has read: its kind, and the type in a box.
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
    /// From an object that was not read but made.
    pub fn new<T: Any + Send + Sync>(gvk: GroupVersionKind, object: T) -> Self {
        Self {
            gvk,
            object: Box::new(object),
        }
    }

    /// The kind that the object says it is.
    pub fn gvk(&self) -> &GroupVersionKind {
        &self.gvk
    }

    /// Whether it is a `T`.
    pub fn is<T: Any>(&self) -> bool {
        self.object.is::<T>()
    }

    /// The object, if it is a `T`.
    pub fn downcast_ref<T: Any>(&self) -> Option<&T> {
        self.object.downcast_ref()
    }

    /// The object, if it is a `T`.
    pub fn downcast_mut<T: Any>(&mut self) -> Option<&mut T> {
        self.object.downcast_mut()
    }

    /// The object itself.
    ///
    /// # Errors
    ///
    /// It is not a `T`; it comes back as it was.
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
