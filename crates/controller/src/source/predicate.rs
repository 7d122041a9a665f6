//! Predicates: filters that decide which events cause a reconcile.
//!
//! There are three sorts, as in controller-runtime:
//! - A test of a *change* ([`generation_changed`], [`Predicate::on`]) compares the object before
//!   and after an update. Creates, deletes and generic events pass it; its negation passes none of
//!   them.
//! - A test of the *object* ([`label_selector`], [`Predicate::object`]) tests the object after the
//!   event, or the last known one.
//! - A test of the *event* ([`created`], [`Funcs`], [`Predicate::events`]) tests both.
//!
//! Two sorts of updates pass a test of a change, and its negation, without being tested. The first
//! is the update that starts the deletion of an object, so that no finalizer is missed, even for
//! kinds without a generation. The second is an update that stands for several coalesced changes:
//! the old and the new object may be equal although a reconcile has read a version in between.
//!
//! Predicates on metadata read it without decoding the object.

mod funcs;

use std::fmt;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use opkit_apimachinery::selector::{LabelSelector, SelectorError};
use opkit_cache::{Meta, Stored};
use opkit_client::Object;

pub use self::funcs::Funcs;
use crate::source::event::Event;

/// A filter that decides whether an event causes a reconcile.
///
/// # Examples
/// ```
/// # use opkit_controller as opkit;
/// use k8s_openapi::api::core::v1::Pod;
/// use opkit::predicate::{self, Predicate};
/// let spec_or_labels = predicate::generation_changed().or(predicate::labels_changed());
/// let finalizers = Predicate::new(|old, new| old.finalizers != new.finalizers);
/// let moved = Predicate::typed(|old: &Pod, new: &Pod| {
///     let node = |pod: &Pod| pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
///     node(old) != node(new)
/// });
/// let web = predicate::label_selector("app=web")?.and(!predicate::annotations_changed());
/// let created_or_deleted = predicate::created().or(predicate::deleted());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Predicate(Arc<Node>);

type ChangeTest = dyn Fn(&Stored, &Stored) -> bool + Send + Sync;
type ObjectTest = dyn Fn(&Stored) -> bool + Send + Sync;
type EventTest = dyn Fn(&Event<'_>) -> bool + Send + Sync;

enum Node {
    Change(Box<ChangeTest>),
    Object(Box<ObjectTest>),
    Event(Box<EventTest>),
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
    /// Returns a predicate that passes updates for which `test(old, new)` is true. Decodes the
    /// metadata of both objects; [`on`](Predicate::on) reads the metadata without decoding.
    pub fn new(test: impl Fn(&ObjectMeta, &ObjectMeta) -> bool + Send + Sync + 'static) -> Self {
        Self::on(move |old, new| test(&old.to_object_meta(), &new.to_object_meta()))
    }

    /// Returns a predicate that passes updates for which `test(old, new)` is true, where `old` and
    /// `new` are the metadata before and after the update.
    pub fn on(test: impl Fn(&Meta<'_>, &Meta<'_>) -> bool + Send + Sync + 'static) -> Self {
        Self::change(move |old, new| test(&old.meta(), &new.meta()))
    }

    /// Returns a predicate that passes updates for which `test(old, new)` is true, where `old` and
    /// `new` are the objects before and after the update. An object that cannot be decoded passes,
    /// so that the reconcile reports the error.
    pub fn typed<K: Object>(test: impl Fn(&K, &K) -> bool + Send + Sync + 'static) -> Self {
        Self::change(move |old, new| match (old.get::<K>(), new.get::<K>()) {
            (Ok(old), Ok(new)) => test(&old, &new),
            _ => true,
        })
    }

    /// Returns a predicate that passes events for which `test` is true. `test` receives the
    /// metadata of the object after the event; for a delete event, the last known metadata.
    pub fn object(test: impl Fn(&Meta<'_>) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(Node::Object(Box::new(move |object| {
            test(&object.meta())
        }))))
    }

    /// Returns a predicate that passes events for which `test` is true. The objects in the event
    /// are as the cache stores them.
    pub fn events(test: impl Fn(&Event<'_>) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(Node::Event(Box::new(test))))
    }

    fn change(test: impl Fn(&Stored, &Stored) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(Node::Change(Box::new(test))))
    }

    /// Returns a predicate that passes the events that at least one of the two predicates passes.
    pub fn or(self, other: Self) -> Self {
        Self(Arc::new(Node::Or(self, other)))
    }

    /// Returns a predicate that passes the events that both predicates pass.
    pub fn and(self, other: Self) -> Self {
        Self(Arc::new(Node::And(self, other)))
    }

    /// Adds this predicate to `filter`: an event must then pass the predicates in `filter` and this
    /// one.
    pub(crate) fn and_then(self, filter: &mut Option<Self>) {
        *filter = Some(match filter.take() {
            Some(before) => before.and(self),
            None => self,
        });
    }

    /// Reports whether the predicate passes `event`. `is_whole` is false for an update that stands
    /// for several coalesced changes.
    pub(crate) fn passes(&self, event: &Event<'_>, is_whole: bool) -> bool {
        self.holds(event, is_whole, false)
    }

    fn holds(&self, event: &Event<'_>, is_whole: bool, negated: bool) -> bool {
        let holds = |predicate: &Self| predicate.holds(event, is_whole, negated);
        match &*self.0 {
            Node::Change(test) => match event {
                Event::Update(update) => {
                    let (old, new) = (update.old, update.new);
                    !is_whole || begins_deletion(old, new) || test(old, new) != negated
                }
                _ => !negated,
            },
            Node::Object(test) => test(event.object()) != negated,
            Node::Event(test) => test(event) != negated,
            // De Morgan: negation is pushed down to the tests.
            Node::And(one, other) if negated => holds(one) || holds(other),
            Node::Or(one, other) if negated => holds(one) && holds(other),
            Node::And(one, other) => holds(one) && holds(other),
            Node::Or(one, other) => holds(one) || holds(other),
            Node::Not(inner) => inner.holds(event, is_whole, !negated),
        }
    }
}

/// `!predicate` passes the events that `predicate` does not pass.
impl std::ops::Not for Predicate {
    type Output = Self;

    fn not(self) -> Self {
        Self(Arc::new(Node::Not(self)))
    }
}

/// Reports whether an update starts the deletion of an object: it sets the deletion timestamp.
fn begins_deletion(old: &Stored, new: &Stored) -> bool {
    new.meta().is_deleting() && !old.meta().is_deleting()
}

/// Returns a predicate that passes create events: the object is new, or existed when the operator
/// started.
pub fn created() -> Predicate {
    Predicate::events(|event| matches!(event, Event::Create(_)))
}

/// Returns a predicate that passes updates, including the update that starts the deletion of an
/// object.
pub fn updated() -> Predicate {
    Predicate::events(|event| matches!(event, Event::Update(_)))
}

/// Returns a predicate that passes delete events: the object no longer exists.
pub fn deleted() -> Predicate {
    Predicate::events(|event| matches!(event, Event::Delete(_)))
}

/// Returns a predicate that passes generic events: a trigger outside the cluster named the object.
pub fn generic() -> Predicate {
    Predicate::events(|event| matches!(event, Event::Generic(_)))
}

/// Returns a predicate that passes updates that change `metadata.generation`, which means changes
/// of the spec. Updates of kinds without a generation, such as ConfigMap, always pass.
pub fn generation_changed() -> Predicate {
    Predicate::on(|old, new| new.generation().is_none() || old.generation() != new.generation())
}

/// Returns a predicate that passes every change of an object, but not the unchanged objects of a
/// resync.
pub fn resource_version_changed() -> Predicate {
    Predicate::on(|old, new| old.resource_version() != new.resource_version())
}

/// Returns a predicate that passes updates that change the labels.
pub fn labels_changed() -> Predicate {
    Predicate::on(|old, new| old.labels() != new.labels())
}

/// Returns a predicate that passes updates that change the annotations.
pub fn annotations_changed() -> Predicate {
    Predicate::on(|old, new| old.annotations() != new.annotations())
}

/// Returns a predicate that passes events of objects whose labels match `selector`, such as
/// `app=web,tier in (a,b)`. For an update, the labels after the update are tested;
/// [`leaves_selection`] passes updates after which the labels no longer match.
///
/// # Errors
/// When `selector` is not a valid label selector.
pub fn label_selector(selector: &str) -> Result<Predicate, SelectorError> {
    let selector = LabelSelector::parse(selector)?;
    Ok(Predicate::object(move |meta| matches(&selector, meta)))
}

/// Returns a predicate that passes updates by which an object leaves a selection: the labels
/// matched `selector` before the update and no longer match. Use it to clean up after such objects.
///
/// # Examples
/// ```
/// # use opkit_controller as opkit;
/// use opkit::predicate::{label_selector, leaves_selection};
/// let web = "app=web";
/// let was_or_is_web = label_selector(web)?.or(leaves_selection(web)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// When `selector` is not a valid label selector.
pub fn leaves_selection(selector: &str) -> Result<Predicate, SelectorError> {
    let selector = LabelSelector::parse(selector)?;
    Ok(Predicate::events(move |event| match event {
        Event::Update(update) => {
            matches(&selector, &update.old.meta()) && !matches(&selector, &update.new.meta())
        }
        _ => false,
    }))
}

/// Reports whether the labels of an object match `selector`.
fn matches(selector: &LabelSelector, meta: &Meta<'_>) -> bool {
    let mut requirements = selector.requirements().iter();
    requirements.all(|requirement| requirement.matches(meta.label(&requirement.key).as_deref()))
}

#[cfg(test)]
mod tests;
