//! A source as the builder declares it.

use std::fmt;
use std::sync::Arc;

use opkit_client::ObjectKey;

use super::event::Event;
use super::predicate::Predicate;
use crate::reads::{MapContext, Watched};

/// A map from an event to the objects to reconcile.
pub(crate) type Map = dyn Fn(&Event<'_>, &MapContext) -> Vec<ObjectKey> + Send + Sync;

/// Why a kind is watched: what follows for permissions, and for what may be read and pruned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It is the kind that is reconciled.
    Primary,
    /// Its objects are children.
    Owned,
    /// Its objects are children without owner references.
    Unowned,
    /// Its objects are named by those of the kind.
    Referenced,
    /// Anything else.
    Watched,
}

/// A kind whose events lead to reconciles: of the object itself, if it is the kind that is
/// reconciled, and of what the maps return.
pub(crate) struct SourceSpec {
    pub(crate) watched: Watched,
    pub(crate) role: Role,
    pub(crate) maps: Vec<Arc<Map>>,
    pub(crate) predicate: Option<Predicate>,
}

impl fmt::Debug for SourceSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceSpec")
            .field("kind", &self.watched.kind)
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}
