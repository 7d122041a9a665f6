use opkit_controller::Error;
use serde_json::Value;

use super::*;
use crate::handler::Services;
use crate::tests::send;
use crate::{WebhookRouter, WebhookSet};

async fn check(spec: TokenReviewSpec, _: WebhookContext) -> Result<Authentication, Error> {
    assert_ne!(spec.token, "panic", "fake panic test");
    match spec.token.as_str() {
        "jane" => Ok(Authentication::authenticated("jane")
            .group("a")
            .audience("api")),
        "error" => Err(Error::msg("the directory cannot be reached")),
        _ => Ok(Authentication::unauthenticated("the token is not known")),
    }
}

fn router() -> WebhookRouter {
    let set = WebhookSet {
        authentication: Some(AuthenticationWebhook::new(check)),
        ..WebhookSet::default()
    };
    WebhookRouter::with_services(set, Services::default())
}

async fn call(body: &str) -> Value {
    let response = send(&router(), AuthenticationWebhook::PATH, body.to_owned()).await;
    assert_eq!(response.status(), 200);
    serde_json::from_slice(response.body()).unwrap()
}

fn review(version: &str, token: &str) -> String {
    let version = format!("authentication.k8s.io/{version}");
    json!({
        "apiVersion": version, "kind": "TokenReview", "metadata": {"uid": "some-uid"},
        "spec": {"token": token},
    })
    .to_string()
}

#[tokio::test]
async fn a_valid_token_has_a_user() {
    for version in ["v1", "v1beta1"] {
        let response = call(&review(version, "jane")).await;
        assert_eq!(
            response["apiVersion"],
            format!("authentication.k8s.io/{version}")
        );
        assert_eq!(response["kind"], "TokenReview");
        assert_eq!(response["metadata"]["uid"], "some-uid");
        let expected = json!({
            "authenticated": true, "user": {"username": "jane", "groups": ["a"]},
            "audiences": ["api"],
        });
        assert_eq!(response["status"], expected);
    }
    // Without a version, the response is v1.
    let response = call(r#"{"spec": {"token": "jane"}}"#).await;
    assert_eq!(response["apiVersion"], "authentication.k8s.io/v1");
    assert_eq!(response["status"]["authenticated"], true);
}

#[tokio::test]
async fn other_requests_are_not_authenticated_with_a_reason() {
    let cases = [
        ("", "request body is empty"),
        (r#"{"spec": {"token": 7}}"#, "cannot decode the TokenReview"),
        ("{", "cannot decode the TokenReview"),
        (r#"{"spec": {"token": ""}}"#, "token is empty"),
        (r#"{"spec": {}}"#, "token is empty"),
        ("{}", "token is empty"),
        (r#"{"kind": "AdmissionReview"}"#, "expected TokenReview"),
        (
            r#"{"apiVersion": "authentication.k8s.io/v2"}"#,
            "is registered for version",
        ),
        (
            r#"{"spec": {"token": "unknown"}}"#,
            "the token is not known",
        ),
        (
            r#"{"spec": {"token": "error"}}"#,
            "the directory cannot be reached",
        ),
        (r#"{"spec": {"token": "panic"}}"#, "fake panic test"),
    ];
    for (body, reason) in cases {
        let response = call(body).await;
        assert_eq!(response["status"]["authenticated"], false, "{body}");
        assert_eq!(response["status"]["user"], json!({}));
        let error = response["status"]["error"].as_str().unwrap();
        assert!(error.contains(reason), "{body}: {error}");
    }
}

#[tokio::test]
async fn a_body_of_1_mib_is_too_large() {
    let body = " ".repeat(1024 * 1024);
    let error = "request entity is too large; limit is 1048576 bytes";
    assert_eq!(call(&body).await["status"]["error"], error);
}
