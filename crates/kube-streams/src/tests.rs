use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::channel::mpsc;
use futures::{StreamExt, stream};
use http_body::Frame;
use http_body_util::StreamBody;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_runtime::reflector;
use opkit_cache::{InformerFactory, Scope};
use opkit_client::RestClient;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::*;

fn line(kind: &str, name: &str, version: u32) -> Value {
    json!({"type": kind, "object": {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "d", "uid": name, "resourceVersion": version.to_string()},
    }})
}

/// Creates a server whose only watch delivers what is sent.
fn server() -> (kube::Client, mpsc::Sender<Value>) {
    let (sender, events) = mpsc::channel::<Value>(16);
    let events = Arc::new(Mutex::new(Some(events)));
    let service = tower::service_fn(move |_: http::Request<kube::client::Body>| {
        let events = events.lock().unwrap().take();
        let events = events.map_or(stream::pending().boxed(), StreamExt::boxed);
        let lines = events.map(|event| {
            let line = Bytes::from(format!("{event}\n"));
            Ok::<_, Infallible>(Frame::data(line))
        });
        let response = http::Response::builder().header("content-type", "application/json");
        let response = response.body(StreamBody::new(lines));
        async move { Ok::<_, Infallible>(response.unwrap()) }
    });
    (kube::Client::new(service, "d"), sender)
}

/// kube's store takes the objects of its first list as they are at the end: it ignores a deletion
/// before that.
#[tokio::test(start_paused = true)]
async fn an_object_deleted_during_the_first_list_is_not_in_kubes_store() {
    let (kube, mut server) = server();
    let (tasks, stop) = (TaskTracker::new(), CancellationToken::new());
    let client = RestClient::new(kube);
    let factory = InformerFactory::new(client, Scope::All, tasks.clone(), stop.clone());
    let maps = factory.informer::<ConfigMap>();
    let mut events = pin!(watcher_events::<ConfigMap>(maps.informer().listen()));
    let (store, mut writer) = reflector::store::<ConfigMap>();
    let mut received = Vec::new();
    for name in ["a", "b", "again"] {
        server.try_send(line("ADDED", name, 5)).unwrap();
    }
    while let Some(Ok(event)) = events.next().await {
        writer.apply_watcher_event(&event);
        let name = |map: &ConfigMap| map.metadata.name.clone().unwrap();
        received.push(match &event {
            watcher::Event::Init => "init".to_owned(),
            watcher::Event::InitApply(map) => format!("list {}", name(map)),
            watcher::Event::InitDone => "done".to_owned(),
            watcher::Event::Apply(map) => format!("apply {}", name(map)),
            watcher::Event::Delete(map) => format!("delete {}", name(map)),
        });
        match received.last().map(String::as_str) {
            Some("list again") if received.len() == 4 => {
                server.try_send(line("DELETED", "a", 6)).unwrap();
                server.try_send(line("DELETED", "again", 7)).unwrap();
                // Waits until the listener has received these.
                while maps.len() > 1 {
                    tokio::task::yield_now().await;
                }
                server.try_send(line("ADDED", "again", 8)).unwrap();
                let mut end = line("BOOKMARK", "", 9);
                end["object"]["metadata"]["annotations"] =
                    json!({"k8s.io/initial-events-end": "true"});
                server.try_send(end).unwrap();
            }
            Some("delete a") if received.contains(&"done".to_owned()) => break,
            Some("done") if received.contains(&"delete a".to_owned()) => break,
            _ => {}
        }
    }
    let mut names: Vec<_> = store
        .state()
        .iter()
        .map(|map| map.metadata.name.clone().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["again", "b"], "{received:?}");
    stop.cancel();
    tasks.close();
    tasks.wait().await;
}
