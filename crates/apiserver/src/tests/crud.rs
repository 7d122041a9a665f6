use super::*;

#[tokio::test]
async fn an_object_is_created_read_changed_and_deleted() {
    let api = Api::start();
    let (code, created) = api.post(CONFIG_MAPS, config_map("one")).await;
    assert_eq!(code, 201);
    assert_eq!(created["metadata"]["namespace"], "default");
    assert!(created["metadata"]["uid"].is_string());
    assert!(
        created["metadata"]["generation"].is_null(),
        "config maps have no generation"
    );
    assert_eq!(created["metadata"]["managedFields"][0]["manager"], "test");

    let path = format!("{CONFIG_MAPS}/one");
    assert_eq!(api.get(&path).await.1, created);
    let (code, changed) = api.merge(&path, json!({"data": {"c": "d"}})).await;
    assert_eq!(
        (code, &changed["data"]),
        (200, &json!({"a": "b", "c": "d"}))
    );

    let response = api.put(&path, created.clone()).await;
    assert_eq!(response.0, 409);
    assert_eq!(
        message(&response),
        "Operation cannot be fulfilled on configmaps \"one\": the object has been modified; \
         please apply your changes to the latest version and try again"
    );
    let (code, response) = api.delete(&path, Value::Null).await;
    assert_eq!((code, &response["status"]), (200, &json!("Success")));
    let response = api.get(&path).await;
    assert_eq!(
        (response.0, message(&response)),
        (404, "configmaps \"one\" not found")
    );
    assert_eq!(
        response.1["details"],
        json!({"name": "one", "kind": "configmaps"})
    );
}

#[tokio::test]
async fn a_write_that_changes_nothing_keeps_the_version() {
    let api = Api::start();
    let (_, created) = api.post(CONFIG_MAPS, config_map("one")).await;
    let (_, again) = api
        .merge(&format!("{CONFIG_MAPS}/one"), json!({"data": {"a": "b"}}))
        .await;
    assert_eq!(again, created);
}

#[tokio::test]
async fn a_dry_run_stores_nothing() {
    let api = Api::start();
    let (code, _) = api
        .post(&format!("{CONFIG_MAPS}?dryRun=All"), config_map("one"))
        .await;
    assert_eq!(code, 201);
    assert_eq!(api.get(&format!("{CONFIG_MAPS}/one")).await.0, 404);
}

#[tokio::test]
async fn names_are_generated_or_refused() {
    let api = Api::start();
    let mut object = config_map("");
    object["metadata"] = json!({"generateName": "part-"});
    let (_, created) = api.post(CONFIG_MAPS, object).await;
    let name = created["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("part-") && name.len() == 10, "{name}");

    let response = api.post(CONFIG_MAPS, config_map("No")).await;
    assert_eq!(response.0, 422);
    assert!(message(&response).starts_with("ConfigMap \"No\" is invalid: metadata.name: Invalid value: \"No\": a lowercase RFC 1123 subdomain"), "{}", message(&response));
    assert_eq!(response.1["details"]["causes"][0]["field"], "metadata.name");
    api.post(CONFIG_MAPS, config_map("one")).await;
    let response = api.post(CONFIG_MAPS, config_map("one")).await;
    assert_eq!(
        (response.0, message(&response)),
        (409, "configmaps \"one\" already exists")
    );
    let response = api
        .post("/api/v1/namespaces/nowhere/configmaps", config_map("one"))
        .await;
    assert_eq!(
        (response.0, message(&response)),
        (404, "namespaces \"nowhere\" not found")
    );
}

#[tokio::test]
async fn lists_are_selected_by_labels_and_fields() {
    let api = Api::alone();
    for name in ["one", "two"] {
        let mut object = config_map(name);
        object["metadata"]["labels"] = json!({"name": name});
        api.post(CONFIG_MAPS, object).await;
    }
    let names = async |query: &str| -> Vec<String> {
        let (_, list) = api.get(&format!("{CONFIG_MAPS}?{query}")).await;
        let items = list["items"].as_array().unwrap().iter();
        items
            .map(|item| item["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(names("").await, ["one", "two"]);
    assert_eq!(names("labelSelector=name%3Done").await, ["one"]);
    assert_eq!(names("fieldSelector=metadata.name%21%3Done").await, ["two"]);
    let response = api
        .get(&format!("{CONFIG_MAPS}?fieldSelector=data.a%3Db"))
        .await;
    assert_eq!(
        (response.0, message(&response)),
        (
            400,
            "\"data.a\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        )
    );
}

#[tokio::test]
async fn unknown_fields_are_refused_reported_or_dropped() {
    let api = Api::start();
    let mut object = config_map("one");
    object["colour"] = json!("red");
    let strict = format!("{CONFIG_MAPS}?fieldValidation=Strict");
    let response = api.post(&strict, object.clone()).await;
    assert_eq!(response.0, 400);
    assert!(message(&response).ends_with("strict decoding error: unknown field \"colour\""));
    let (code, created) = api.post(CONFIG_MAPS, object).await;
    assert_eq!((code, &created["colour"]), (201, &Value::Null));
}

#[tokio::test]
async fn a_secret_may_be_empty() {
    let api = Api::start();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "data": {"empty": ""},
    });
    let (code, created) = api.post("/api/v1/namespaces/default/secrets", secret).await;
    assert_eq!(
        (code, &created["data"]["empty"]),
        (201, &json!("")),
        "{created}"
    );
}

#[tokio::test]
async fn unserved_requests_have_the_codes_of_kubernetes() {
    let api = Api::start();
    let check = async |path: &str, code: u16| assert_eq!(api.get(path).await.0, code, "{path}");
    check("/readyz", 200).await;
    check("/nowhere", 404).await;
    check("/apis/nobody.example.com/v1/things", 404).await;
    check("/api/v1/namespaces/default/pods/a/log", 404).await;
    let (code, _) = api.put(CONFIG_MAPS, config_map("one")).await;
    assert_eq!(code, 405);
    let kind = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}});
    assert_eq!(api.post(CONFIG_MAPS, kind).await.0, 400);
}

#[tokio::test]
async fn events_are_one_store_behind_two_apis() {
    let api = Api::start();
    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e"},
        "regarding": {"kind": "Pod", "name": "p", "namespace": "default"}, "note": "it works",
        "reason": "Works", "type": "Normal", "action": "Work", "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "me", "reportingInstance": "me-1",
    });
    let (code, response) = api
        .post("/apis/events.k8s.io/v1/namespaces/default/events", event)
        .await;
    assert_eq!(code, 201, "{response}");
    let path = "/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dp";
    let (_, list) = api.get(path).await;
    assert_eq!(list["items"][0]["message"], "it works");
    assert_eq!(list["items"][0]["involvedObject"]["kind"], "Pod");
    assert_eq!(list["items"][0]["reportingComponent"], "me");
    let (_, back) = api
        .get("/apis/events.k8s.io/v1/namespaces/default/events/e")
        .await;
    assert_eq!(back["note"], "it works");
}

#[tokio::test]
async fn paths_across_namespaces_are_read_only() {
    let api = Api::start();
    api.post(CONFIG_MAPS, config_map("one")).await;
    assert_eq!(api.get("/api/v1/configmaps").await.0, 200);
    assert_eq!(api.delete("/api/v1/configmaps", Value::Null).await.0, 405);
    assert_eq!(
        api.post("/api/v1/configmaps", config_map("two")).await.0,
        405
    );
    assert_eq!(api.get("/api/v1/namespaces/default/nodes").await.0, 404);
    assert_eq!(api.get(&format!("{CONFIG_MAPS}/one")).await.0, 200);
}

#[tokio::test]
async fn a_body_of_another_kind_is_refused() {
    let api = Api::start();
    api.post(CONFIG_MAPS, config_map("one")).await;
    let path = format!("{CONFIG_MAPS}/one");
    let apply = format!("{path}?fieldManager=me");
    let (merge, ssa) = (
        "application/merge-patch+json",
        "application/apply-patch+yaml",
    );
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one"}});
    for (path, content_type, body) in [
        (&path, merge, json!([1, 2])),
        (&path, merge, json!({"metadata": {"name": "two"}})),
        (&apply, ssa, json!([1])),
        (&apply, ssa, json!({"metadata": {"name": "one"}})),
        (&apply, ssa, secret),
    ] {
        let (code, response) = api.send(Method::PATCH, path, content_type, &body).await;
        assert_eq!(code, 400, "{body}: {response}");
    }
    assert_eq!(api.merge(&path, json!({"kind": "Secret"})).await.0, 422);
    assert_eq!(api.get(&path).await.1["data"], json!({"a": "b"}));
}

#[tokio::test]
async fn metadata_is_validated() {
    let api = Api::start();
    let owner =
        json!({"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": true});
    let mut other = owner.clone();
    other["uid"] = json!("v");
    for (metadata, want) in [
        (
            json!({"labels": {"a b": "c"}}),
            "metadata.labels: Invalid value: \"a b\": name part must",
        ),
        (
            json!({"labels": {"a": "x".repeat(70)}}),
            "must be no more than 63 bytes",
        ),
        (
            json!({"finalizers": ["a b"]}),
            "metadata.finalizers: Invalid value: \"a b\"",
        ),
        (
            json!({"ownerReferences": [{"kind": "Pod"}]}),
            "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
        ),
        (
            json!({"ownerReferences": [owner, other]}),
            "Only one reference can have Controller set to true. Found \"true\" in references for Pod/p and Pod/p",
        ),
    ] {
        let mut object = config_map("one");
        for (field, value) in metadata.as_object().unwrap() {
            object["metadata"][field] = value.clone();
        }
        let response = api.post(CONFIG_MAPS, object).await;
        assert_eq!(response.0, 422, "{want}");
        assert!(
            message(&response).contains(want),
            "{want:?}: {}",
            message(&response)
        );
    }
}

#[tokio::test]
async fn a_body_has_a_limit() {
    let api = Api::start();
    let mut object = config_map("one");
    object["data"]["a"] = json!("x".repeat(4 << 20));
    assert_eq!(api.post(CONFIG_MAPS, object).await.0, 413);
}

#[tokio::test]
async fn an_object_has_a_limit() {
    let api = Api::start();
    let roles = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles";
    let role = |name: &str, length: usize| {
        let rule = json!({"apiGroups": [""], "resources": ["x".repeat(length)], "verbs": ["get"]});
        json!({"metadata": {"name": name}, "rules": [rule]})
    };
    let too_large = |response: &(u16, Value)| {
        assert_eq!(response.0, 500, "{}", message(response));
        assert_eq!(response.1["reason"], Value::Null);
        assert_eq!(message(response), "etcdserver: request is too large");
    };
    too_large(&api.post(roles, role("a", 1_600_000)).await);
    let dry_run = format!("{roles}?dryRun=All");
    assert_eq!(api.post(&dry_run, role("a", 1_600_000)).await.0, 201);
    let (code, stored) = api.post(roles, role("a", 800_000)).await;
    assert_eq!(code, 201);

    let path = format!("{roles}/a");
    let copies = async |count: usize| {
        let copy = json!({"op": "copy", "from": "/rules/0", "path": "/rules/-"});
        let patch = Value::Array(vec![copy; count]);
        let json_patch = "application/json-patch+json";
        api.send(Method::PATCH, &path, json_patch, &patch).await
    };
    too_large(&copies(1).await);
    assert_eq!(copies(300).await.0, 422);
    too_large(&api.merge(&path, role("a", 1_600_000)).await);
    assert_eq!(api.get(&path).await.1, stored);
}

#[tokio::test]
async fn a_dry_run_does_not_refuse_a_version() {
    let api = Api::start();
    let map = json!({"metadata": {"name": "a", "resourceVersion": "7"}});
    let maps = "/api/v1/namespaces/default/configmaps";
    let dry = format!("{maps}?dryRun=All");
    assert_eq!(api.post(&dry, map.clone()).await.0, 201);
    assert_eq!(api.post(maps, map).await.0, 500);
}

#[tokio::test]
async fn a_pod_needs_a_container() {
    let api = Api::start();
    for containers in [json!(null), json!([])] {
        let pod = json!({"metadata": {"name": "a"}, "spec": {"containers": containers}});
        let (code, refused) = api.post("/api/v1/namespaces/default/pods", pod).await;
        assert_eq!(code, 422);
        let message = "Pod \"a\" is invalid: spec.containers: Required value";
        assert_eq!(refused["message"], message);
    }
    let template = json!({
        "metadata": {"labels": {"a": "b"}}, "spec": {"containers": null},
    });
    let deployment = json!({
        "metadata": {"name": "a"},
        "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
    });
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let (code, refused) = api.post(deployments, deployment).await;
    assert_eq!(code, 422, "{refused}");
}
