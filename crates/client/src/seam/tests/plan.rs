//! Plan mode.

use super::*;

#[tokio::test]
async fn a_plan_responds_to_writes_and_includes_them_in_reads() {
    let server = Objects::default()
        .with(&format!("{MAPS}/a"), map("a"))
        .with(&format!("{MAPS}/b"), map("b"));
    let seam = Seam::new();
    let client = seam.wrap(server.client());
    seam.start_plan();

    let new = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "labels": {"x": "y"}}});
    let (code, made) = send(&client, "POST", MAPS, new.clone()).await;
    assert_eq!(code, 201);
    assert_eq!(made["metadata"]["namespace"], "default");
    assert_eq!(send(&client, "POST", MAPS, new).await.0, 409);

    let patch = json!({"data": {"a": null, "c": "3"}});
    let merge = "application/merge-patch+json";
    let (code, _) = send_as(&client, "PATCH", &format!("{MAPS}/a"), merge, patch).await;
    assert_eq!(code, 200);
    let (_, a) = get(&client, &format!("{MAPS}/a")).await;
    assert_eq!(a["data"], json!({"b": "2", "c": "3"}));
    assert_eq!(a["metadata"]["generation"], 4);

    let (code, _) = send(&client, "PUT", &format!("{MAPS}/a"), map("a")).await;
    assert_eq!(code, 409, "the version is that of before the patch");

    let stale = json!({"metadata": {"resourceVersion": "7"}});
    let (code, _) = send_as(&client, "PATCH", &format!("{MAPS}/a"), merge, stale).await;
    assert_eq!(code, 409);
    let other = json!({"preconditions": {"uid": "another"}});
    let (code, _) = send(&client, "DELETE", &format!("{MAPS}/b"), other).await;
    assert_eq!(code, 409);
    assert_eq!(
        send(&client, "DELETE", &format!("{MAPS}/b"), Value::Null)
            .await
            .0,
        200
    );
    assert_eq!(get(&client, &format!("{MAPS}/b")).await.0, 404);
    let names = async |query: &str| {
        let (_, list) = get(&client, &format!("{MAPS}{query}")).await;
        let items = list["items"].as_array().unwrap().clone();
        let names = items
            .iter()
            .map(|item| item["metadata"]["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    assert_eq!(names("").await, ["a", "c"]);
    assert_eq!(names("?labelSelector=x%3Dy").await, ["c"]);

    let apply = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "d"}, "data": {"k": "v"}});
    let ssa = "application/apply-patch+yaml";
    let path = format!("{MAPS}/d?fieldManager=me");
    assert_eq!(send_as(&client, "PATCH", &path, ssa, apply).await.0, 201);

    assert_eq!(server.writes.load(Ordering::Relaxed), 0, "nothing was sent");
    let changes: Vec<String> = seam
        .end_plan()
        .iter()
        .map(|change| {
            let name = change.info.name.as_deref().unwrap();
            let before = if change.before.is_some() {
                "there"
            } else {
                "-"
            };
            let after = if change.after.is_some() { "there" } else { "-" };
            format!("{} {name} {before} {after}", change.info.verb)
        })
        .collect();
    assert_eq!(
        changes,
        [
            "create c - there",
            "patch a there there",
            "delete b there -",
            "patch d - there"
        ]
    );
    assert_eq!(names("").await, ["a", "b"]);
}

#[tokio::test]
async fn a_plan_reads_no_other_resource() {
    let server = Objects::default().with("/api/v1/namespaces/default/secrets/s", map("s"));
    let seam = Seam::new();
    let client = seam.wrap(server.client());
    seam.start_plan();
    for name in ["../secrets/s", "..", "a%2Fb"] {
        let new = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        let (code, status) = send(&client, "POST", MAPS, new).await;
        assert_eq!(code, 400, "{name}: {status}");
        let message = status["message"].as_str().unwrap();
        assert!(message.starts_with("the name "), "{message}");
    }
    assert!(seam.end_plan().is_empty());
}

#[tokio::test]
async fn a_plan_keeps_objects_with_finalizers_until_they_are_removed() {
    let mut held = map("a");
    held["metadata"]["finalizers"] = json!(["x"]);
    let server = Objects::default().with(&format!("{MAPS}/a"), held);
    let seam = Seam::new();
    let client = seam.wrap(server.client());
    seam.start_plan();
    let path = format!("{MAPS}/a");
    send(&client, "DELETE", MAPS, Value::Null).await;
    let (code, a) = get(&client, &path).await;
    assert_eq!(code, 200);
    assert!(a["metadata"]["deletionTimestamp"].is_string());
    let patch = json!({"metadata": {"finalizers": null}});
    send_as(
        &client,
        "PATCH",
        &path,
        "application/merge-patch+json",
        patch,
    )
    .await;
    assert_eq!(get(&client, &path).await.0, 404);
    let (code, _) = send(&client, "PUT", &format!("{path}/unknown"), json!({})).await;
    assert_eq!(code, 405);
}

#[tokio::test]
async fn a_plan_reads_the_server_uncompressed() {
    // The decompression layer sends this header, and kube-apiserver compresses long responses.
    let service = tower::service_fn(async |request: Request<Body>| {
        assert!(request.method() == Method::GET || request.uri().query() == Some("dryRun=All"));
        let accepted = request.headers().get(http::header::ACCEPT_ENCODING);
        let gzip = accepted.is_some_and(|it| it.to_str().unwrap().contains("gzip"));
        let body = match gzip {
            true => b"\x1f\x8b".to_vec(),
            false => serde_json::to_vec(&map("a")).unwrap(),
        };
        Ok::<_, Infallible>(Response::new(Body::from(body)))
    });
    let seam = Seam::new();
    let client = seam.wrap(kube::Client::new(service, "default"));
    seam.start_plan();
    let request = Request::delete(format!("{MAPS}/a"))
        .header(http::header::ACCEPT_ENCODING, "gzip")
        .body(Body::empty());
    let response = client.send(request.unwrap()).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(seam.end_plan().len(), 1);
}

#[tokio::test]
async fn a_write_that_changes_nothing_is_no_change() {
    let server = Objects::default().with(&format!("{MAPS}/a"), map("a"));
    let seam = Seam::new();
    let client = seam.wrap(server.client());
    seam.start_plan();
    let path = format!("{MAPS}/a");
    let patch = json!({"data": {"a": "1"}});
    let (code, same) = send_as(
        &client,
        "PATCH",
        &path,
        "application/merge-patch+json",
        patch,
    )
    .await;
    assert_eq!((code, same), (200, map("a")));
    assert_eq!(send(&client, "PUT", &path, map("a")).await.1, map("a"));
    assert!(seam.end_plan().is_empty());
}

#[tokio::test]
async fn a_planned_object_is_on_one_page_only() {
    let service = tower::service_fn(async |request: Request<Body>| {
        let query = request.uri().query().unwrap_or_default();
        let body = match (request.uri().path().ends_with("/a"), query) {
            (true, "") => map("a"),
            (true, _) => {
                let mut changed = map("a");
                changed["data"]["a"] = json!("2");
                changed
            }
            (_, "limit=1") => json!({"metadata": {"continue": "b"}, "items": [map("a")]}),
            _ => json!({"metadata": {}, "items": [map("b")]}),
        };
        Ok::<_, Infallible>(Response::new(Body::from(
            serde_json::to_vec(&body).unwrap(),
        )))
    });
    let seam = Seam::new();
    let client = seam.wrap(kube::Client::new(service, "default"));
    seam.start_plan();
    let patch = json!({"data": {"a": "2"}});
    let merge = "application/merge-patch+json";
    send_as(&client, "PATCH", &format!("{MAPS}/a"), merge, patch).await;
    let mut names = Vec::new();
    for query in ["limit=1", "limit=1&continue=b"] {
        let (_, page) = get(&client, &format!("{MAPS}?{query}")).await;
        for item in page["items"].as_array().unwrap() {
            names.push(item["metadata"]["name"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(names, ["a", "b"]);
}

/// A server that stores nothing, adds a default to each object, and keeps the dry runs.
#[derive(Clone, Default)]
struct Validating {
    requests: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Validating {
    fn client(&self) -> kube::Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move { Ok::<_, Infallible>(server.response(request).await) }
        });
        kube::Client::new(service, "default")
    }

    async fn response(&self, request: Request<Body>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let line = format!("{} {}", parts.method, parts.uri);
        let is_known = parts.uri.path().ends_with("/a") || parts.uri.path().ends_with("/status");
        let (code, response) = match parts.method {
            Method::GET if is_known => (200, map("a")),
            Method::GET => (
                404,
                json!({"kind": "Status", "code": 404, "reason": "NotFound"}),
            ),
            Method::POST if body["data"]["a"] == "bad" => {
                let text = json!({"kind": "Status", "code": 422, "reason": "Invalid", "message": "a is bad"});
                (422, text)
            }
            Method::POST => {
                let mut new = body.clone();
                new["data"]["default"] = json!("yes");
                (201, new)
            }
            _ => {
                let mut new = map("a");
                opkit_apimachinery::patch::merge_patch(&mut new, &body);
                new["data"]["default"] = json!("yes");
                (200, new)
            }
        };
        if parts.method != Method::GET {
            self.requests.lock().push((line, body));
        }
        let body = Body::from(serde_json::to_vec(&response).unwrap());
        Response::builder().status(code).body(body).unwrap()
    }
}

#[tokio::test]
async fn a_plan_has_what_the_server_made_of_the_writes() {
    let server = Validating::default();
    let seam = Seam::new();
    let client = seam.wrap(server.client());
    seam.start_plan();
    let path = format!("{MAPS}/a");
    let merge = "application/merge-patch+json";
    let patch = async |body: Value| send_as(&client, "PATCH", &path, merge, body).await;

    let (_, first) = patch(json!({"data": {"a": "2"}})).await;
    assert_eq!(first["data"], json!({"a": "2", "b": "2", "default": "yes"}));
    // The server knows nothing of the first patch: both are merged here.
    let version = first["metadata"]["resourceVersion"].clone();
    let second = json!({"metadata": {"resourceVersion": version}, "data": {"b": "3"}});
    let (code, second) = patch(second).await;
    assert_eq!((code, &second["data"]["a"]), (200, &json!("2")));
    assert_eq!(second["data"]["b"], "3");
    let (code, _) = patch(json!({"metadata": {"resourceVersion": "7"}})).await;
    assert_eq!(code, 409, "7 is the version before the plan");

    let new = |name: &str, a: &str| json!({"kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": a}});
    let (_, made) = send(&client, "POST", MAPS, new("c", "1")).await;
    assert_eq!(made["data"]["default"], "yes");
    let (code, refused) = send(&client, "POST", MAPS, new("d", "bad")).await;
    assert_eq!((code, &refused["message"]), (422, &json!("a is bad")));
    let options = json!({"propagationPolicy": "Background"});
    assert_eq!(send(&client, "DELETE", &path, options).await.0, 200);

    let requests = server.requests.lock().clone();
    let all = json!(["All"]);
    for (line, body) in &requests {
        let is_dry = match line.starts_with("DELETE") {
            // The server ignores the query of a deletion with a body.
            true => body["dryRun"] == all && body["propagationPolicy"] == "Background",
            false => line.ends_with("?dryRun=All"),
        };
        assert!(is_dry, "{line} {body}");
    }
    // The version of the plan is replaced by that of the server.
    assert_eq!(requests[1].1["metadata"]["resourceVersion"], "7");
    let planned = seam.planned(0);
    assert!(
        planned.iter().all(|change| change.unchecked.is_none()),
        "{planned:?}"
    );
    assert_eq!(planned.len(), 4);
}

#[tokio::test]
async fn a_configuration_that_is_applied_again_replaces_the_first_one() {
    let server = Validating::default();
    let seam = Seam::new();
    let client = seam.wrap(server.client());
    seam.start_plan();
    let path = format!("{MAPS}/a?fieldManager=op&force=true");
    let apply = async |data: Value| {
        let ssa = "application/apply-patch+yaml";
        let body = json!({"metadata": {"name": "a"}, "data": data});
        send_as(&client, "PATCH", &path, ssa, body).await.1["data"].clone()
    };
    apply(json!({"x": "1"})).await;
    let expected = json!({"a": "1", "b": "2", "y": "1", "default": "yes"});
    assert_eq!(apply(json!({"y": "1"})).await, expected);
}

#[tokio::test]
async fn a_plan_sends_nothing_that_only_it_knows() {
    let server = Validating::default();
    let seam = Seam::new();
    let client = seam.wrap(server.client());
    seam.start_plan();
    let namespace = json!({"kind": "Namespace", "metadata": {"name": "n"}});
    send(&client, "POST", "/api/v1/namespaces", namespace).await;
    let inside = "/api/v1/namespaces/n/configmaps";
    let map = json!({"kind": "ConfigMap", "metadata": {"name": "m"}});
    assert_eq!(send(&client, "POST", inside, map).await.0, 201);
    let patch = json!({"data": {"a": "1"}});
    let merge = "application/merge-patch+json";
    send_as(&client, "PATCH", &format!("{inside}/m"), merge, patch).await;
    // The work of the operator itself is no change.
    let events = "/apis/events.k8s.io/v1/namespaces/default/events";
    let event = json!({"kind": "Event", "metadata": {"name": "e"}});
    assert_eq!(send(&client, "POST", events, event).await.0, 201);
    let exec = format!("{}/pods/p/exec?command=rm", "/api/v1/namespaces/default");
    assert_eq!(get(&client, &exec).await.0, 405);
    assert_eq!(send(&client, "POST", "/logs", Value::Null).await.0, 405);

    let sent: Vec<String> = server
        .requests
        .lock()
        .iter()
        .map(|it| it.0.clone())
        .collect();
    assert_eq!(sent, ["POST /api/v1/namespaces?dryRun=All"]);
    let planned = seam.planned(0);
    let reasons: Vec<_> = planned.iter().map(|it| it.unchecked.as_deref()).collect();
    let missing = "the server does not have the namespace n yet";
    let unknown = "the server does not have the object yet";
    assert_eq!(reasons, [None, Some(missing), Some(unknown)]);
}

#[tokio::test]
async fn a_dry_run_of_the_caller_is_no_change() {
    let server = Validating::default();
    let seam = Seam::new();
    let client = seam.wrap(server.client());
    seam.start_plan();
    let path = format!("{MAPS}/a");
    for (path, options) in [
        (path.clone(), json!({"dryRun": ["All"]})),
        (
            format!("{path}?dryRun=All"),
            json!({"gracePeriodSeconds": 0}),
        ),
        (format!("{path}?dryRun=All"), Value::Null),
    ] {
        assert_eq!(send(&client, "DELETE", &path, options).await.0, 200);
    }
    for (_, body) in &*server.requests.lock() {
        assert_eq!(body["dryRun"], json!(["All"]));
    }
    assert!(seam.planned(0).is_empty());
    assert_eq!(get(&client, &path).await.0, 200);
}
