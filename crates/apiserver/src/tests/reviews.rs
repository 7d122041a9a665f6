//! Access reviews.

use http::Method;
use serde_json::{Value, json};

use super::{Api, message};

const REVIEWS: &str = "/apis/authorization.k8s.io/v1";

async fn own(api: &Api, path: &str, spec: Value) -> (u16, Value) {
    let alice = api.server.service_as("alice", &[]);
    let body = json!({"spec": spec});
    api.send_as(alice, (Method::POST, path), &[], &body).await
}

#[tokio::test]
async fn a_user_reviews_own_rights() {
    let api = Api::start();
    let rules = json!([{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]);
    api.grant_to_alice("reader", rules.clone()).await;
    let path = format!("{REVIEWS}/selfsubjectaccessreviews");
    for (verb, allowed) in [("get", true), ("list", false)] {
        let attributes = json!({"resource": "pods", "verb": verb, "namespace": "default"});
        let review = own(&api, &path, json!({"resourceAttributes": attributes})).await;
        assert_eq!(
            (review.0, &review.1["status"]["allowed"]),
            (201, &json!(allowed))
        );
    }
    let path = format!("{REVIEWS}/selfsubjectrulesreviews");
    let review = own(&api, &path, json!({"namespace": "default"})).await;
    let found = review.1["status"]["resourceRules"].as_array().unwrap();
    assert!(found.contains(&rules[0]), "{found:?}");
    let urls = review.1["status"]["nonResourceRules"].to_string();
    assert!(urls.contains("/healthz"), "{urls}");
    let refused = own(&api, &path, json!({})).await;
    assert_eq!(message(&refused), "no namespace on request");
}

#[tokio::test]
async fn the_rights_of_other_users_are_reviewed() {
    let api = Api::start();
    let path = format!("{REVIEWS}/subjectaccessreviews");
    let attributes = json!({"resource": "pods", "verb": "list"});
    for (user, groups, allowed) in [
        ("alice", json!([]), false),
        ("alice", json!(["system:masters"]), true),
        ("system:kube-scheduler", json!([]), true),
    ] {
        let spec = json!({"user": user, "groups": groups, "resourceAttributes": attributes});
        let review = api.post(&path, json!({"spec": spec})).await;
        assert_eq!(review.1["status"]["allowed"], allowed, "{}", review.1);
    }
    let refused = api.post(&path, json!({"spec": {"user": "alice"}})).await;
    assert_eq!(refused.0, 422, "{}", refused.1);
    // A user without rights may not review others.
    let spec = json!({"user": "bob", "resourceAttributes": attributes});
    assert_eq!(own(&api, &path, spec).await.0, 403);
}

#[tokio::test]
async fn a_user_reviews_own_name() {
    let api = Api::start();
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let alice = api.server.service_as("alice", &["dev"]);
    let review = api
        .send_as(alice, (Method::POST, path), &[], &json!({}))
        .await;
    let info = json!({"username": "alice", "groups": ["dev", "system:authenticated"]});
    assert_eq!(review.1["status"]["userInfo"], info);
}

#[tokio::test]
async fn a_token_is_reviewed() {
    let api = Api::start();
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    let token = api.server.token_for("alice", &["dev"]).unwrap();
    let review = api.post(path, json!({"spec": {"token": token}})).await;
    assert_eq!(review.1["status"]["authenticated"], true);
    assert_eq!(review.1["status"]["user"]["username"], "alice");
    let review = api.post(path, json!({"spec": {"token": "wrong"}})).await;
    let status = json!({"user": {}, "error": "invalid bearer token"});
    assert_eq!((review.0, &review.1["status"]), (201, &status));
    let refused = api.post(path, json!({"spec": {}})).await;
    assert_eq!(refused.0, 400);
}
