use std::convert::Infallible;
use std::sync::Arc;

use futures::StreamExt;
use http::{Request, Response};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::client::Body;
use kube::core::WatchEvent;
use parking_lot::Mutex;

use super::*;
use crate::{Propagation, VersionMatch};

mod paths;
mod requests;

#[derive(Clone, Default)]
struct Server {
    seen: Arc<Mutex<Vec<(String, Value)>>>,
    /// Next responses; after them, the server responds with the body of the request, or with an
    /// empty object.
    answers: Arc<Mutex<Vec<(u16, Value)>>>,
}

impl Server {
    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let line = format!("{} {}", request.method(), request.uri());
                let body = request.into_body().collect_bytes().await.unwrap();
                let body: Value = serde_json::from_slice(&body).unwrap_or_default();
                server.seen.lock().push((line, body.clone()));
                let mut answers = server.answers.lock();
                let (code, answer) = if answers.is_empty() {
                    (200, if body.is_object() { body } else { json!({}) })
                } else {
                    answers.remove(0)
                };
                let text = match answer {
                    // Lines of a watch.
                    Value::Array(lines) => lines.iter().map(|line| format!("{line}\n")).collect(),
                    answer => answer.to_string(),
                };
                let body = Body::from(text.into_bytes());
                Ok::<_, Infallible>(Response::builder().status(code).body(body).unwrap())
            }
        });
        Client::new(kube::Client::new(service, "home"))
    }

    fn answer(&self, code: u16, body: Value) {
        self.answers.lock().push((code, body));
    }

    /// What was sent since the last look.
    fn sent(&self) -> Vec<String> {
        self.seen.lock().drain(..).map(|(line, _)| line).collect()
    }

    fn last_body(&self) -> Value {
        self.seen.lock().pop().unwrap().1
    }
}

fn map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

#[tokio::test]
async fn keys_find_their_namespace() {
    let server = Server::default();
    let client = server.client();
    client.get::<ConfigMap>("a").await.unwrap();
    client.get::<ConfigMap>(("other", "a")).await.unwrap();
    client.get::<Namespace>("a").await.unwrap();
    client.get::<Namespace>(("ignored", "a")).await.unwrap();
    assert_eq!(
        server.sent(),
        [
            "GET /api/v1/namespaces/home/configmaps/a",
            "GET /api/v1/namespaces/other/configmaps/a",
            "GET /api/v1/namespaces/a",
            "GET /api/v1/namespaces/a",
        ]
    );
    let error = client.get::<ConfigMap>("a/b").await.unwrap_err();
    assert!(matches!(error, RequestError::Build { .. }), "{error}");
    server.answer(
        404,
        json!({"kind": "Status", "code": 404, "message": "gone", "reason": "NotFound"}),
    );
    assert!(client.get_opt::<ConfigMap>("a").await.unwrap().is_none());
}

#[tokio::test]
async fn writes_carry_their_options() {
    let server = Server::default();
    let client = server.client().field_manager("me").dry_run();
    let client = client.field_validation(FieldValidation::Strict);
    client.create(&map("a")).await.unwrap();
    client.update(&map("a")).await.unwrap();
    client.clone().force().apply(&map("a")).await.unwrap();
    client.status().apply(&map("a")).await.unwrap();
    let patch = json!({});
    client
        .patch::<ConfigMap>("a", Patch::Strategic(&patch))
        .await
        .unwrap();
    let options = "fieldManager=me&dryRun=All&fieldValidation=Strict";
    let path = "/api/v1/namespaces/home/configmaps";
    assert_eq!(
        server.sent(),
        [
            format!("POST {path}?{options}"),
            format!("PUT {path}/a?{options}"),
            format!("PATCH {path}/a?{options}&force=true"),
            format!("PATCH {path}/a/status?{options}"),
            format!("PATCH {path}/a?{options}"),
        ]
    );
    let mut owned = map("a");
    owned.metadata.managed_fields = Some(vec![]);
    client.apply(&owned).await.unwrap();
    let sent = server.last_body();
    assert_eq!(sent["kind"], "ConfigMap");
    assert!(sent["metadata"].get("managedFields").is_none());
}

#[tokio::test]
async fn deletions_say_which_and_how() {
    let server = Server::default();
    let client = server.client();
    let mut object = map("a");
    object.metadata.uid = Some("u".into());
    client.delete(&object).await.unwrap();
    assert_eq!(server.last_body()["preconditions"], json!({"uid": "u"}));
    let options = DeleteOptions {
        propagation: Some(Propagation::Orphan),
        grace_period_seconds: Some(0),
        ..Default::default()
    };
    let list = ListOptions::new().labels("a in (b,c)");
    client
        .delete_all::<ConfigMap>(&list, &options)
        .await
        .unwrap();
    let (line, body) = server.seen.lock().pop().unwrap();
    assert_eq!(
        line,
        "DELETE /api/v1/namespaces/home/configmaps?labelSelector=a%20in%20%28b%2Cc%29"
    );
    assert_eq!(body["propagationPolicy"], "Orphan");
    assert_eq!(body["gracePeriodSeconds"], 0);
    client.evict("a", &options).await.unwrap();
    let (line, body) = server.seen.lock().pop().unwrap();
    assert_eq!(line, "POST /api/v1/namespaces/home/pods/a/eviction");
    assert_eq!(body["kind"], "Eviction");
    assert_eq!(body["deleteOptions"]["gracePeriodSeconds"], 0);
}

fn page(names: &[&str], token: &str) -> Value {
    let items: Vec<Value> = names
        .iter()
        .map(|name| json!({"metadata": {"name": name}}))
        .collect();
    json!({"metadata": {"resourceVersion": "7", "continue": token}, "items": items})
}

#[tokio::test]
async fn a_whole_list_is_read_in_pages() {
    let server = Server::default();
    let client = server.client();
    server.answer(200, page(&["a", "b"], "next"));
    server.answer(200, page(&["c"], ""));
    let options = ListOptions::new().version("5", VersionMatch::NotOlderThan);
    let list = client.list_all::<ConfigMap>(&options).await.unwrap();
    let names: Vec<&str> = list
        .items
        .iter()
        .map(|map| map.metadata.name.as_deref().unwrap())
        .collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(
        (list.resource_version(), list.continue_token()),
        ("7", None)
    );
    assert_eq!(
        server.sent(),
        [
            "GET /api/v1/configmaps?limit=500&resourceVersion=5&resourceVersionMatch=NotOlderThan",
            "GET /api/v1/configmaps?limit=500&continue=next",
        ]
    );
}

#[tokio::test]
async fn a_page_that_is_forgotten_makes_the_list_whole() {
    let server = Server::default();
    let client = server.client();
    server.answer(200, page(&["a"], "next"));
    server.answer(
        410,
        json!({"kind": "Status", "code": 410, "reason": "Expired"}),
    );
    server.answer(200, page(&["b", "c"], ""));
    let list = client
        .list_all::<ConfigMap>(&ListOptions::new())
        .await
        .unwrap();
    assert_eq!(list.items.len(), 2);
    assert_eq!(server.sent().pop().unwrap(), "GET /api/v1/configmaps");
    server.answer(200, json!({"metadata": {}, "items": null}));
    assert!(
        client
            .list::<ConfigMap>(&ListOptions::new())
            .await
            .unwrap()
            .items
            .is_empty()
    );
}

#[tokio::test]
async fn a_watch_has_types_and_ends_with_an_error_event() {
    let server = Server::default();
    let client = server.client();
    server.answer(
        200,
        json!([
            {"type": "ADDED", "object": {"metadata": {"name": "a"}}},
            {"type": "MODIFIED", "object": {"metadata": 5}},
            {"type": "BOOKMARK", "object": {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": "9"}}},
            {"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old", "reason": "Expired"}},
            {"type": "DELETED", "object": {"metadata": {"name": "a"}}},
        ]),
    );
    let options = ListOptions::new().version("5", VersionMatch::Exact);
    let events = client.watch::<ConfigMap>(&options).await.unwrap();
    let events: Vec<_> = events.collect().await;
    assert!(
        matches!(&events[0], Ok(WatchEvent::Added(map)) if map.metadata.name.as_deref() == Some("a"))
    );
    assert!(matches!(&events[1], Err(RequestError::Decode { .. })));
    assert!(matches!(&events[2], Ok(WatchEvent::Bookmark(_))));
    let error = events[3].as_ref().unwrap_err();
    assert!(error.is_expired());
    assert_eq!(
        error.to_string(),
        "cannot watch configmaps: too old (410 Expired)"
    );
    assert_eq!(events.len(), 4);
}

#[tokio::test]
async fn scales_are_read_and_set() {
    let server = Server::default();
    let client = server.client();
    let scale = client.scale::<Deployment>().set("web", 3).await.unwrap();
    assert_eq!(scale.spec.unwrap().replicas, Some(3));
    assert_eq!(
        server.sent(),
        ["PATCH /apis/apps/v1/namespaces/home/deployments/web/scale"]
    );
}

#[tokio::test]
async fn any_request_can_be_made_and_is_named() {
    let server = Server::default();
    let client = server.client();
    let rest = client.rest();
    let request = rest.request(
        http::Method::POST,
        "/apis/a.dev/v1/namespaces/x/robots/r/dance",
    );
    let answer: Value = request
        .query("to", "a b")
        .json(&json!({"a": 1}))
        .typed()
        .await
        .unwrap();
    assert_eq!(answer, json!({"a": 1}));
    assert_eq!(
        server.sent(),
        ["POST /apis/a.dev/v1/namespaces/x/robots/r/dance?to=a%20b"]
    );
    server.answer(403, json!("no"));
    let error = rest
        .request(http::Method::GET, "/metrics")
        .bytes()
        .await
        .unwrap_err();
    assert!(
        error.to_string().starts_with("cannot get /metrics: "),
        "{error}"
    );
    let stream = rest
        .request(http::Method::GET, "/logs")
        .stream()
        .await
        .unwrap();
    let pieces: Vec<_> = stream.collect().await;
    assert_eq!(pieces.len(), 1);
}
