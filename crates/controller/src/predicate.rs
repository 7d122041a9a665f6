//! Predicates: which changes of an object are worth a reconcile.
//!
//! A predicate sees the metadata before and after; an object that is new, gone, or has just begun
//! to be deleted passes every predicate, so that no finalizer is missed. So does one that changed
//! several times before it could be told: a label that went and came back may have been read.

use std::fmt;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

type Test = dyn Fn(&ObjectMeta, &ObjectMeta) -> bool + Send + Sync;

/// Decides whether an update is worth a reconcile.
///
/// # Examples
/// ```
/// use opkit_controller::predicate::{self, Predicate};
/// let spec_or_labels = predicate::generation_changed().or(predicate::labels_changed());
/// let finalizers = Predicate::new(|old, new| old.finalizers != new.finalizers);
/// ```
#[derive(Clone)]
pub struct Predicate {
    test: Arc<Test>,
}

impl fmt::Debug for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Predicate").finish_non_exhaustive()
    }
}

impl Predicate {
    /// Passes updates for which `test(old, new)` holds.
    pub fn new(test: impl Fn(&ObjectMeta, &ObjectMeta) -> bool + Send + Sync + 'static) -> Self {
        Predicate {
            test: Arc::new(test),
        }
    }

    /// Passes what either passes.
    pub fn or(self, other: Predicate) -> Self {
        Predicate::new(move |old, new| (self.test)(old, new) || (other.test)(old, new))
    }

    /// Passes what both pass.
    pub fn and(self, other: Predicate) -> Self {
        Predicate::new(move |old, new| (self.test)(old, new) && (other.test)(old, new))
    }

    pub(crate) fn passes(&self, old: Option<&ObjectMeta>, new: Option<&ObjectMeta>) -> bool {
        match (old, new) {
            (Some(old), Some(new)) => {
                old.uid != new.uid
                    || old.deletion_timestamp.is_some() != new.deletion_timestamp.is_some()
                    || (self.test)(old, new)
            }
            _ => true,
        }
    }
}

/// Passes changes of the spec. Kinds without a generation, such as ConfigMaps, always pass.
pub fn generation_changed() -> Predicate {
    Predicate::new(|old, new| new.generation.is_none() || old.generation != new.generation)
}

/// Passes changes of labels.
pub fn labels_changed() -> Predicate {
    Predicate::new(|old, new| old.labels != new.labels)
}

/// Passes changes of annotations.
pub fn annotations_changed() -> Predicate {
    Predicate::new(|old, new| old.annotations != new.annotations)
}

#[cfg(test)]
mod tests;
