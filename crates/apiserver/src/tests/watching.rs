use super::*;

fn seen(frames: &[Value]) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    frames
        .iter()
        .map(|frame| {
            (
                text(&frame["type"]),
                text(&frame["object"]["metadata"]["name"]),
            )
        })
        .collect()
}

fn pairs(wanted: &[(&str, &str)]) -> Vec<(String, String)> {
    wanted
        .iter()
        .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
        .collect()
}

#[tokio::test]
async fn a_watch_delivers_every_event_after_its_version() {
    let api = Api::start();
    let (_, one) = api.post(CONFIG_MAPS, config_map("one")).await;
    let version = one["metadata"]["resourceVersion"].as_str().unwrap();
    api.post(CONFIG_MAPS, config_map("two")).await;
    api.merge(&format!("{CONFIG_MAPS}/one"), json!({"data": {"a": "c"}}))
        .await;
    api.delete(&format!("{CONFIG_MAPS}/two"), Value::Null).await;
    let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion={version}");
    let frames = api.frames(&path, 3).await;
    assert_eq!(
        seen(&frames),
        pairs(&[("ADDED", "two"), ("MODIFIED", "one"), ("DELETED", "two")])
    );
}

#[tokio::test]
async fn without_a_version_the_present_state_comes_first() {
    let api = Api::alone();
    api.post(CONFIG_MAPS, config_map("one")).await;
    let frames = api.frames(&format!("{CONFIG_MAPS}?watch=true"), 1).await;
    assert_eq!(seen(&frames), pairs(&[("ADDED", "one")]));
    let path = format!(
        "{CONFIG_MAPS}?watch=true&sendInitialEvents=true&allowWatchBookmarks=true\
         &resourceVersionMatch=NotOlderThan"
    );
    let frames = api.frames(&path, 2).await;
    assert_eq!(frames[1]["type"], "BOOKMARK");
    let annotations = &frames[1]["object"]["metadata"]["annotations"];
    assert_eq!(annotations["k8s.io/initial-events-end"], "true");
}

#[tokio::test]
async fn an_object_that_stops_matching_is_deleted_for_the_watch() {
    let api = Api::start();
    let mut object = config_map("one");
    object["metadata"]["labels"] = json!({"a": "b"});
    api.post(CONFIG_MAPS, object).await;
    api.merge(
        &format!("{CONFIG_MAPS}/one"),
        json!({"metadata": {"labels": {"a": "c"}}}),
    )
    .await;
    api.merge(
        &format!("{CONFIG_MAPS}/one"),
        json!({"metadata": {"labels": {"a": "b"}}}),
    )
    .await;
    let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion=1&labelSelector=a%3Db");
    let frames = api.frames(&path, 3).await;
    assert_eq!(
        seen(&frames),
        pairs(&[("ADDED", "one"), ("DELETED", "one"), ("ADDED", "one")])
    );
}

#[tokio::test]
async fn a_deleted_event_has_the_last_matching_state() {
    let api = Api::start();
    let mut object = config_map("one");
    object["metadata"]["labels"] = json!({"a": "b"});
    api.post(CONFIG_MAPS, object).await;
    let change = json!({"metadata": {"labels": {"a": "c"}}, "data": {"a": "new"}});
    let (_, changed) = api.merge(&format!("{CONFIG_MAPS}/one"), change).await;
    let path = format!("{CONFIG_MAPS}?watch=true&resourceVersion=1&labelSelector=a%3Db");
    let last = api.frames(&path, 2).await.remove(1);
    assert_eq!(last["type"], "DELETED");
    assert_eq!(last["object"]["data"]["a"], "b");
    let version = &changed["metadata"]["resourceVersion"];
    assert_eq!(last["object"]["metadata"]["resourceVersion"], *version);
}

#[tokio::test]
async fn an_overlong_timeout_is_limited() {
    let api = Api::start();
    api.post(CONFIG_MAPS, config_map("one")).await;
    let path = format!("{CONFIG_MAPS}?watch&timeoutSeconds={}", i64::MAX);
    assert_eq!(api.frames(&path, 1).await.len(), 1);
}

#[tokio::test]
async fn a_version_that_is_not_in_the_history_has_expired() {
    let api = Api::with(Options {
        seed: Some(7),
        history: 2,
        ..Options::default()
    });
    for name in ["one", "two", "three"] {
        api.post(CONFIG_MAPS, config_map(name)).await;
    }
    let frames = api
        .frames(&format!("{CONFIG_MAPS}?watch=true&resourceVersion=1"), 2)
        .await;
    assert_eq!(frames.len(), 1, "the watch ends after the error");
    assert_eq!(frames[0]["type"], "ERROR");
    assert_eq!(
        (&frames[0]["object"]["code"], &frames[0]["object"]["reason"]),
        (&json!(410), &json!("Expired"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_quiet_watch_sends_bookmarks_and_ends_at_its_timeout() {
    let api = Api::start();
    let path = "/api/v1/namespaces/default/secrets?watch=true&resourceVersion=1\
                &allowWatchBookmarks=true&timeoutSeconds=90";
    let frames = api.frames(path, 10).await;
    let types: Vec<_> = frames
        .iter()
        .map(|frame| frame["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        types,
        ["BOOKMARK", "BOOKMARK"],
        "after a minute, and at the end"
    );
}

#[tokio::test(start_paused = true)]
async fn a_read_at_a_future_version_waits_and_then_fails() {
    let api = Api::start();
    let response = api
        .get(&format!("{CONFIG_MAPS}?resourceVersion=100000"))
        .await;
    assert_eq!(response.0, 504);
    assert_eq!(
        response.1["details"]["causes"][0]["reason"],
        "ResourceVersionTooLarge"
    );
}

#[tokio::test]
async fn watches_end_when_the_server_stops() {
    let api = Api::start();
    let request = Request::get(format!("{CONFIG_MAPS}?watch=true&resourceVersion=1"));
    let request = request.body(Full::new(Bytes::new())).unwrap();
    let response = api.server.service().oneshot(request).await.unwrap();
    api.server.shutdown().await;
    assert!(
        response
            .into_body()
            .collect()
            .await
            .unwrap()
            .to_bytes()
            .is_empty()
    );
}
