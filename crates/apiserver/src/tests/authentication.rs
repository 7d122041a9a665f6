//! Requests with credentials, and without.

use std::time::Duration;

use http::Method;
use serde_json::{Value, json};
use tokio::time::advance;

use super::{Api, message};
use crate::{AuthenticationOptions, AuthorizationMode, Options, StaticToken};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const REVIEW: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";

/// Returns the status code of a GET, and of a request with this token if there is one.
async fn code(api: &Api, path: &str, token: &str) -> u16 {
    let header = format!("Bearer {token}");
    let headers: &[(&str, &str)] = match token {
        "" => &[],
        _ => &[("authorization", &header)],
    };
    api.send_as(
        api.server.remote_service(),
        (Method::GET, path),
        headers,
        &Value::Null,
    )
    .await
    .0
}

/// Returns the user of a token, or the message of the error.
async fn user(api: &Api, token: &str) -> Value {
    let headers = [("authorization", &*format!("Bearer {token}"))];
    let sent = api
        .send_as(
            api.server.remote_service(),
            (Method::POST, REVIEW),
            &headers,
            &json!({}),
        )
        .await;
    match sent.0 {
        201 => sent.1["status"]["userInfo"].clone(),
        _ => json!(message(&sent)),
    }
}

#[tokio::test]
async fn an_anonymous_user_sees_health_and_version() {
    let api = Api::start();
    for path in ["/healthz", "/livez", "/readyz", "/version", "/version/"] {
        assert_eq!(code(&api, path, "").await, 200, "{path}");
    }
    for path in [
        "/api",
        "/apis",
        "/api/v1/pods",
        "/readyz/etcd",
        "/openapi/v3",
        "/",
    ] {
        assert_eq!(code(&api, path, "").await, 403, "{path}");
    }
    assert_eq!(code(&api, "/version", "wrong").await, 401);
}

#[tokio::test]
async fn anonymous_requests_can_be_refused() {
    let mut options = Options::default();
    options.authentication.anonymous = false;
    assert_eq!(code(&Api::with(options), "/version", "").await, 401);
    // As in Kubernetes, a server that allows everything refuses anonymous requests.
    let options = Options {
        authorization: vec![AuthorizationMode::AlwaysAllow],
        ..Options::default()
    };
    assert_eq!(code(&Api::with(options), "/version", "").await, 401);
}

#[tokio::test]
async fn a_token_of_a_file_names_a_user() {
    let authentication = AuthenticationOptions {
        tokens: StaticToken::parse_file("secret,alice,7,\"dev\"").unwrap(),
        ..AuthenticationOptions::default()
    };
    let api = Api::with(Options {
        authentication,
        ..Options::default()
    });
    let wanted = json!({
        "username": "alice", "uid": "7", "groups": ["dev", "system:authenticated"],
    });
    assert_eq!(user(&api, "secret").await, wanted);
    assert_eq!(user(&api, "other").await, "Unauthorized");
}

async fn request_token(api: &Api, name: &str, spec: Value) -> (u16, Value) {
    let path = format!("{ACCOUNTS}/{name}/token");
    api.post(&path, json!({"spec": spec})).await
}

async fn with_robot() -> Api {
    let api = Api::start();
    let created = api
        .post(ACCOUNTS, json!({"metadata": {"name": "robot"}}))
        .await;
    assert_eq!(created.0, 201);
    api
}

#[tokio::test]
async fn a_service_account_has_tokens() {
    let api = with_robot().await;
    let created = request_token(&api, "robot", json!({})).await;
    assert_eq!(created.0, 201, "{}", created.1);
    assert_eq!(created.1["spec"]["expirationSeconds"], 3600);
    let token = created.1["status"]["token"].as_str().unwrap();
    let robot = user(&api, token).await;
    assert_eq!(robot["username"], "system:serviceaccount:default:robot");
    let groups = json!([
        "system:serviceaccounts",
        "system:serviceaccounts:default",
        "system:authenticated",
    ]);
    assert_eq!(robot["groups"], groups);
    let own = api
        .server
        .service_account_token("default", "robot", None)
        .unwrap();
    assert_eq!(user(&api, &own).await["username"], robot["username"]);
    assert!(
        api.server
            .service_account_token("default", "none", None)
            .is_err()
    );
    assert_eq!(request_token(&api, "none", json!({})).await.0, 404);
    let path = format!("{ACCOUNTS}/robot");
    assert_eq!(api.delete(&path, Value::Null).await.0, 200);
    assert_eq!(user(&api, token).await, "Unauthorized");
    let created = api
        .post(ACCOUNTS, json!({"metadata": {"name": "robot"}}))
        .await;
    assert_eq!(created.0, 201);
    assert_eq!(
        user(&api, token).await,
        "Unauthorized",
        "another account with this name"
    );
}

#[tokio::test(start_paused = true)]
async fn a_token_expires() {
    let api = with_robot().await;
    let created = request_token(&api, "robot", json!({"expirationSeconds": 600})).await;
    let token = created.1["status"]["token"].as_str().unwrap();
    advance(Duration::from_secs(650)).await;
    assert!(
        user(&api, token).await.is_object(),
        "there is a minute of leeway"
    );
    advance(Duration::from_secs(15)).await;
    assert_eq!(user(&api, token).await, "Unauthorized");
    let refused = request_token(&api, "robot", json!({"expirationSeconds": 599})).await;
    assert_eq!(
        message(&refused),
        "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid value: \
         599: may not specify a duration less than 10 minutes"
    );
}

#[tokio::test]
async fn a_token_for_another_audience_is_refused() {
    let api = with_robot().await;
    let created = request_token(&api, "robot", json!({"audiences": ["vault"]})).await;
    let token = created.1["status"]["token"].as_str().unwrap();
    assert_eq!(user(&api, token).await, "Unauthorized");
    let path = "/apis/authentication.k8s.io/v1/tokenreviews";
    let review = json!({"spec": {"token": token, "audiences": ["vault", "other"]}});
    let review = api.post(path, review).await;
    assert_eq!(
        review.1["status"]["audiences"],
        json!(["vault"]),
        "{}",
        review.1
    );
    let review = api.post(path, json!({"spec": {"token": token}})).await;
    assert_eq!(review.1["status"]["authenticated"], Value::Null);
}

#[tokio::test]
async fn a_token_is_bound_to_a_secret() {
    let api = with_robot().await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let secret = api.post(secrets, json!({"metadata": {"name": "s"}})).await;
    let bound = |kind: &str, name: &str, uid: &str| json!({"boundObjectRef": {"apiVersion": "v1", "kind": kind, "name": name, "uid": uid}});
    let uid = secret.1["metadata"]["uid"].as_str().unwrap();
    let created = request_token(&api, "robot", bound("Secret", "s", uid)).await;
    let token = created.1["status"]["token"].as_str().unwrap();
    assert!(user(&api, token).await.is_object());
    let refused = request_token(&api, "robot", bound("Secret", "s", "other")).await;
    assert_eq!(refused.0, 409);
    let refused = request_token(&api, "robot", bound("Pod", "p", "")).await;
    assert_eq!(message(&refused), "pods \"p\" not found");
    let refused = request_token(&api, "robot", bound("ConfigMap", "c", "")).await;
    assert_eq!(
        message(&refused),
        "cannot bind token to object of type /v1, Kind=ConfigMap"
    );
    assert_eq!(
        api.delete(&format!("{secrets}/s"), Value::Null).await.0,
        200
    );
    assert_eq!(user(&api, token).await, "Unauthorized");
}

#[tokio::test]
async fn keys_and_issuer_are_published() {
    let api = Api::start();
    let path = "/.well-known/openid-configuration";
    let (code, document) = api.get(path).await;
    let issuer = "https://kubernetes.default.svc.cluster.local";
    assert_eq!((code, &document["issuer"]), (200, &json!(issuer)));
    let keys = api.raw("/openid/v1/jwks", &[]).await;
    assert_eq!(keys.headers()["content-type"], "application/jwk-set+json");
    assert_eq!(keys.headers()["cache-control"], "public, max-age=3600");
    // For ServiceAccounts, and not for other users.
    let robot = api.server.service_as_service_account("default", "robot");
    let read = api
        .send_as(robot, (Method::GET, path), &[], &Value::Null)
        .await;
    assert_eq!(read.0, 200);
    assert_eq!(api.get_as_alice(path).await.0, 403);
}
