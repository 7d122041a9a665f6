use super::*;

async fn with_maps(names: &[&str]) -> Api {
    let api = Api::alone();
    for name in names {
        api.post(CONFIG_MAPS, config_map(name)).await;
    }
    api
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap();
    items
        .iter()
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect()
}

fn next(list: &Value) -> String {
    let token = list["metadata"]["continue"].as_str().unwrap();
    format!("{CONFIG_MAPS}?limit=2&continue={token}")
}

#[tokio::test]
async fn pages_are_of_one_revision() {
    let api = with_maps(&["a", "b", "c", "d", "e"]).await;
    let (_, first) = api.get(&format!("{CONFIG_MAPS}?limit=2")).await;
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 3);

    // Changes between two requests are on no page.
    api.delete(&format!("{CONFIG_MAPS}/c"), Value::Null).await;
    api.delete(&format!("{CONFIG_MAPS}/a"), Value::Null).await;
    api.post(CONFIG_MAPS, config_map("bb")).await;
    let changed = json!({"data": {"a": "changed"}});
    api.merge(&format!("{CONFIG_MAPS}/d"), changed).await;

    let (_, second) = api.get(&next(&first)).await;
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(second["items"][1]["data"]["a"], "b");
    assert_eq!(second["metadata"]["remainingItemCount"], 1);
    let version = &first["metadata"]["resourceVersion"];
    assert_eq!(&second["metadata"]["resourceVersion"], version);

    let (_, third) = api.get(&next(&second)).await;
    assert_eq!(names(&third), ["e"]);
    assert_eq!(third["metadata"], json!({"resourceVersion": version}));
    let (_, now) = api.get(CONFIG_MAPS).await;
    assert_eq!(names(&now), ["b", "bb", "d", "e"]);
}

#[tokio::test]
async fn pages_over_all_namespaces_join() {
    let api = Api::start();
    for namespace in ["a", "a-b", "b"] {
        let body = json!({"metadata": {"name": namespace}});
        api.post("/api/v1/namespaces", body).await;
        for name in ["x", "y"] {
            let path = format!("/api/v1/namespaces/{namespace}/configmaps");
            api.post(&path, config_map(name)).await;
        }
    }
    let (_, whole) = api.get("/api/v1/configmaps").await;
    let mut joined = Vec::new();
    let mut path = "/api/v1/configmaps?limit=1".to_owned();
    loop {
        let (code, page) = api.get(&path).await;
        assert_eq!(code, 200, "{page}");
        joined.extend(page["items"].as_array().unwrap().clone());
        match page["metadata"]["continue"].as_str() {
            None => break,
            Some(token) => path = format!("/api/v1/configmaps?limit=1&continue={token}"),
        }
    }
    assert_eq!(Value::from(joined), whole["items"]);
}

#[tokio::test]
async fn an_expired_token_comes_with_one_for_the_present_state() {
    let api = Api::with(Options {
        seed: Some(7),
        history: 3,
        ..Options::default()
    });
    for name in ["a", "b", "c"] {
        api.post(CONFIG_MAPS, config_map(name)).await;
    }
    let (_, first) = api.get(&format!("{CONFIG_MAPS}?limit=1")).await;
    for name in ["d", "e", "f", "g"] {
        api.post(CONFIG_MAPS, config_map(name)).await;
    }
    let (code, status) = api.get(&next(&first)).await;
    assert_eq!((code, &status["reason"]), (410, &json!("Expired")));
    let (code, rest) = api.get(&next(&status)).await;
    assert_eq!(code, 200, "{rest}");
    assert_eq!(names(&rest), ["b", "c"]);
    // From here on all pages are of one state again.
    let (_, rest) = api.get(&next(&rest)).await;
    assert_eq!(names(&rest), ["d", "e"]);

    let version = first["metadata"]["resourceVersion"].as_str().unwrap();
    let exact = format!("{CONFIG_MAPS}?resourceVersion={version}&resourceVersionMatch=Exact");
    let (code, status) = api.get(&exact).await;
    assert_eq!(code, 410);
    assert_eq!(
        status["message"],
        "The resourceVersion for the provided list is too old."
    );
}

#[tokio::test]
async fn an_exact_version_lists_the_past() {
    let api = with_maps(&["a"]).await;
    let (_, then) = api.get(CONFIG_MAPS).await;
    let version = then["metadata"]["resourceVersion"].as_str().unwrap();
    api.post(CONFIG_MAPS, config_map("b")).await;
    let exact = format!("{CONFIG_MAPS}?resourceVersion={version}&resourceVersionMatch=Exact");
    assert_eq!(api.get(&exact).await.1, then);
    let exact = format!("{CONFIG_MAPS}?resourceVersion={version}&limit=5");
    assert_eq!(api.get(&exact).await.1, then);
    let at_least = format!("{CONFIG_MAPS}?resourceVersion={version}");
    assert_eq!(names(&api.get(&at_least).await.1), ["a", "b"]);
}

#[tokio::test]
async fn custom_resources_have_pages() {
    let api = with_robots().await;
    for name in ["a", "b"] {
        let (code, response) = api.post(ROBOTS, robot(name)).await;
        assert_eq!(code, 201, "{response}");
    }
    let (_, page) = api.get(&format!("{ROBOTS}?limit=1")).await;
    assert_eq!(names(&page), ["a"]);
    let token = page["metadata"]["continue"].as_str().unwrap();
    let (_, page) = api.get(&format!("{ROBOTS}?limit=1&continue={token}")).await;
    assert_eq!(names(&page), ["b"]);
    assert_eq!(page["metadata"]["continue"], "");
}
