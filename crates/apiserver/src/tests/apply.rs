use super::*;

async fn apply(api: &Api, manager: &str, force: bool, object: Value) -> (u16, Value) {
    let name = object["metadata"]["name"].as_str().unwrap();
    let path = format!("{CONFIG_MAPS}/{name}?fieldManager={manager}&force={force}");
    api.send(
        Method::PATCH,
        &path,
        "application/apply-patch+yaml",
        &object,
    )
    .await
}

#[tokio::test]
async fn apply_creates_then_changes_then_removes() {
    let api = Api::start();
    let (code, created) = apply(&api, "me", false, config_map("one")).await;
    assert_eq!(code, 201);
    assert_eq!(
        created["metadata"]["managedFields"][0]["operation"],
        "Apply"
    );
    let (code, again) = apply(&api, "me", false, config_map("one")).await;
    assert_eq!(
        (code, &again),
        (200, &created),
        "nothing changed, so nothing is written"
    );
    let mut other = config_map("one");
    other["data"] = json!({"c": "d"});
    let (_, changed) = apply(&api, "me", false, other).await;
    assert_eq!(
        changed["data"],
        json!({"c": "d"}),
        "what is no longer applied goes"
    );
}

#[tokio::test]
async fn fields_of_other_managers_are_taken_only_by_force() {
    let api = Api::start();
    api.post(CONFIG_MAPS, config_map("one")).await;
    let mut mine = config_map("one");
    mine["data"]["a"] = json!("mine");
    let response = apply(&api, "me", false, mine.clone()).await;
    assert_eq!(response.0, 409);
    let cause = &response.1["details"]["causes"][0];
    assert_eq!(cause["reason"], "FieldManagerConflict");
    assert_eq!(cause["field"], ".data.a");
    let (code, changed) = apply(&api, "me", true, mine).await;
    assert_eq!((code, &changed["data"]["a"]), (200, &json!("mine")));
}

#[tokio::test]
async fn an_update_entry_can_be_turned_into_an_apply_entry() {
    let api = Api::start();
    let (_, created) = api
        .post(&format!("{CONFIG_MAPS}?fieldManager=me"), config_map("one"))
        .await;
    assert_eq!(
        created["metadata"]["managedFields"][0]["operation"],
        "Update"
    );
    let patch = json!([
        {"op": "replace", "path": "/metadata/managedFields/0/operation", "value": "Apply"},
        {"op": "test", "path": "/metadata/resourceVersion", "value": created["metadata"]["resourceVersion"]},
    ]);
    let path = format!("{CONFIG_MAPS}/one?fieldManager=me");
    let (code, changed) = api
        .send(Method::PATCH, &path, "application/json-patch+json", &patch)
        .await;
    assert_eq!(code, 200, "{changed}");
    assert_eq!(
        changed["metadata"]["managedFields"][0]["operation"],
        "Apply"
    );
    let mut other = config_map("one");
    other["data"] = json!({});
    let (_, changed) = apply(&api, "me", false, other).await;
    assert!(changed["data"].get("a").is_none(), "{changed}");
}

#[tokio::test]
async fn apply_needs_a_manager_and_respects_a_version() {
    let api = Api::start();
    let path = format!("{CONFIG_MAPS}/one");
    let patch = config_map("one");
    let response = api
        .send(Method::PATCH, &path, "application/apply-patch+yaml", &patch)
        .await;
    assert_eq!(response.0, 422);
    apply(&api, "me", false, config_map("one")).await;
    let mut stale = config_map("one");
    stale["metadata"]["resourceVersion"] = json!("1");
    stale["data"]["a"] = json!("c");
    assert_eq!(apply(&api, "me", false, stale).await.0, 409);
}
