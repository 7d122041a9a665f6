//! Kinds and states that are read beside controllers: by runnables, states and servers.

use opkit_client::{Kind, Object};

use super::{Reads, StateType};
use crate::reads::Watched;

/// Kinds of an operator that are only read, in the type parameter of `Operator::kinds`: a tuple of
/// one to eight kinds.
///
/// # Examples
/// ```
/// use k8s_openapi::api::core::v1::{ConfigMap, Service};
/// use opkit_controller::{Kinds, ReadDeclarations};
///
/// fn count<K: Kinds>() -> usize {
///     let mut reads = ReadDeclarations::default();
///     reads.all::<K>();
///     reads.kinds().count()
/// }
/// assert_eq!(count::<(ConfigMap, Service)>(), 2);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tuple of kinds",
    label = "not a tuple of one to eight kinds",
    note = "write `.kinds::<(Service, ConfigMap)>()`, and for one kind `.kinds::<(Service,)>()`"
)]
pub trait Kinds {
    /// Adds the kinds to `reads`.
    #[doc(hidden)]
    fn declare(reads: &mut ReadDeclarations);
}

macro_rules! tuples {
    ($($first:ident $($rest:ident)*)?) => {$(
        impl<$first: Object, $($rest: Object),*> Kinds for ($first, $($rest,)*) {
            fn declare(reads: &mut ReadDeclarations) {
                reads.kind::<$first>();
                $(reads.kind::<$rest>();)*
            }
        }
        tuples!($($rest)*);
    )?};
}

tuples!(A B C D E F G H);

/// Kinds that a server of the operator, such as its webhooks, reads from the cache, and the states
/// that it reads; see [`Manager::reads`](crate::Manager::reads).
#[derive(Debug, Clone, Default)]
pub struct ReadDeclarations {
    pub(crate) watched: Vec<Watched>,
    pub(crate) states: Vec<StateType>,
}

impl ReadDeclarations {
    /// Declares that objects of kind `K` are read from the cache.
    pub fn kind<K: Object>(&mut self) {
        self.watched.push(Watched::typed::<K>(false));
    }

    /// Declares that objects of these kinds are read from the cache.
    pub fn all<K: Kinds>(&mut self) {
        K::declare(self);
    }

    /// Declares that the state of type `S` is read.
    pub fn state<S: Send + Sync + 'static>(&mut self) {
        self.states.push(StateType::of::<S>());
    }

    /// Adds the declarations of another server.
    pub fn extend(&mut self, other: &Self) {
        self.watched.extend(other.watched.iter().cloned());
        self.states.extend(&other.states);
    }

    /// Returns the kinds that are read from the cache.
    pub fn kinds(&self) -> impl Iterator<Item = &Kind> {
        self.watched.iter().map(|watched| &watched.kind)
    }

    /// Waits until the caches of the declared kinds have received their initial lists.
    ///
    /// # Cancel safety
    /// Dropping the future has no effect; the method can be called again.
    pub async fn wait_for_sync(&self, reads: &Reads) {
        for informer in self.watched.iter().filter_map(|it| reads.informer(it)) {
            informer.wait_for_sync().await;
        }
    }
}
