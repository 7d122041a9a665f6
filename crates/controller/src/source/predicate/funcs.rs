//! A predicate of four functions, one for each type of event.

use std::fmt;

use opkit_client::Object;

use super::Predicate;
use crate::source::event::{CreateEvent, DeleteEvent, Event, GenericEvent, UpdateEvent};

type CreateTest<K> = dyn Fn(&CreateEvent<'_, K>) -> bool + Send + Sync;
type UpdateTest<K> = dyn Fn(&UpdateEvent<'_, K>) -> bool + Send + Sync;
type DeleteTest<K> = dyn Fn(&DeleteEvent<'_, K>) -> bool + Send + Sync;
type GenericTest<K> = dyn Fn(&GenericEvent<'_, K>) -> bool + Send + Sync;

/// A predicate of four functions, one for each type of event, like controller-runtime's
/// `predicate.Funcs`. The functions receive the decoded objects. An event whose function is not set
/// passes. An object that cannot be decoded passes, so that the reconcile reports the error.
///
/// The update that starts the deletion of an object has no special rule: it passes only if the
/// function for updates returns true. If it does not pass, the finalizer of the object is handled
/// late.
///
/// # Examples
/// ```
/// # use opkit_controller as opkit;
/// use k8s_openapi::api::core::v1::Pod;
/// use opkit::predicate::Funcs;
///
/// let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
/// let changes_of_phase = Funcs::new()
///     .create(|event| !event.is_initial)
///     .update(move |event| phase(event.old) != phase(event.new))
///     .delete(|_| false);
/// ```
pub struct Funcs<K> {
    create: Box<CreateTest<K>>,
    update: Box<UpdateTest<K>>,
    delete: Box<DeleteTest<K>>,
    generic: Box<GenericTest<K>>,
}

impl<K> fmt::Debug for Funcs<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Funcs").finish_non_exhaustive()
    }
}

impl<K> Default for Funcs<K> {
    fn default() -> Self {
        Self {
            create: Box::new(|_| true),
            update: Box::new(|_| true),
            delete: Box::new(|_| true),
            generic: Box::new(|_| true),
        }
    }
}

impl<K> Funcs<K> {
    /// Returns a predicate that passes all events.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the test for creates.
    pub fn create(
        mut self,
        test: impl Fn(&CreateEvent<'_, K>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.create = Box::new(test);
        self
    }

    /// Sets the test for updates.
    pub fn update(
        mut self,
        test: impl Fn(&UpdateEvent<'_, K>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.update = Box::new(test);
        self
    }

    /// Sets the test for deletes.
    pub fn delete(
        mut self,
        test: impl Fn(&DeleteEvent<'_, K>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.delete = Box::new(test);
        self
    }

    /// Sets the test for generic events.
    pub fn generic(
        mut self,
        test: impl Fn(&GenericEvent<'_, K>) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.generic = Box::new(test);
        self
    }

    fn passes(&self, event: &Event<'_, K>) -> bool {
        match event {
            Event::Create(event) => (self.create)(event),
            Event::Update(event) => (self.update)(event),
            Event::Delete(event) => (self.delete)(event),
            Event::Generic(event) => (self.generic)(event),
        }
    }
}

impl<K: Object> From<Funcs<K>> for Predicate {
    fn from(funcs: Funcs<K>) -> Self {
        Self::events(move |event| {
            let passes = event.decoded(|stored| stored.get().ok(), |event| funcs.passes(event));
            passes.unwrap_or(true)
        })
    }
}
