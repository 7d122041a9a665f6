use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use opkit_client::Object;

use super::*;

fn owner(namespace: Option<&str>) -> Owner {
    let meta = ObjectMeta {
        namespace: namespace.map(str::to_owned),
        name: Some("robot-one".into()),
        uid: Some("u-1".into()),
        ..Default::default()
    };
    Owner::of(
        Kind {
            kind: "Robot".into(),
            ..Kind::of::<ConfigMap>()
        },
        &meta,
    )
}

fn desired<K: Object>(owner: &Owner, child: Value) -> Result<Desired, String> {
    desired_as::<K>(owner, child, Relation::Owned)
}

fn desired_as<K: Object>(
    owner: &Owner,
    child: Value,
    relation: Relation,
) -> Result<Desired, String> {
    let desired = Desired::new(owner, "me", Kind::of::<K>(), child, relation);
    desired.map_err(|error| error.to_string())
}

/// Returns a child with the annotations of another child that it was copied from.
fn copied(namespace: Option<&str>) -> Value {
    json!({"metadata": {"name": "a", "namespace": namespace, "annotations": {
        "opkit.dev/applied": "me:1", "opkit.dev/owner": "d/other:u-2", "kept": "yes",
    }}})
}

#[test]
fn a_child_that_is_created_once_has_an_owner_and_no_annotation() {
    let once = |child| desired_as::<Secret>(&owner(Some("d")), child, Relation::Once);
    let desired = once(copied(None)).unwrap();
    let meta = &desired.content["metadata"];
    assert_eq!(meta["ownerReferences"][0]["uid"], "u-1");
    assert_eq!(meta["annotations"], json!({"kept": "yes"}));
    let secret = json!({"metadata": {"name": "a"}, "stringData": {"password": "p"}});
    assert!(once(secret).is_ok());
    assert!(once(copied(Some("e"))).is_err());
}

#[test]
fn a_child_without_an_owner_reference_is_annotated_and_in_any_namespace() {
    let unowned = |from: Option<&str>, namespace| {
        desired_as::<Secret>(&owner(from), copied(namespace), Relation::Unowned)
    };
    let desired = unowned(Some("d"), Some("e")).unwrap();
    assert_eq!(desired.key, ("e", "a").into());
    let meta = &desired.content["metadata"];
    assert!(meta.get("ownerReferences").is_none());
    assert_eq!(meta["annotations"]["opkit.dev/owner"], "d/robot-one:u-1");
    let applied = meta["annotations"]["opkit.dev/applied"].as_str().unwrap();
    assert!(applied.starts_with("me:") && applied != "me:1");
    assert_eq!(unowned(Some("d"), None).unwrap().key, ("d", "a").into());
    let error = unowned(None, None).unwrap_err();
    assert_eq!(
        error,
        "Robot robot-one cannot own Secret a: the child needs a namespace"
    );
    let desired = desired_as::<Namespace>(&owner(Some("d")), copied(None), Relation::Unowned);
    assert_eq!(desired.unwrap().key, "a".into());
}

#[test]
fn a_child_is_completed() {
    let child = json!({"metadata": {"name": "a", "uid": "x", "labels": null}, "status": {}});
    let desired = desired::<ConfigMap>(&owner(Some("d")), child).unwrap();
    assert_eq!(desired.key, ("d", "a").into());
    let meta = &desired.content["metadata"];
    assert_eq!(meta["namespace"], "d");
    assert_eq!(meta["ownerReferences"][0]["uid"], "u-1");
    assert_eq!(meta["ownerReferences"][0]["controller"], true);
    assert!(meta.get("labels").is_none() && meta.get("uid").is_none());
    assert!(desired.content.get("status").is_none());
    assert_eq!(desired.content["kind"], "ConfigMap");
}

#[test]
fn children_that_cannot_be_owned_are_refused() {
    let named = |name: &str| json!({"metadata": {"name": name}});
    let elsewhere = json!({"metadata": {"name": "a", "namespace": "other"}});
    let secret = json!({"metadata": {"name": "a"}, "stringData": {}});
    let own = owner(Some("d"));
    let check = |result: Result<Desired, String>, expected: &str| {
        assert_eq!(result.map(|d| d.key.to_string()).unwrap_err(), expected);
    };
    check(
        desired::<ConfigMap>(&own, elsewhere.clone()),
        "Robot d/robot-one cannot own ConfigMap other/a: an owner and its children must be in the same namespace",
    );
    check(
        desired::<Namespace>(&own, named("a")),
        "Robot d/robot-one cannot own Namespace a: the child is cluster-scoped",
    );
    check(
        desired::<ConfigMap>(&own, json!({})),
        "Robot d/robot-one cannot apply a ConfigMap without a name",
    );
    check(
        desired::<Secret>(&own, secret),
        "cannot apply Secret d/a with stringData: the server converts it to data; set data instead",
    );
    assert!(desired::<ConfigMap>(&owner(None), elsewhere).is_ok());
    assert!(desired::<Namespace>(&owner(None), named("a")).is_ok());
    assert!(desired::<ConfigMap>(&owner(None), named("a")).is_err());
}

#[test]
fn the_hash_depends_on_the_content() {
    let hash = |data: &str| {
        let child = json!({"metadata": {"name": "a", "resourceVersion": data}, "data": {"k": "v"}});
        desired::<ConfigMap>(&owner(Some("d")), child).unwrap().hash
    };
    assert_eq!(hash("1"), hash("2"), "a version is not content");
    let child = json!({"metadata": {"name": "a"}, "data": {"k": "w"}});
    assert_ne!(
        hash("1"),
        desired::<ConfigMap>(&owner(Some("d")), child).unwrap().hash
    );
}

fn entry(manager: &str, operation: &str, fields: Value) -> ManagedFieldsEntry {
    ManagedFieldsEntry {
        manager: Some(manager.into()),
        operation: Some(operation.into()),
        fields_v1: Some(FieldsV1(fields)),
        ..Default::default()
    }
}

#[test]
fn ownership_by_create_is_transferred_to_apply() {
    let meta = ObjectMeta {
        resource_version: Some("7".into()),
        managed_fields: Some(vec![
            entry("others", "Update", json!({"f:x": {}})),
            entry("me", "Update", json!({"f:a": {"f:b": {}}})),
            entry("me", "Apply", json!({"f:a": {"f:c": {}}})),
        ]),
        ..Default::default()
    };
    let patch = upgrade_patch(&meta, "me", &[]).unwrap();
    assert_eq!(patch[0]["value"], "7");
    let entries = patch[1]["value"].as_array().unwrap();
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[0]["operation"], "Apply");
    assert_eq!(
        entries[0]["fieldsV1"],
        json!({"f:a": {"f:b": {}, "f:c": {}}})
    );
    assert_eq!(upgrade_patch(&meta, "nobody", &[]), None);
}

#[test]
fn fields_of_other_managers_are_transferred() {
    let mut of_status = entry("helm", "Update", json!({"f:status": {}}));
    of_status.subresource = Some("status".into());
    let meta = ObjectMeta {
        managed_fields: Some(vec![
            entry("helm", "Update", json!({"f:a": {"f:b": {}}})),
            of_status.clone(),
            entry("kubectl", "Apply", json!({"f:a": {"f:c": {}}})),
            entry("hpa", "Update", json!({"f:x": {}})),
        ]),
        ..Default::default()
    };
    let others = ["helm".to_owned(), "kubectl".to_owned()];
    let patch = upgrade_patch(&meta, "me", &others).unwrap();
    let entries: Vec<ManagedFieldsEntry> =
        serde_json::from_value(patch[1]["value"].clone()).unwrap();
    let ours = entry("me", "Apply", json!({"f:a": {"f:b": {}, "f:c": {}}}));
    let hpa = entry("hpa", "Update", json!({"f:x": {}}));
    assert_eq!(entries, [ours, of_status, hpa]);
}

#[test]
fn a_child_is_annotated() {
    let child = json!({"metadata": {"name": "a"}});
    let desired = desired::<ConfigMap>(&owner(Some("d")), child).unwrap();
    let applied = &desired.content["metadata"]["annotations"]["opkit.dev/applied"];
    assert!(applied.as_str().unwrap().starts_with("me:"), "{applied}");
}

#[test]
fn other_owners_are_kept_and_the_controller_is_added_once() {
    let references = json!([
        {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u-2"},
        {"apiVersion": "v1", "kind": "Robot", "name": "robot-one", "uid": "u-1"},
    ]);
    let child = json!({"metadata": {"name": "a", "ownerReferences": references}});
    let desired = desired::<ConfigMap>(&owner(Some("d")), child).unwrap();
    let references = desired.content["metadata"]["ownerReferences"]
        .as_array()
        .unwrap();
    let told: Vec<_> = references
        .iter()
        .map(|r| (&r["uid"], &r["controller"]))
        .collect();
    assert_eq!(
        told,
        [(&json!("u-2"), &Value::Null), (&json!("u-1"), &json!(true))]
    );
}
