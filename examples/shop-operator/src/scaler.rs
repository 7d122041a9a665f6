//! The second controller: as many web servers as the shop needs now.

use opkit::k8s_openapi::api::apps::v1::Deployment;
use opkit::kube::Api;
use opkit::kube::api::{Patch, PatchParams};
use opkit::prelude::*;
use opkit::serde_json::json;

use crate::Shop;

/// Scales the web servers of one shop through `deployments/scale`, which the other controller
/// leaves alone, and keeps the condition `Scaled`.
pub(crate) async fn scale(shop: Arc<Shop>, cx: Context) -> Result<Action> {
    // Children, not whatever has the name: a stranger's deployment is not scaled.
    let Some(web) = cx.children::<Deployment>()?.into_iter().next() else {
        return Ok(Action::await_change());
    };
    let wanted = shop.spec.replicas * if shop.spec.sale { 2 } else { 1 };
    if web.spec.as_ref().and_then(|spec| spec.replicas) != Some(wanted) {
        let namespace = shop.namespace().unwrap_or_default();
        let api: Api<Deployment> = Api::namespaced(cx.client(), &namespace);
        let patch = Patch::Merge(json!({"spec": {"replicas": wanted}}));
        let manager = PatchParams::apply(cx.field_manager());
        api.patch_scale(&web.name_any(), &manager, &patch).await?;
    }
    let ready = web.ready_replicas();
    cx.update_status(&shop, |status| {
        status.ready_replicas = ready;
        status.conditions.set(
            Condition::new("Scaled", ready == wanted)
                .reason("WebServers")
                .message(format!("{ready} of {wanted}")),
        );
    })
    .await?;
    Ok(Action::await_change())
}
