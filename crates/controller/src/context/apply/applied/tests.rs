use k8s_openapi::api::apps::v1::Deployment;
use opkit_client::Kind;
use serde_json::json;

use super::*;
use crate::context::apply::desired::Relation;
use crate::object::owner::Owner;

const ME: &str = "robot-operator.robot";

/// Returns a deployment as the server stores it: the controller owns the image of container
/// `robot`.
fn deployment(version: &str, image: &str, others: &str) -> Deployment {
    let managed = json!([{
        "manager": ME, "operation": "Apply", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:template": {"f:spec": {"f:containers": {
            "k:{\"name\":\"robot\"}": {".": {}, "f:image": {}, "f:name": {}}}}}}},
    }]);
    serde_json::from_value(json!({
        "metadata": {
            "name": "a", "uid": "u", "resourceVersion": version,
            "annotations": {"note": others}, "managedFields": managed,
        },
        "spec": {
            "selector": {},
            "template": {"spec": {"containers": [
                {"name": "sidecar", "image": others}, {"name": "robot", "image": image},
            ]}},
        },
    }))
    .unwrap()
}

fn desired(image: &str) -> Desired {
    named("a", image)
}

fn named(name: &str, image: &str) -> Desired {
    let meta = ObjectMeta {
        namespace: Some("d".into()),
        ..Default::default()
    };
    let owner = Owner::of(Kind::of::<Deployment>(), &meta);
    let child = json!({"metadata": {"name": name}, "image": image});
    Desired::new(&owner, ME, Kind::of::<Deployment>(), child, Relation::Owned).unwrap()
}

fn remembering() -> AppliedChildren {
    let children = AppliedChildren::default();
    let response = deployment("10", "one", "x");
    let json = serde_json::to_value(&response).unwrap();
    let kind = TypeId::of::<Deployment>();
    children.remember(kind, &desired("one"), &response.metadata, &json, ME);
    children
}

fn verdict(children: &AppliedChildren, image: &str, current: &Deployment) -> &'static str {
    let kind = TypeId::of::<Deployment>();
    let json = || serde_json::to_value(current).ok();
    match children.is_as_applied(kind, &desired(image), &current.metadata, ME, json) {
        true => "unchanged",
        false => "apply",
    }
}

#[test]
fn nothing_is_sent_while_the_child_is_as_applied() {
    let children = remembering();
    assert_eq!(
        verdict(&children, "one", &deployment("10", "one", "x")),
        "unchanged"
    );
    assert_eq!(
        verdict(&children, "one", &deployment("11", "one", "changed")),
        "unchanged"
    );
}

#[test]
fn drift_new_content_and_a_new_object_are_applied() {
    let children = remembering();
    assert_eq!(
        verdict(&children, "one", &deployment("11", "drift", "x")),
        "apply"
    );
    assert_eq!(
        verdict(&children, "two", &deployment("10", "one", "x")),
        "apply"
    );
    let mut remade = deployment("11", "one", "x");
    remade.metadata.uid = Some("another".into());
    assert_eq!(verdict(&children, "one", &remade), "apply");
    let mut disowned = deployment("11", "one", "x");
    disowned.metadata.managed_fields = None;
    assert_eq!(verdict(&children, "one", &disowned), "apply");
}

#[test]
fn a_child_is_compared_once_per_version() {
    let children = remembering();
    let current = deployment("11", "one", "changed");
    assert_eq!(verdict(&children, "one", &current), "unchanged");
    let kind = TypeId::of::<Deployment>();
    let json = || panic!("compared again");
    assert!(children.is_as_applied(kind, &desired("one"), &current.metadata, ME, json));
}

#[test]
fn a_forgotten_child_is_applied() {
    let children = remembering();
    children.forget(TypeId::of::<Deployment>(), &("d", "a").into());
    assert_eq!(
        verdict(&children, "one", &deployment("10", "one", "x")),
        "apply"
    );
}

#[test]
fn children_whose_deletion_was_missed_are_forgotten() {
    let children = AppliedChildren::default();
    let response = deployment("10", "one", "x");
    let json = serde_json::to_value(&response).unwrap();
    let kind = TypeId::of::<Deployment>();
    // 1,000 children exist, and 20 times as many are created and deleted.
    let exists = |key: &ObjectKey| key.name.starts_with("stays-");
    for n in 0..1_000 {
        let stays = named(&format!("stays-{n}"), "one");
        children.remember(kind, &stays, &response.metadata, &json, ME);
    }
    let mut most = 0;
    for n in 0..20_000 {
        let goes = named(&format!("goes-{n}"), "one");
        children.remember(kind, &goes, &response.metadata, &json, ME);
        children.drop_deleted(|of, key| of == kind && exists(key));
        most = most.max(children.children.lock().len());
    }
    assert!(most <= 2_001, "{most}");
    let stays = |n: usize| ObjectKey::from(("d", format!("stays-{n}").as_str()));
    assert!((0..1_000).all(|n| !children.is_new(kind, &stays(n), Some("u"))));
}
