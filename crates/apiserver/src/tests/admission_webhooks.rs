//! Admission webhooks that programs in the same process serve.

use std::sync::Arc;

use bytes::Bytes;
use futures::FutureExt;
use http::{Request, Response};
use http_body_util::Full;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::Api;

/// Lets `verdict` decide on requests as the Service `hooks/webhook`.
fn serve(api: &Api, verdict: impl Fn(&str, &Value) -> Value + Send + Sync + 'static) {
    let verdict = Arc::new(verdict);
    let service = move |request: Request<Bytes>| {
        let verdict = verdict.clone();
        async move {
            let review: Value = serde_json::from_slice(request.body()).unwrap();
            let mut response = verdict(request.uri().path(), &review["request"]);
            response["uid"] = review["request"]["uid"].clone();
            let review = json!({
                "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                "response": response,
            });
            Response::new(Bytes::from(review.to_string()))
        }
        .boxed()
    };
    api.server
        .serve_service("hooks", "webhook", Some(Arc::new(service)));
}

/// Registers a webhook of the Service for creates and updates of ConfigMaps.
async fn register(api: &Api, kind: &str, fields: Value) {
    let mut webhook = json!({
        "name": "one.example.com",
        "clientConfig": {"service": {"namespace": "hooks", "name": "webhook", "path": "/one"}},
        "rules": [{
            "operations": ["CREATE", "UPDATE", "DELETE"], "apiGroups": [""], "apiVersions": ["v1"],
            "resources": ["configmaps", "configmaps/*"],
        }],
        "sideEffects": "None", "admissionReviewVersions": ["v1"],
    });
    for (field, value) in fields.as_object().unwrap() {
        webhook[field] = value.clone();
    }
    let plural = format!("{}s", kind.to_lowercase());
    let path = format!("/apis/admissionregistration.k8s.io/v1/{plural}");
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
        "metadata": {"name": "webhooks"}, "webhooks": [webhook],
    });
    let (code, stored) = api.post(&path, configuration).await;
    assert_eq!(code, 201, "{stored}");
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
}

#[tokio::test(start_paused = true)]
async fn a_service_in_the_process_is_called_without_a_socket() {
    let api = Api::start();
    serve(&api, |path, request| {
        assert_eq!(path, "/one");
        match request["name"].as_str() {
            Some("refused") => json!({"allowed": false, "status": {"message": "no"}}),
            _ => json!({"allowed": true, "warnings": ["careful"]}),
        }
    });
    register(&api, "ValidatingWebhookConfiguration", json!({})).await;
    let (code, refused) = api.post(MAPS, map("refused")).await;
    assert_eq!(code, 400);
    assert_eq!(
        refused["message"],
        "admission webhook \"one.example.com\" denied the request: no"
    );
    let request = Request::post(MAPS)
        .header("content-type", "application/json")
        .body(Full::new(Bytes::from(map("allowed").to_string())))
        .unwrap();
    let response = api.server.service().oneshot(request).await.unwrap();
    assert_eq!(response.status(), 201);
    assert_eq!(response.headers()["warning"], "299 - \"careful\"");
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_cannot_be_called_is_counted() {
    let api = Api::start();
    let ignored = json!({"failurePolicy": "Ignore"});
    register(&api, "ValidatingWebhookConfiguration", ignored).await;
    // No program serves the Service.
    assert_eq!(api.post(MAPS, map("one")).await.0, 201);
    register(&api, "MutatingWebhookConfiguration", json!({})).await;
    let (code, refused) = api.post(MAPS, map("two")).await;
    assert_eq!(code, 500);
    let message = refused["message"].as_str().unwrap();
    let wanted = "Internal error occurred: failed calling webhook \"one.example.com\": failed to \
                  call webhook: Post \"https://webhook.hooks.svc:443/one?timeout=10s\": service \
                  \"webhook\" not found";
    assert_eq!(message, wanted);
    let (_, metrics) = api.get("/metrics").await;
    let metrics = metrics.as_str().unwrap();
    for line in [
        "apiserver_admission_webhook_fail_open_count{name=\"one.example.com\",type=\"validating\"} 1",
        "apiserver_admission_webhook_rejection_count{name=\"one.example.com\",type=\"admit\",\
         operation=\"CREATE\",error_type=\"calling_webhook_error\",rejection_code=\"503\"} 1",
        "apiserver_admission_webhook_request_total{name=\"one.example.com\",type=\"validating\",\
         operation=\"CREATE\",code=\"503\",rejected=\"false\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
}

#[tokio::test(start_paused = true)]
async fn webhooks_are_not_called_for_the_objects_that_configure_them() {
    let api = Api::start();
    serve(&api, |_, request| panic!("called for {request}"));
    let rule = json!([{
        "operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"],
        "resources": ["validatingwebhookconfigurations", "mutatingwebhookconfigurations"],
    }]);
    register(
        &api,
        "ValidatingWebhookConfiguration",
        json!({"rules": rule}),
    )
    .await;
    register(&api, "MutatingWebhookConfiguration", json!({"rules": rule})).await;
    let path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/webhooks";
    assert_eq!(api.delete(path, json!({})).await.0, 200);
}

#[tokio::test(start_paused = true)]
async fn a_webhook_that_hangs_ends_with_the_time_of_the_request() {
    let api = Api::start();
    let hang = |_: Request<Bytes>| futures::future::pending().boxed();
    api.server
        .serve_service("hooks", "webhook", Some(Arc::new(hang)));
    register(&api, "ValidatingWebhookConfiguration", json!({})).await;
    let (code, refused) = api.post(MAPS, map("one")).await;
    assert_eq!(code, 500);
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.ends_with("?timeout=10s\": context deadline exceeded"),
        "{message}"
    );
    let (_, refused) = api.post(&format!("{MAPS}?timeout=3s"), map("one")).await;
    let message = refused["message"].as_str().unwrap();
    assert!(
        message.ends_with("?timeout=3s\": context deadline exceeded"),
        "{message}"
    );
}
