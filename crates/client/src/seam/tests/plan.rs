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
            (true, _) => map("a"),
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
