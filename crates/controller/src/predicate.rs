//! Predicates: which changes of an object are worth a reconcile.
//!
//! A predicate sees the metadata before and after; an object that is new, gone, or has just begun
//! to be deleted passes every predicate, so that no finalizer is missed. So does one that changed
//! several times before it could be told: a label that went and came back may have been read.

use std::fmt;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use opkit_cache::Meta;

type Test = dyn Fn(&Meta<'_>, &Meta<'_>) -> bool + Send + Sync;

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
    /// Passes updates for which `test(old, new)` holds. Makes the metadata of both;
    /// [`on`](Predicate::on) reads it in place.
    pub fn new(test: impl Fn(&ObjectMeta, &ObjectMeta) -> bool + Send + Sync + 'static) -> Self {
        Predicate::on(move |old, new| test(&old.to_object_meta(), &new.to_object_meta()))
    }

    /// Passes updates for which `test(old, new)` holds.
    pub fn on(test: impl Fn(&Meta<'_>, &Meta<'_>) -> bool + Send + Sync + 'static) -> Self {
        Predicate {
            test: Arc::new(test),
        }
    }

    /// Passes what either passes.
    pub fn or(self, other: Predicate) -> Self {
        Predicate::on(move |old, new| (self.test)(old, new) || (other.test)(old, new))
    }

    /// Passes what both pass.
    pub fn and(self, other: Predicate) -> Self {
        Predicate::on(move |old, new| (self.test)(old, new) && (other.test)(old, new))
    }

    pub(crate) fn passes(&self, old: Option<Meta<'_>>, new: Option<Meta<'_>>) -> bool {
        match (old, new) {
            (Some(old), Some(new)) => {
                old.uid() != new.uid()
                    || old.is_deleting() != new.is_deleting()
                    || (self.test)(&old, &new)
            }
            _ => true,
        }
    }
}

/// Passes changes of the spec. Kinds without a generation, such as ConfigMaps, always pass.
pub fn generation_changed() -> Predicate {
    Predicate::on(|old, new| new.generation().is_none() || old.generation() != new.generation())
}

/// Passes changes of labels.
pub fn labels_changed() -> Predicate {
    Predicate::on(|old, new| old.labels() != new.labels())
}

/// Passes changes of annotations.
pub fn annotations_changed() -> Predicate {
    Predicate::on(|old, new| old.annotations() != new.annotations())
}

#[cfg(test)]
mod tests;
