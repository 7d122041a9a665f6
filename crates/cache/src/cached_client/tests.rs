use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use k8s_openapi::api::core::v1::ConfigMap;
use opkit_client::RestClient;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::*;
use crate::{InformerOptions, Scope};

fn map(name: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "d", "uid": name, "resourceVersion": "5"},
        "data": {"name": name},
    })
}

/// Creates a server with the maps a, b and c; a GET of `c` returns 404.
fn server() -> kube::Client {
    let service = tower::service_fn(|request: Request<kube::client::Body>| {
        let name = request.uri().path().rsplit('/').next().unwrap_or_default();
        let (code, lines, watch) = match name {
            "configmaps" => {
                let event = |kind: &str, object: Value| json!({"type": kind, "object": object});
                let end = json!({
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {
                        "resourceVersion": "9",
                        "annotations": {"k8s.io/initial-events-end": "true"},
                    },
                });
                let listed = ["a", "b", "c"].map(|name| event("ADDED", map(name)));
                let lines = listed.into_iter().chain([event("BOOKMARK", end)]);
                (200, lines.collect(), true)
            }
            "c" => {
                let status = json!({"kind": "Status", "code": 404, "reason": "NotFound"});
                (404, vec![status], false)
            }
            name => (200, vec![map(name)], false),
        };
        let lines = stream::iter(lines).map(|line: Value| {
            let line = Bytes::from(format!("{line}\n"));
            Ok::<_, Infallible>(Frame::data(line))
        });
        let body = match watch {
            true => lines.chain(stream::pending()).boxed(),
            false => lines.boxed(),
        };
        let response = Response::builder().header("content-type", "application/json");
        let response = response.status(code).body(StreamBody::new(body));
        async move { Ok::<_, Infallible>(response.unwrap()) }
    });
    kube::Client::new(service, "d")
}

#[tokio::test(start_paused = true)]
async fn a_list_includes_evicted_objects() {
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let kube = server();
    let client = RestClient::new(kube.clone());
    let factory = InformerFactory::new(client, Scope::All, tasks.clone(), stop.clone());
    let maps = factory.informer_with::<ConfigMap>(InformerOptions::default().memory_budget(1));
    factory
        .wait_for_sync(Duration::from_secs(10))
        .await
        .unwrap();
    assert_eq!(maps.informer().stats().evictions, 3);
    assert!(maps.list(&Selection::default()).is_empty());
    let client = CachedClient::new(Client::new(kube), Arc::new(factory));
    let listed = client
        .list::<ConfigMap>(&Selection::default())
        .await
        .unwrap();
    let mut names: Vec<_> = listed
        .iter()
        .filter_map(|map| map.data.as_ref()?.get("name").cloned())
        .collect();
    names.sort();
    assert_eq!(names, ["a", "b"]);
    stop.cancel();
    tasks.close();
    tasks.wait().await;
}
