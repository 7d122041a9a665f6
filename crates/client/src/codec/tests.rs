use std::convert::Infallible;
use std::sync::Arc;

use http::{Request, Response};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::*;
use crate::Client;

fn map() -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": "a"}, "data": {"k": "v"}})).unwrap()
}

/// Returns a client of a server that responds with the body of the request, and the content types
/// that the server received. Without `reads_protobuf`, the server accepts only JSON.
fn echo(reads_protobuf: bool) -> (Client, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = seen.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let log = log.clone();
        async move {
            let content_type = request.headers()["content-type"]
                .to_str()
                .unwrap()
                .to_owned();
            log.lock().push(content_type.clone());
            let refuses = !reads_protobuf && content_type == protobuf::CONTENT_TYPE;
            let body = request.into_body().collect_bytes().await.unwrap();
            let (code, body) = match refuses {
                true => (415, body.slice(..0)),
                false => (200, body),
            };
            let answer = Response::builder()
                .status(code)
                .header("content-type", content_type);
            Ok::<_, Infallible>(answer.body(Body::from(body)).unwrap())
        }
    });
    (Client::new(kube::Client::new(service, "default")), seen)
}

#[tokio::test]
async fn built_in_kinds_travel_in_protobuf() {
    let (client, seen) = echo(true);
    assert_eq!(client.create(&map()).await.unwrap().data, map().data);
    assert_eq!(client.update(&map()).await.unwrap().data, map().data);
    assert_eq!(*seen.lock(), [protobuf::CONTENT_TYPE; 2]);
}

#[tokio::test]
async fn a_server_that_reads_json_only_is_remembered() {
    let (client, seen) = echo(false);
    for _ in 0..2 {
        assert_eq!(client.create(&map()).await.unwrap().data, map().data);
    }
    let json = "application/json";
    assert_eq!(*seen.lock(), [protobuf::CONTENT_TYPE, json, json]);
}

#[test]
fn only_kinds_of_the_table_are_requested_in_protobuf() {
    assert!(format(&Kind::of::<Pod>()).protobuf);
    let robot = Kind {
        group: "a.dev".into(),
        kind: "Pod".into(),
        ..Kind::of::<Pod>()
    };
    assert!(!format(&robot).protobuf);
    assert!(to_protobuf(&robot, &map()).is_none());
}

#[test]
fn events_are_read_in_both_forms() {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "resourceVersion": "5"}});
    let status = json!({"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": 410, "reason": "Expired", "message": "old"});
    for (type_, object) in [
        ("ADDED", &object),
        ("MODIFIED", &object),
        ("DELETED", &object),
        ("BOOKMARK", &object),
        ("ERROR", &status),
    ] {
        let json = json!({"type": type_, "object": object}).to_string();
        let bytes = protobuf::encode(object).unwrap();
        let frame = WatchEventParts {
            type_,
            object: &bytes,
        }
        .to_vec();
        let plain: WatchEvent<Value> = event(json.as_bytes(), Encoding::Json).unwrap();
        let compact: WatchEvent<Value> = event(&frame, Encoding::Protobuf).unwrap();
        let text = |event: &WatchEvent<Value>| serde_json::to_value(event).unwrap();
        let (plain, compact) = (text(&plain), text(&compact));
        assert_eq!(plain["type"], compact["type"]);
        assert_eq!(
            plain["object"]["metadata"]["resourceVersion"],
            compact["object"]["metadata"]["resourceVersion"]
        );
        assert_eq!(plain["object"]["reason"], compact["object"]["reason"]);
    }
    let frame = WatchEventParts {
        type_: "NEWS",
        object: b"",
    }
    .to_vec();
    let error = event::<Value>(&frame, Encoding::Protobuf).unwrap_err();
    assert!(error.to_string().contains("NEWS"), "{error}");
    assert!(event::<Value>(b"\xff", Encoding::Protobuf).is_err());
}
