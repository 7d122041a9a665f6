//! Kinds and states that a server of the operator reads.

use opkit_client::{Kind, Object};

use super::{Reads, StateType};
use crate::reads::Watched;

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
