//! What follows from a write that is stored.

use std::sync::Arc;

use serde_json::Value;

use super::{Registry, rules};
use crate::kinds::Kind;
use crate::object;

impl Registry {
    /// After an object was stored: a CRD adds its kinds.
    pub(super) fn after_write(&self, kind: &Kind, stored: Arc<Value>) -> Arc<Value> {
        if rules::is_crd(kind) && !object::is_deleting(&stored) {
            let established = self.establish(&stored);
            if let Err(error) = established {
                tracing::error!(crd = object::name(&stored), ?error, "cannot establish");
            }
        }
        stored
    }

    /// After an object was removed: a CRD takes its kinds with it.
    pub(super) fn after_delete(&self, kind: &Kind, removed: &Value) {
        if rules::is_crd(kind) {
            let group = object::text(removed, &["spec", "group"]);
            self.catalog
                .remove(group, object::text(removed, &["spec", "names", "plural"]));
        }
    }
}
