//! Declaration of a source, as the builder creates it.

use std::fmt;
use std::sync::Arc;

use opkit_client::ObjectKey;

use super::event::Event;
use super::predicate::Predicate;
use crate::reads::{MapContext, Watched};

/// A function from an event to the objects to reconcile.
pub(crate) type Map = dyn Fn(&Event<'_>, &MapContext) -> Vec<ObjectKey> + Send + Sync;

/// Role of a watched kind. Permissions, reads and pruning depend on the role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The reconciled kind.
    Primary,
    /// Kind of children with owner references.
    Owned,
    /// Kind of children with owner references that the controller only creates.
    CreatedOnce,
    /// Kind of children without owner references.
    Unowned,
    /// Kind of objects that reconciled objects refer to.
    Referenced,
    /// Any other kind that the controller watches.
    Watched,
}

/// A kind whose events cause reconciles: of the object in the event, if it is of the reconciled
/// kind, and of the objects that the map functions return.
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
