//! The second controller: keeps the number of web servers that the shop needs at present.

use opkit::client::{Kind, ScaleClient, WriteOptions};
use opkit::k8s_openapi::api::apps::v1::Deployment;
use opkit::prelude::*;

use crate::Shop;

/// Scales the web servers of one shop through `deployments/scale`, which the other controller does
/// not write, and keeps the condition `Scaled`.
pub(crate) async fn scale(shop: Arc<Shop>, cx: Context) -> Result<Action> {
    // Only children are scaled, not a Deployment of another owner with the same name.
    let Some(web) = cx.children::<Deployment>()?.into_iter().next() else {
        return Ok(Action::await_change());
    };
    let wanted = shop.spec.replicas * if shop.spec.sale { 2 } else { 1 };
    if web.spec.as_ref().and_then(|spec| spec.replicas) != Some(wanted) {
        let options = WriteOptions::for_manager(cx.field_manager());
        let scales = ScaleClient::new(cx.client(), Kind::of::<Deployment>()).with(options);
        scales.set(ObjectKey::of(&web.metadata), wanted).await?;
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
