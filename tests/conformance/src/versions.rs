//! Several versions of a kind: the CRD, and objects that clients write and read in any version.

mod declared;
mod migration;
mod rover;
mod served;

use std::sync::LazyLock;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, WebhookClientConfig,
};
use kube::core::{ApiResource, DynamicObject, GroupVersionKind};
use kube::{Api, ResourceExt};
use opkit::apimachinery::conversion;
use opkit::prelude::*;
use opkit::testing::{Capability, TestError};
use serde_json::json;

use self::rover::Rover;
use crate::admission::server::{Reply, WebhookServer};

fn operator() -> Operator {
    Operator::new("rover-operator").crd::<Rover>()
}

/// Returns a client for untyped objects of one version.
fn client(plane: &ControlPlane, version: &str, kind: &str) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk("fleet.opkit.dev", version, kind);
    let plural = format!("{}s", kind.to_lowercase());
    let resource = ApiResource::from_gvk_with_plural(&gvk, &plural);
    Api::default_namespaced_with(plane.client(), &resource)
}

/// Starts an operator, which serves the conversions of its kinds. On a control plane of other
/// processes, an HTTPS server of the test process serves them.
async fn start(plane: &ControlPlane, operator: Operator) -> opkit::Result {
    if plane.require(Capability::OwnServer).is_ok() {
        return plane.start(operator).await;
    }
    if std::env::var("OPKIT_CONTROL_PLANE").is_ok_and(|plane| plane == "cluster") {
        let reason = "a cluster cannot call a webhook of this process".to_owned();
        return Err(TestError::Skipped { reason }.into());
    }
    let (url, bundle) = &*CONVERSIONS;
    for mut crd in operator.crds() {
        if let Some(webhook) = crd
            .spec
            .conversion
            .as_mut()
            .and_then(|it| it.webhook.as_mut())
        {
            webhook.client_config = Some(WebhookClientConfig {
                url: Some(url.clone()),
                ca_bundle: Some(serde_json::from_value(json!(bundle))?),
                service: None,
            });
        }
        let name = crd.name_any();
        plane.apply(crd).await?;
        plane.eventually(name.as_str(), is_established).await?;
    }
    Ok(())
}

fn is_established(crd: &CustomResourceDefinition) -> bool {
    let conditions = crd.status.iter().flat_map(|status| &status.conditions);
    let mut conditions = conditions.flatten();
    conditions.any(|it| it.type_ == "Established" && it.status == "True")
}

/// URL and certificate authority of the server that converts objects, which all tests share, since
/// a CRD has one webhook. The server runs until the process ends.
static CONVERSIONS: LazyLock<(String, String)> = LazyLock::new(|| {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build();
        runtime.unwrap().block_on(async {
            let mut kinds = operator().versions().to_vec();
            kinds.extend_from_slice(migration::operator().versions());
            let server = WebhookServer::start(move |_, request| {
                let review = json!({
                    "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
                    "request": request,
                });
                let review = conversion::review(&kinds, review.to_string().as_bytes());
                Reply::Body(review.status, review.body)
            });
            let server = server.await;
            let _ = sender.send((server.url("/convert"), server.ca_bundle.clone()));
            std::future::pending::<()>().await;
        });
    });
    receiver.recv().unwrap()
});
