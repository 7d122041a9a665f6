use opkit_controller::Error;
use serde_json::Value;

use super::*;
use crate::handler::Services;
use crate::tests::send;
use crate::{WebhookRouter, WebhookSet};

async fn check(spec: SubjectAccessReviewSpec, _: WebhookContext) -> Result<Authorization, Error> {
    match spec.user.as_deref().unwrap_or_default() {
        "jane" => Ok(Authorization::allowed()),
        "john" => Ok(Authorization::denied("john may do nothing")),
        "error" => Err(Error::msg("the directory cannot be reached")),
        "panic" => panic!("fake panic test"),
        _ => Ok(Authorization::no_opinion("not known")),
    }
}

async fn call(body: String) -> Value {
    let set = WebhookSet {
        authorization: Some(AuthorizationWebhook::new(check)),
        ..WebhookSet::default()
    };
    let router = WebhookRouter::with_services(set, Services::default());
    let response = send(&router, AuthorizationWebhook::PATH, body).await;
    assert_eq!(response.status(), 200);
    serde_json::from_slice(response.body()).unwrap()
}

#[tokio::test]
async fn each_decision_has_its_status() {
    let cases = [
        ("jane", json!({"allowed": true})),
        (
            "john",
            json!({"allowed": false, "denied": true, "reason": "john may do nothing"}),
        ),
        ("other", json!({"allowed": false, "reason": "not known"})),
        (
            "error",
            json!({"allowed": false, "evaluationError": "the directory cannot be reached"}),
        ),
        (
            "panic",
            json!({"allowed": false, "evaluationError": "panic: fake panic test [recovered]"}),
        ),
    ];
    for (user, status) in cases {
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {"user": user, "resourceAttributes": {"verb": "get", "resource": "pods"}},
        });
        let response = call(review.to_string()).await;
        assert_eq!(response["kind"], "SubjectAccessReview");
        assert_eq!(response["status"], status, "{user}");
    }
}

#[tokio::test]
async fn a_bad_request_is_not_allowed() {
    for body in [
        "{",
        "[]",
        r#"{"kind": "TokenReview"}"#,
        r#"{"apiVersion": "v1"}"#,
    ] {
        let response = call(body.to_owned()).await;
        assert_eq!(response["status"]["allowed"], false, "{body}");
        assert!(response["status"]["evaluationError"].is_string());
    }
}
