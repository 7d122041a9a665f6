//! What one run of a reconciler has done so far.

use std::any::TypeId;
use std::collections::HashSet;

use opkit_client::ObjectKey;
use parking_lot::Mutex;

/// The memory of one run. It ends with the run, so a run that ends early leaves nothing behind.
#[derive(Debug, Default)]
pub(crate) struct Run {
    /// Children that were applied, or should have been: an application that failed is no reason to
    /// delete the child.
    applied: Mutex<HashSet<(TypeId, ObjectKey)>>,
}

impl Run {
    /// Notes that the run applies a child.
    pub(crate) fn applied(&self, kind: TypeId, key: &ObjectKey) {
        self.applied.lock().insert((kind, key.clone()));
    }

    /// Whether the run applied the child.
    pub(crate) fn has_applied(&self, kind: TypeId, key: &ObjectKey) -> bool {
        self.applied.lock().contains(&(kind, key.clone()))
    }
}
