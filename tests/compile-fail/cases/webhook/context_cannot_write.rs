//! A webhook's function has no way to write: the context only reads.
#![allow(dead_code)]
use opkit::k8s_openapi::api::core::v1::ConfigMap;
use opkit::prelude::*;

async fn check(request: AdmissionRequest<ConfigMap>, cx: WebhookContext) -> Result<Admission> {
    let map = request.object().clone();
    cx.apply(map.clone()).await?;
    cx.delete(&map).await?;
    cx.update_status(&map, |_| ()).await?;
    cx.event(&map, Normal, "Checked", "text").await;
    let client = cx.client();
    Ok(Admission::allowed())
}

fn webhook() -> Webhook<ConfigMap> {
    Webhook::new().validating_with(check)
}
