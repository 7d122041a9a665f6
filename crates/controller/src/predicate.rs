//! Predicates: which changes of an object are worth a reconcile.
//!
//! There are two sorts. A test of a *change* looks at the object before and after; an object that is
//! new, gone, or has just begun to be deleted passes it, also where it is negated, so that no finalizer
//! is missed. So does one that changed several times before it could be told: a label that went and
//! came back may have been read. A test of the *object* ([`label_selector`], [`Predicate::object`])
//! looks at the object as it is, or last was, whatever happened to it; an update passes if it holds for the
//! object before or after, so that one that leaves the selection can be cleaned up after. (In
//! controller-runtime only the object after counts.)
//!
//! Those on metadata read it in place: no object is decoded.

use std::fmt;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use opkit_apimachinery::selector::{LabelSelector, SelectorError};
use opkit_cache::{Meta, Stored};
use opkit_client::Object;

/// Decides whether a change is worth a reconcile.
///
/// # Examples
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use opkit_controller::predicate::{self, Predicate};
/// let spec_or_labels = predicate::generation_changed().or(predicate::labels_changed());
/// let finalizers = Predicate::new(|old, new| old.finalizers != new.finalizers);
/// let moved = Predicate::typed(|old: &Pod, new: &Pod| {
///     let node = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
///     node(old) != node(new)
/// });
/// let ours = predicate::label_selector("app=web")?.and(!predicate::annotations_changed());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Predicate(Arc<Node>);

type ChangeTest = dyn Fn(&Stored, &Stored) -> bool + Send + Sync;
type ObjectTest = dyn Fn(&Stored) -> bool + Send + Sync;

enum Node {
    Change(Box<ChangeTest>),
    Object(Box<ObjectTest>),
    And(Predicate, Predicate),
    Or(Predicate, Predicate),
    Not(Predicate),
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
        Predicate::change(move |old, new| test(&old.meta(), &new.meta()))
    }

    /// Passes updates for which `test(old, new)` holds, on the Rust objects, which are made for it.
    /// An object that does not fit its type passes: its error shall be seen.
    pub fn typed<K: Object>(test: impl Fn(&K, &K) -> bool + Send + Sync + 'static) -> Self {
        Predicate::change(move |old, new| match (old.get::<K>(), new.get::<K>()) {
            (Ok(old), Ok(new)) => test(&old, &new),
            _ => true,
        })
    }

    /// Passes whatever happens to objects for whose metadata `test` holds.
    pub fn object(test: impl Fn(&Meta<'_>) -> bool + Send + Sync + 'static) -> Self {
        Predicate(Arc::new(Node::Object(Box::new(move |object| {
            test(&object.meta())
        }))))
    }

    fn change(test: impl Fn(&Stored, &Stored) -> bool + Send + Sync + 'static) -> Self {
        Predicate(Arc::new(Node::Change(Box::new(test))))
    }

    /// Passes what either passes.
    pub fn or(self, other: Predicate) -> Self {
        Predicate(Arc::new(Node::Or(self, other)))
    }

    /// Passes what both pass.
    pub fn and(self, other: Predicate) -> Self {
        Predicate(Arc::new(Node::And(self, other)))
    }

    /// Adds this test to those in `filter`.
    pub(crate) fn and_then(self, filter: &mut Option<Predicate>) {
        *filter = Some(match filter.take() {
            Some(before) => before.and(self),
            None => self,
        });
    }

    /// Whether a change passes. `seen_whole` is false if several were coalesced into it.
    pub(crate) fn passes(
        &self,
        old: Option<&Stored>,
        new: Option<&Stored>,
        seen_whole: bool,
    ) -> bool {
        let update = match (old, new) {
            (Some(old), Some(new)) if seen_whole && is_plain_update(old, new) => Some((old, new)),
            _ => None,
        };
        self.holds(update, [old, new], false)
    }

    fn holds(
        &self,
        update: Option<(&Stored, &Stored)>,
        objects: [Option<&Stored>; 2],
        negated: bool,
    ) -> bool {
        let holds = |predicate: &Predicate| predicate.holds(update, objects, negated);
        match &*self.0 {
            Node::Change(test) => update.is_none_or(|(old, new)| test(old, new) != negated),
            // What leaves the selection is as much news as what enters it.
            Node::Object(test) => objects
                .iter()
                .flatten()
                .any(|object| test(object) != negated),
            // De Morgan: negation is pushed down to the tests.
            Node::And(one, other) if negated => holds(one) || holds(other),
            Node::Or(one, other) if negated => holds(one) && holds(other),
            Node::And(one, other) => holds(one) && holds(other),
            Node::Or(one, other) => holds(one) || holds(other),
            Node::Not(inner) => inner.holds(update, objects, !negated),
        }
    }
}

/// Passes what the other does not.
impl std::ops::Not for Predicate {
    type Output = Predicate;

    fn not(self) -> Predicate {
        Predicate(Arc::new(Node::Not(self)))
    }
}

/// Whether both are the same object, in the same state of deletion.
fn is_plain_update(old: &Stored, new: &Stored) -> bool {
    let (old, new) = (old.meta(), new.meta());
    old.uid() == new.uid() && old.is_deleting() == new.is_deleting()
}

/// Passes changes of the spec. Kinds without a generation, such as ConfigMaps, always pass.
pub fn generation_changed() -> Predicate {
    Predicate::on(|old, new| new.generation().is_none() || old.generation() != new.generation())
}

/// Passes every change of the stored object, and not the periodic look at unchanged ones.
pub fn resource_version_changed() -> Predicate {
    Predicate::on(|old, new| old.resource_version() != new.resource_version())
}

/// Passes changes of labels.
pub fn labels_changed() -> Predicate {
    Predicate::on(|old, new| old.labels() != new.labels())
}

/// Passes changes of annotations.
pub fn annotations_changed() -> Predicate {
    Predicate::on(|old, new| old.annotations() != new.annotations())
}

/// Passes whatever happens to objects whose labels match, or did before, such as `app=web,tier in (a,b)`.
///
/// # Errors
/// When it is not a selector.
pub fn label_selector(selector: &str) -> Result<Predicate, SelectorError> {
    let selector = LabelSelector::parse(selector)?;
    Ok(Predicate::object(move |meta| {
        let mut requirements = selector.requirements().iter();
        requirements.all(|requirement| requirement.matches(meta.label(&requirement.key).as_deref()))
    }))
}

#[cfg(test)]
mod tests;
