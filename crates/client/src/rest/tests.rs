use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use k8s_openapi::api::apps::v1::Deployment;
use kube::client::Body;
use serde_json::json;

use super::*;
use crate::RequestError;

type Seen = Arc<Mutex<Vec<String>>>;

/// Returns a client whose requests all get the same response, and the list of its requests.
fn responding(code: u16, body: &'static str) -> (RestClient, Seen) {
    let seen = Seen::default();
    let log = seen.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        log.lock()
            .unwrap()
            .push(format!("{} {}", request.method(), request.uri()));
        async move {
            let response = Response::builder()
                .status(code)
                .body(Body::from(body.as_bytes().to_vec()));
            Ok::<_, Infallible>(response.unwrap())
        }
    });
    (RestClient::new(kube::Client::new(service, "default")), seen)
}

fn me() -> WriteOptions {
    WriteOptions::for_manager("me")
}

fn robot() -> ObjectKey {
    ObjectKey::from(("default", "robot-one"))
}

#[tokio::test]
async fn a_refusal_names_verb_kind_and_object() {
    let status = r#"{"kind":"Status","status":"Failure","message":"it changed","reason":"Conflict","code":409}"#;
    let (client, _) = responding(409, status);
    let kind = Kind::of::<Deployment>();
    let patch = json!({});
    let error = client
        .patch(&kind, &robot(), None, Patch::Merge(&patch), &me())
        .await
        .unwrap_err();
    assert!(error.is_conflict() && !error.is_already_exists());
    assert_eq!(
        error.to_string(),
        "cannot patch Deployment default/robot-one: it changed (409 Conflict)"
    );
    let error = client
        .list(
            &kind,
            &ListOptions::new().limit(1),
            ResponseFormat::default(),
        )
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("cannot list deployments.apps: "),
        "{error}"
    );
}

#[tokio::test]
async fn a_plain_text_refusal_is_kept() {
    let (client, _) = responding(404, "404 page not found\n");
    let error = client
        .get(&Kind::of::<Deployment>(), &robot())
        .await
        .unwrap_err();
    assert!(error.is_not_found());
    assert!(
        error
            .to_string()
            .contains("404 page not found (404 Unknown)"),
        "{error}"
    );
}

#[tokio::test]
async fn an_apply_is_forced_only_where_the_options_force_it() {
    let (client, seen) = responding(200, "{}");
    let body = json!({});
    let kind = Kind::of::<Deployment>();
    client
        .patch(&kind, &robot(), None, Patch::Apply(&body), &me())
        .await
        .unwrap();
    let force = me().force();
    client
        .patch(&kind, &robot(), None, Patch::Apply(&body), &force)
        .await
        .unwrap();
    client
        .patch(&kind, &robot(), Some("status"), Patch::Merge(&body), &force)
        .await
        .unwrap();
    let path = "/apis/apps/v1/namespaces/default/deployments/robot-one";
    assert_eq!(
        *seen.lock().unwrap(),
        [
            format!("PATCH {path}?fieldManager=me"),
            format!("PATCH {path}?fieldManager=me&force=true"),
            format!("PATCH {path}/status?fieldManager=me"),
        ]
    );
}

#[tokio::test]
async fn a_watch_is_split_into_lines() {
    let (client, _) = responding(200, "{\"a\":1}\n\n{\"b\":2}\n{\"cut off");
    let options = ListOptions {
        resource_version: "5".into(),
        watch_timeout: Duration::from_secs(300),
        ..Default::default()
    };
    let (kind, format) = (Kind::of::<Deployment>(), ResponseFormat::default());
    let mut lines = client.watch(&kind, &options, format).await.unwrap();
    assert_eq!(lines.next().await.unwrap().unwrap(), "{\"a\":1}");
    assert_eq!(lines.next().await.unwrap().unwrap(), "{\"b\":2}");
    assert!(lines.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_silent_server_is_a_timeout() {
    let service = tower::service_fn(|_: Request<Body>| {
        std::future::pending::<Result<Response<Body>, Infallible>>()
    });
    let client = RestClient::new(kube::Client::new(service, "default"));
    let error = client
        .get(&Kind::of::<Deployment>(), &robot())
        .await
        .unwrap_err();
    assert!(error.is_unreachable());
    assert!(
        error.to_string().ends_with("no response within 60 s"),
        "{error}"
    );
}

#[tokio::test]
async fn a_name_cannot_lead_to_another_object() {
    let (client, seen) = responding(200, "{}");
    for name in ["", "..", "a/b", "a%2fb"] {
        let key = ObjectKey::from(("default", name));
        let error = client
            .get(&Kind::of::<Deployment>(), &key)
            .await
            .unwrap_err();
        assert!(matches!(error, RequestError::Build { .. }), "{error}");
    }
    assert!(seen.lock().unwrap().is_empty());
}

#[tokio::test]
async fn json_that_is_not_a_status_has_the_code_of_its_response() {
    let (client, _) = responding(404, r#"{"error":"no route"}"#);
    let (kind, format) = (Kind::of::<Deployment>(), ResponseFormat::default());
    let listed = client.list(&kind, &ListOptions::new(), format).await;
    let error = listed.unwrap_err();
    assert!(error.is_not_found(), "{error}");
    assert!(error.to_string().contains("no route"), "{error}");
}
