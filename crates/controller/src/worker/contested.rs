//! Looks up the other client that reverts a field which a reconcile writes.

use std::time::Duration;

use opkit_client::ObjectKey;

use super::RunningController;
use crate::object::Request;
use crate::object::owner::Head;
use crate::record::manager_of;

/// Timeout of the request that looks up the field manager of the other client. The timeout is
/// short, because the lookup serves only diagnosis and delays the reconcile.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(5);

impl RunningController {
    /// If another client seems to revert a field of the object or of a child, reads the field
    /// manager of that client from the server. Must be called before the reconcile overwrites the
    /// field, because afterwards the field belongs to this controller.
    pub(super) async fn look_up_other_manager(&self, request: &Request) {
        let (log, identity) = (&self.sources.log, self.identity());
        let Some(contested) = log.contested(&identity.name, request) else {
            return;
        };
        let sources = self.sources.sources.iter();
        let mut kinds = sources.map(|source| &source.watched.kind);
        let (Some(kind), Some(cluster)) = (
            kinds.find(|watched| watched.kind == contested.kind),
            self.cluster(request),
        ) else {
            return;
        };
        let namespace = request.namespace.as_deref().filter(|_| kind.namespaced);
        let key = ObjectKey::from(contested.name).or_namespace(namespace);
        let live = cluster.cluster.client.get(kind, &key);
        let Ok(Ok(live)) = tokio::time::timeout(LOOKUP_TIMEOUT, live).await else {
            return;
        };
        let head: Head = serde_json::from_slice(&live).unwrap_or_default();
        let entries = head.metadata.managed_fields.unwrap_or_default();
        if let Some(manager) = manager_of(&entries, &contested.field, &identity.field_manager) {
            log.set_other_manager(&identity.name, request, manager);
        }
    }
}
