use super::*;

#[tokio::test]
async fn a_finalizer_holds_an_object_until_it_is_removed() {
    let api = Api::start();
    let mut object = config_map("one");
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    api.post(CONFIG_MAPS, object).await;
    let path = format!("{CONFIG_MAPS}/one");
    let (code, deleting) = api.delete(&path, Value::Null).await;
    assert_eq!(code, 200);
    assert!(deleting["metadata"]["deletionTimestamp"].is_string());

    let finalizers = json!({"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}});
    let response = api.merge(&path, finalizers).await;
    assert_eq!(response.0, 422);
    assert!(
        message(&response)
            .contains("no new finalizers can be added if the object is being deleted")
    );

    assert_eq!(
        api.merge(&path, json!({"metadata": {"finalizers": null}}))
            .await
            .0,
        200
    );
    assert_eq!(api.get(&path).await.0, 404);
}

#[tokio::test]
async fn preconditions_protect_an_object() {
    let api = Api::start();
    api.post(CONFIG_MAPS, config_map("one")).await;
    let path = format!("{CONFIG_MAPS}/one");
    let response = api
        .delete(&path, json!({"preconditions": {"uid": "another"}}))
        .await;
    assert_eq!(response.0, 409);
    assert!(message(&response).contains("the UID in the precondition (another) does not match"));
    let response = api
        .delete(&path, json!({"preconditions": {"resourceVersion": "1"}}))
        .await;
    assert_eq!(response.0, 409);
    assert_eq!(api.get(&path).await.0, 200);
}

async fn owner_and_child(api: &Api) -> Value {
    let (_, owner) = api.post(CONFIG_MAPS, config_map("owner")).await;
    let mut child = config_map("child");
    child["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true,
    }]);
    api.post(CONFIG_MAPS, child).await;
    owner
}

#[tokio::test]
async fn dependents_are_deleted_with_their_owner() {
    for policy in ["Background", "Foreground"] {
        let api = Api::start();
        owner_and_child(&api).await;
        api.delete(
            &format!("{CONFIG_MAPS}/owner"),
            json!({"propagationPolicy": policy}),
        )
        .await;
        api.until(&format!("{CONFIG_MAPS}/child"), Value::is_null)
            .await;
        api.until(&format!("{CONFIG_MAPS}/owner"), Value::is_null)
            .await;
    }
}

#[tokio::test]
async fn orphans_stay_without_their_owner_reference() {
    let api = Api::start();
    owner_and_child(&api).await;
    api.delete(
        &format!("{CONFIG_MAPS}/owner"),
        json!({"propagationPolicy": "Orphan"}),
    )
    .await;
    api.until(&format!("{CONFIG_MAPS}/owner"), Value::is_null)
        .await;
    let (code, child) = api.get(&format!("{CONFIG_MAPS}/child")).await;
    assert_eq!(
        (code, &child["metadata"]["ownerReferences"]),
        (200, &Value::Null)
    );
}

#[tokio::test]
async fn an_owner_that_never_existed_does_not_keep_a_dependent() {
    let api = Api::start();
    let mut child = config_map("child");
    child["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": "nobody"}]);
    api.post(CONFIG_MAPS, child).await;
    api.until(&format!("{CONFIG_MAPS}/child"), Value::is_null)
        .await;
}

#[tokio::test]
async fn a_deleted_namespace_is_emptied_first() {
    let api = Api::start();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    let (_, created) = api.post("/api/v1/namespaces", namespace).await;
    assert_eq!(created["status"]["phase"], "Active", "{created}");
    api.until("/api/v1/namespaces/shop/serviceaccounts/default", |o| {
        !o.is_null()
    })
    .await;
    let mut held = config_map("held");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    api.post("/api/v1/namespaces/shop/configmaps", held).await;

    api.delete("/api/v1/namespaces/shop", Value::Null).await;
    let path = "/api/v1/namespaces/shop/configmaps/held";
    api.until(path, |o| o["metadata"]["deletionTimestamp"].is_string())
        .await;
    let response = api
        .post("/api/v1/namespaces/shop/configmaps", config_map("late"))
        .await;
    assert_eq!(response.0, 403);
    assert_eq!(
        response.1["details"]["causes"][0]["reason"],
        "NamespaceTerminating"
    );

    api.merge(path, json!({"metadata": {"finalizers": null}}))
        .await;
    api.until("/api/v1/namespaces/shop", Value::is_null).await;
}

#[tokio::test]
async fn a_collection_is_deleted_by_selector() {
    let api = Api::start();
    for name in ["one", "two"] {
        let mut object = config_map(name);
        object["metadata"]["labels"] = json!({"name": name});
        api.post(CONFIG_MAPS, object).await;
    }
    api.delete(
        &format!("{CONFIG_MAPS}?labelSelector=name%3Done"),
        Value::Null,
    )
    .await;
    assert_eq!(api.get(&format!("{CONFIG_MAPS}/one")).await.0, 404);
    assert_eq!(api.get(&format!("{CONFIG_MAPS}/two")).await.0, 200);
}

/// Returns a ConfigMap with owners and a finalizer.
fn held(name: &str, owners: Value) -> Value {
    let mut object = config_map(name);
    object["metadata"]["ownerReferences"] = owners;
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    object
}

#[tokio::test]
async fn a_waiting_owner_is_released_when_a_dependent_drops_its_reference() {
    let api = Api::start();
    let (_, owner) = api.post(CONFIG_MAPS, config_map("owner")).await;
    let reference = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": true,
    }]);
    api.post(CONFIG_MAPS, held("child", reference)).await;
    let path = format!("{CONFIG_MAPS}/owner");
    api.delete(&path, json!({"propagationPolicy": "Foreground"}))
        .await;
    let child = format!("{CONFIG_MAPS}/child");
    api.until(&child, |o| o["metadata"]["deletionTimestamp"].is_string())
        .await;
    api.merge(&child, json!({"metadata": {"ownerReferences": null}}))
        .await;
    api.until(&path, Value::is_null).await;
}

#[tokio::test]
async fn owners_of_each_other_do_not_wait_forever() {
    let api = Api::start();
    let reference = |name: &str, object: &Value| {
        json!([{
            "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": object["metadata"]["uid"],
            "blockOwnerDeletion": true,
        }])
    };
    let (_, a) = api.post(CONFIG_MAPS, config_map("a")).await;
    let mut b = config_map("b");
    b["metadata"]["ownerReferences"] = reference("a", &a);
    let (_, b) = api.post(CONFIG_MAPS, b).await;
    let owners = json!({"metadata": {"ownerReferences": reference("b", &b)}});
    api.merge(&format!("{CONFIG_MAPS}/a"), owners).await;
    let foreground = json!({"propagationPolicy": "Foreground"});
    api.delete(&format!("{CONFIG_MAPS}/a"), foreground).await;
    api.until(&format!("{CONFIG_MAPS}/a"), Value::is_null).await;
    api.until(&format!("{CONFIG_MAPS}/b"), Value::is_null).await;
}

#[tokio::test]
async fn a_cluster_scoped_object_with_a_namespaced_owner_is_kept() {
    let api = Api::start();
    let (_, owner) = api.post(CONFIG_MAPS, config_map("owner")).await;
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": "r", "ownerReferences": [{
            "apiVersion": "v1", "kind": "ConfigMap", "name": "owner",
            "uid": owner["metadata"]["uid"],
        }]},
        "rules": [],
    });
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    api.post(roles, role).await;
    // A reference with the right UID and a wrong name does not count.
    let mut child = config_map("child");
    child["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "other", "uid": owner["metadata"]["uid"],
    }]);
    api.post(CONFIG_MAPS, child).await;
    api.until(&format!("{CONFIG_MAPS}/child"), Value::is_null)
        .await;
    assert_eq!(api.get(&format!("{roles}/r")).await.0, 200);
}

#[tokio::test]
async fn a_claim_stays_while_a_pod_uses_it() {
    let api = Api::start();
    let claims = "/api/v1/namespaces/default/persistentvolumeclaims";
    let claim = json!({
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    });
    let (_, created) = api.post(claims, claim).await;
    let finalizers = json!(["kubernetes.io/pvc-protection"]);
    assert_eq!(created["metadata"]["finalizers"], finalizers);
    let pods = "/api/v1/namespaces/default/pods";
    let pod = json!({
        "metadata": {"name": "a"},
        "spec": {
            "containers": [{"name": "main", "image": "nginx:1"}],
            "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}],
        },
    });
    assert_eq!(api.post(pods, pod).await.0, 201);
    let path = format!("{claims}/data");
    api.delete(&path, Value::Null).await;
    let running = |pod: &Value| pod["status"]["phase"] == "Running";
    api.until(&format!("{pods}/a"), running).await;
    assert_eq!(api.get(&path).await.0, 200);
    api.delete(&format!("{pods}/a"), Value::Null).await;
    api.until(&path, Value::is_null).await;
}
