use serde_json::json;

use super::*;

fn robot() -> Unstructured {
    Unstructured::from(json!({
        "apiVersion": "robot.opkit.dev/v1",
        "kind": "Robot",
        "metadata": {
            "name": "one", "namespace": "default", "generation": 3, "labels": {"a": "b"},
            "finalizers": ["x"],
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "u"},
                "nonsense",
            ],
        },
        "spec": {"size": 3, "on": true, "name": "text", "none": null},
        "status": {"conditions": [{"type": "Ready", "status": "True", "reason": "R", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    }))
}

#[test]
fn what_every_object_has_is_read() {
    let robot = robot();
    assert_eq!(robot.key().to_string(), "default/one");
    assert_eq!(
        (robot.api_version(), robot.kind()),
        ("robot.opkit.dev/v1", "Robot")
    );
    assert_eq!(robot.generation(), Some(3));
    assert_eq!(robot.finalizers(), ["x"]);
    assert_eq!(robot.owner_references().len(), 1);
    assert_eq!(robot.condition("Ready"), Some("True"));
    assert_eq!(robot.condition("Other"), None);
    assert_eq!(robot.conditions().len(), 1);
    assert!(!robot.is_deleting());
}

#[test]
fn paths_lead_into_objects() {
    let mut robot = robot();
    assert_eq!(robot.get_i64(&["spec", "size"]), Some(3));
    assert_eq!(robot.get(&["spec", "on"]), Some(&json!(true)));
    assert_eq!(robot.get_str(&["spec", "missing"]), None);
    robot.set(&["spec", "none", "deep", "er"], "x").unwrap();
    assert_eq!(robot.get_str(&["spec", "none", "deep", "er"]), Some("x"));
    let before = robot.clone();
    let error = robot
        .set(&["spec", "new", "size"], 1)
        .and_then(|()| robot.set(&["spec", "size", "a"], 1));
    assert_eq!(
        error.unwrap_err().to_string(),
        r#"cannot set the field "spec.size.a": "spec.size" is not an object"#
    );
    assert_eq!(robot.remove(&["spec", "new"]), Some(json!({"size": 1})));
    assert_eq!(robot, before);
    assert_eq!(robot.remove(&["a", "b"]), None);
}

#[test]
fn labels_are_created_if_there_are_none() {
    let mut object = Unstructured::from(json!({"metadata": 5}));
    object.set_label("a", "b");
    assert_eq!(object.labels().get("a"), Some(&"b"));
    let kind = Kind::of::<k8s_openapi::api::apps::v1::Deployment>();
    let made = Unstructured::new(&kind, ("shops", "web"));
    assert_eq!((made.api_version(), made.kind()), ("apps/v1", "Deployment"));
    assert_eq!(made.key().to_string(), "shops/web");
}
