use std::convert::Infallible;

use http::{Method, Request, Response};
use kube::client::Body;
use opkit_client::Seam;
use serde_json::json;

use super::*;

const MAPS: &str = "/api/v1/namespaces/d/configmaps";

fn map(name: &str, value: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "d", "resourceVersion": "7"},
        "data": {"a": value},
    })
}

/// Returns a client of a server that has the object `one`, and responds to a write with its body.
fn server() -> kube::Client {
    let service = tower::service_fn(async |request: Request<Body>| {
        let (parts, body) = request.into_parts();
        let is_known = parts.uri.path().ends_with("/one");
        let (code, body) = match (parts.method, is_known) {
            (Method::GET, true) => (200, serde_json::to_vec(&map("one", "1")).unwrap()),
            (Method::GET, false) => (404, br#"{"kind": "Status", "code": 404}"#.to_vec()),
            _ => (200, body.collect_bytes().await.unwrap().to_vec()),
        };
        let response = Response::builder().status(code).body(Body::from(body));
        Ok::<_, Infallible>(response.unwrap())
    });
    kube::Client::new(service, "d")
}

/// Sends writes in plan mode, each by the reconcile of an object. Returns the changed objects.
async fn objects(writes: &[(&str, &str, Value, &str)]) -> Vec<PlannedObject> {
    let seam = Seam::new();
    seam.start_plan();
    let client = seam.wrap(server());
    let mut changes = Changes::new(None);
    for (method, path, body, by) in writes {
        let request = Request::builder().method(*method).uri(*path);
        let request = request.header("content-type", "application/json");
        let body = Body::from(serde_json::to_vec(body).unwrap());
        let response = client.send(request.body(body).unwrap()).await.unwrap();
        assert!(response.status().is_success(), "{method} {path}");
        let by = ObjectName {
            kind: "Robot".to_owned(),
            namespace: Some("d".to_owned()),
            name: (*by).to_owned(),
        };
        for change in seam.planned(changes.seen()) {
            changes.add(change, Some(&by));
        }
    }
    changes.objects()
}

fn one() -> String {
    format!("{MAPS}/one")
}

#[tokio::test]
async fn all_writes_of_an_object_are_one_change() {
    let mut again = map("one", "3");
    again["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("resourceVersion");
    let found = objects(&[
        ("PUT", &one(), map("one", "2"), "r"),
        ("PUT", &one(), again, "s"),
    ])
    .await;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].change, PlannedEffect::Changed);
    assert_eq!(found[0].fields[0].to_string(), r#".data.a "1" -> "3""#);
    assert_eq!(found[0].fields.len(), 1);
    let by: Vec<String> = found[0]
        .reconciled
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(by, ["robot/r", "robot/s"]);
}

#[tokio::test]
async fn what_is_undone_is_no_change() {
    let mut back = map("one", "1");
    back["metadata"]
        .as_object_mut()
        .unwrap()
        .remove("resourceVersion");
    let found = objects(&[
        ("PUT", &one(), map("one", "2"), "r"),
        ("PUT", &one(), back, "r"),
        ("POST", MAPS, map("new", "1"), "r"),
        ("DELETE", &format!("{MAPS}/new"), json!({}), "r"),
    ])
    .await;
    assert_eq!(found, []);
}

#[tokio::test]
async fn objects_are_created_and_deleted() {
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"p": "aHVzaA=="},
    });
    let secrets = "/api/v1/namespaces/d/secrets";
    let found = objects(&[
        ("POST", secrets, secret, "r"),
        ("DELETE", &one(), json!({}), "r"),
    ])
    .await;
    assert_eq!(found[0].change, PlannedEffect::Created);
    let created = found[0].object.as_ref().unwrap();
    assert_eq!(created["data"]["p"], "REDACTED");
    assert_eq!(created["metadata"], json!({"name": "s", "namespace": "d"}));
    assert_eq!(found[0].unchecked, None);
    assert_eq!(
        (found[1].change, found[1].kind.as_str()),
        (PlannedEffect::Deleted, "ConfigMap")
    );
}
