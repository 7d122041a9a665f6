//! Actions after a committed write.

use serde_json::Value;

use super::{Registry, rules, services};
use crate::kinds::Kind;
use crate::object;
use crate::store::Committed;

impl Registry {
    /// Adds the kinds that a stored CRD defines to the catalog of served kinds. Does nothing for an
    /// object that is not a CRD.
    pub(super) async fn after_write(&self, kind: &Kind, stored: Committed) -> Committed {
        if rules::is_crd(kind) && !object::is_deleting(&stored) {
            // Boxed, because the status of the CRD is written in the same way.
            let established = Box::pin(self.establish(&stored)).await;
            if let Err(error) = established {
                tracing::error!(
                    crd = object::name(&stored),
                    ?error,
                    "cannot establish the CRD"
                );
            }
        }
        stored
    }

    /// Removes the kinds that a deleted CRD defines from the catalog of served kinds, and releases
    /// the addresses and ports of a deleted Service. Does nothing for other objects.
    pub(super) async fn after_delete(&self, kind: &Kind, removed: &Value) {
        if rules::is_crd(kind) {
            self.stop_serving(removed).await;
        }
        if services::is_service(kind) {
            self.release_service(removed);
        }
    }
}
