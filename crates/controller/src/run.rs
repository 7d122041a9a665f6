//! What one run of a reconciler has done so far.

use std::collections::HashSet;

use opkit_client::{Kind, ObjectKey};
use parking_lot::Mutex;

/// The memory of one run. It ends with the run, so a run that ends early leaves nothing behind.
#[derive(Debug, Default)]
pub(crate) struct Run {
    /// Children that were applied, or should have been: an application that failed is no reason to
    /// delete the child.
    applied: Mutex<HashSet<Child>>,
}

/// Group, kind and key of a child. Its version and the Rust type it was applied as do not matter.
type Child = (String, String, ObjectKey);

fn child(kind: &Kind, key: &ObjectKey) -> Child {
    (kind.group.clone(), kind.kind.clone(), key.clone())
}

impl Run {
    /// Notes that the run applies a child.
    pub(crate) fn applied(&self, kind: &Kind, key: &ObjectKey) {
        self.applied.lock().insert(child(kind, key));
    }

    /// Whether the run applied the child.
    pub(crate) fn has_applied(&self, kind: &Kind, key: &ObjectKey) -> bool {
        self.applied.lock().contains(&child(kind, key))
    }
}
