//! Webhooks that fail or respond as they should not.

use k8s_openapi::api::core::v1::ConfigMap;
use opkit::prelude::*;
use serde_json::{Value, json};

use super::server::{Reply, WebhookServer, allow, patch};
use super::{Registered, create};

/// Wrong responses, by the name of the object that gets them.
fn reply(name: &str) -> Reply {
    match name {
        "hang" => Reply::Hang,
        "close" => Reply::Close,
        "half" => Reply::Half,
        "garbage" => Reply::Body(200, b"garbage".to_vec()),
        "empty" => Reply::Body(200, Vec::new()),
        "no-kind" => Reply::Body(200, b"{}".to_vec()),
        "other-kind" => Reply::Body(200, br#"{"kind":"Pod","apiVersion":"v1"}"#.to_vec()),
        "no-response" => Reply::Body(
            200,
            br#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}"#.to_vec(),
        ),
        "other-version" => Reply::Body(
            200,
            br#"{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1","response":{"allowed":true}}"#
                .to_vec(),
        ),
        "failure" => Reply::Body(500, b"boom".to_vec()),
        "not-found" => Reply::Body(404, b"404 page not found".to_vec()),
        "redirect" => Reply::Body(302, Vec::new()),
        "uid" => Reply::Review(json!({"allowed": true, "uid": "another"})),
        "denied" => Reply::Review(json!({"allowed": false})),
        "explained" => Reply::Review(json!({
            "allowed": false, "status": {"message": "because", "code": 418, "reason": "Teapot"},
        })),
        "reason" => Reply::Review(json!({"allowed": false, "status": {"reason": "Teapot"}})),
        "success" => Reply::Review(json!({
            "allowed": false, "status": {"status": "Success", "code": 200, "message": "fine"},
        })),
        "patch-type-only" => Reply::Review(json!({"allowed": true, "patchType": "JSONPatch"})),
        "patch-only" => Reply::Review(json!({"allowed": true, "patch": "W10="})),
        "merge-patch" => {
            Reply::Review(json!({"allowed": true, "patch": "W10=", "patchType": "Merge"}))
        }
        "bad-patch" => Reply::Review(json!({
            "allowed": true, "patch": "bm8=", "patchType": "JSONPatch",
        })),
        "patch-nowhere" => patch(&json!([{"op": "remove", "path": "/data/nothing"}])),
        "patch-test" => patch(&json!([{"op": "test", "path": "/metadata/name", "value": "x"}])),
        "patch-type" => patch(&json!([{"op": "add", "path": "/data", "value": "text"}])),
        "patch-unknown" => patch(&json!([{"op": "add", "path": "/unknown", "value": 1}])),
        "patch-name" => patch(&json!([{
            "op": "replace", "path": "/metadata/name", "value": "renamed",
        }])),
        "patch-namespace" => patch(&json!([{
            "op": "add", "path": "/metadata/namespace", "value": "elsewhere",
        }])),
        "patch-kind" => patch(&json!([{"op": "replace", "path": "/kind", "value": "Secret"}])),
        "patch-uid" => patch(&json!([{"op": "add", "path": "/metadata/uid", "value": "mine"}])),
        "patch-label" => patch(&json!([{
            "op": "add", "path": "/metadata/labels", "value": {"a b": "c"},
        }])),
        "large" => patch(&json!([{
            "op": "add", "path": "/data", "value": {"text": "x".repeat(3 * 1024 * 1024)},
        }])),
        _ => allow(),
    }
}

/// Returns the outcome of a create as text: code, reason and message, or the result.
async fn outcome(plane: &ControlPlane, server: &WebhookServer, name: &str) -> String {
    match create(plane, name).await {
        Ok(created) => format!("created {}", summary(&created)),
        Err(status) => {
            let uid = server.last_uid();
            let message = status.message.replace(&server.url(""), "https://webhook");
            let message = message
                .replace(&uid, "UID")
                .replace(plane.namespace(), "NAMESPACE");
            format!("{} {}: {message}", status.code, status.reason)
        }
    }
}

fn summary(created: &ConfigMap) -> Value {
    json!({
        "name": created.metadata.name, "labels": created.metadata.labels, "data": created.data,
        "uid": created.metadata.uid.as_ref().is_some_and(|uid| uid == "mine"),
    })
}

/// The outcomes on Kubernetes 1.36.3: the sort of webhook, its failure policy, the object, and the
/// result of its creation.
const OUTCOMES: &str = include_str!("lies.txt");

/// Registers a webhook that lies, creates an object for each lie, and compares the outcomes with
/// those of Kubernetes.
async fn check(plane: &ControlPlane, sort: &str, policy: &str) -> opkit::Result {
    plane.require(Capability::Admission)?;
    let server = WebhookServer::start(|_, request| reply(request["name"].as_str().unwrap_or("")));
    let server = server.await;
    let fields = json!({"failurePolicy": policy, "timeoutSeconds": 5});
    let webhook = [("/lies", fields)];
    let registered = match sort {
        "mutating" => Registered::create(plane, &server, &webhook, &[]).await?,
        _ => Registered::create(plane, &server, &[], &webhook).await?,
    };
    let prefix = format!("{sort} {policy} ");
    let lies = OUTCOMES
        .lines()
        .filter_map(|line| line.strip_prefix(&prefix));
    let mut different = Vec::new();
    for (name, wanted) in lies.filter_map(|line| line.split_once(": ")) {
        let found = outcome(plane, &server, name).await;
        if found != wanted {
            different.push(format!("{name}\n   wanted {wanted}\n   found  {found}"));
        }
    }
    registered.remove().await?;
    assert!(different.is_empty(), "{}", different.join("\n"));
    Ok(())
}

#[opkit::test]
async fn a_mutating_webhook_that_lies_fails_the_request(plane: ControlPlane) -> opkit::Result {
    check(&plane, "mutating", "Fail").await
}

#[opkit::test]
async fn a_validating_webhook_that_lies_fails_the_request(plane: ControlPlane) -> opkit::Result {
    check(&plane, "validating", "Fail").await
}

#[opkit::test]
async fn a_mutating_webhook_that_lies_can_be_ignored(plane: ControlPlane) -> opkit::Result {
    check(&plane, "mutating", "Ignore").await
}

#[opkit::test]
async fn a_validating_webhook_that_lies_can_be_ignored(plane: ControlPlane) -> opkit::Result {
    check(&plane, "validating", "Ignore").await
}

/// A webhook with a certificate of another authority, and one at which nothing listens.
#[opkit::test]
async fn a_webhook_must_be_reached_with_its_certificate(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::Admission)?;
    let server = WebhookServer::start(|_, _| allow()).await;
    let other = WebhookServer::start(|_, _| allow()).await;
    let client_config = json!({"url": server.url("/ca"), "caBundle": other.ca_bundle});
    let webhook = [("/ca", json!({"clientConfig": client_config}))];
    let registered = Registered::create(&plane, &server, &[], &webhook).await?;
    let refused = outcome(&plane, &server, "one").await;
    registered.remove().await?;
    let failed = "500 InternalError: Internal error occurred: failed calling webhook";
    let post = r#"failed to call webhook: Post "https://webhook/ca?timeout=10s":"#;
    let unknown =
        "tls: failed to verify certificate: x509: certificate signed by unknown authority";
    let wanted = format!("{failed} \"ca.example.com\": {post} {unknown}");
    // Go adds what it has tried.
    assert!(refused.starts_with(&wanted), "{refused}");

    let free = tokio::net::TcpListener::bind(("127.0.0.1", 0))
        .await?
        .local_addr()?;
    let client_config =
        json!({"url": format!("https://{free}/gone"), "caBundle": server.ca_bundle});
    let webhook = [("/gone", json!({"clientConfig": client_config}))];
    let registered = Registered::create(&plane, &server, &[], &webhook).await?;
    let refused = outcome(&plane, &server, "one").await;
    registered.remove().await?;
    let wanted = format!(
        "{failed} \"gone.example.com\": failed to call webhook: Post \"https://{free}/gone?timeout=10s\": \
         dial tcp {free}: connect: connection refused"
    );
    assert_eq!(refused, wanted);
    Ok(())
}
