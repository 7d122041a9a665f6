//! Helpers of the tests: a router without an operator, and the bodies of its requests.

mod controller_runtime;
mod fuzz;
mod hostile;

use bytes::Bytes;
use http::{Request, Response};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::{Value, json};

use crate::handler::Services;
use crate::{Admission, AnyWebhook, Webhook, WebhookRouter, WebhookSet};

/// Path of the mutating webhook of ConfigMaps.
pub(crate) const MUTATE: &str = "/mutate--v1-configmap";
/// Path of the validating webhook of ConfigMaps.
pub(crate) const VALIDATE: &str = "/validate--v1-configmap";

/// Returns a router of admission webhooks, without caches and states.
pub(crate) fn router(webhooks: impl IntoIterator<Item = AnyWebhook>) -> WebhookRouter {
    let mut set = WebhookSet::default();
    set.admission.extend(webhooks);
    set.check().unwrap();
    WebhookRouter::with_services(set, Services::default())
}

/// Returns a router of one webhook.
pub(crate) fn one(webhook: Webhook<ConfigMap>) -> WebhookRouter {
    router([webhook.into()])
}

/// Returns the review of a request about a ConfigMap.
pub(crate) fn review(operation: &str, object: Value, old: Value) -> Value {
    let name = |object: &Value| object.pointer("/metadata/name").cloned();
    let name = name(&object).or_else(|| name(&old)).unwrap_or_default();
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
            "resource": {"group": "", "version": "v1", "resource": "configmaps"},
            "requestKind": {"group": "", "version": "v1", "kind": "ConfigMap"},
            "name": name, "namespace": "shops", "operation": operation,
            "userInfo": {"username": "jane", "groups": ["system:authenticated"]},
            "object": object, "oldObject": old, "dryRun": false,
            "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
        },
    })
}

/// Sends a body, and returns the response.
pub(crate) async fn send(
    router: &WebhookRouter,
    path: &str,
    body: impl Into<Bytes>,
) -> Response<Bytes> {
    let request = Request::post(format!("{path}?timeout=5s"))
        .header("content-type", "application/json")
        .body(body.into())
        .unwrap();
    router.respond(request).await
}

/// Sends a review, and returns the review of the response.
pub(crate) async fn call(router: &WebhookRouter, path: &str, review: &Value) -> Value {
    let response = send(router, path, review.to_string()).await;
    assert_eq!(response.status(), 200);
    serde_json::from_slice(response.body()).unwrap()
}

/// Returns the operations of the patch in a response.
pub(crate) fn patch_of(review: &Value) -> Value {
    use base64::Engine;
    let patch = review["response"]["patch"].as_str().unwrap();
    let patch = base64::prelude::BASE64_STANDARD.decode(patch).unwrap();
    serde_json::from_slice(&patch).unwrap()
}

pub(crate) fn config_map(data: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "one", "namespace": "shops"}, "data": data,
    })
}

/// Returns a webhook that refuses a ConfigMap with the key `bad`, and adds the key `default`.
pub(crate) fn webhook() -> Webhook<ConfigMap> {
    Webhook::new()
        .defaulting(|map: &mut ConfigMap| {
            let data = map.data.get_or_insert_default();
            data.entry("default".to_owned())
                .or_insert_with(|| "1".to_owned());
        })
        .validating(|map, _| {
            let is_bad = map.data.iter().flatten().any(|(key, _)| key == "bad");
            Admission::allowed_if(!is_bad, "it is bad")
        })
}
