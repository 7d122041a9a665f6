//! `cx.prune`: the objects that it deletes and keeps.

use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use opkit::prelude::*;
use serde_json::{Value, json};

use super::{APPLIED_ANNOTATION, Rig, merge, object, secret, seen};

async fn secrets(plane: &ControlPlane) -> opkit::Result<Vec<String>> {
    let api: kube::Api<Secret> = kube::Api::default_namespaced(plane.client());
    let secrets = api.list(&Default::default()).await?;
    Ok(secrets.iter().map(ResourceExt::name_any).collect())
}

fn service(name: &str) -> Service {
    object(json!({"metadata": {"name": name}, "spec": {"ports": [{"port": 80}]}}))
}

#[opkit::test]
async fn children_that_the_run_did_not_apply_are_deleted(plane: ControlPlane) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (_, cx) = rig.run().await?;
    for name in ["one", "two"] {
        cx.apply(secret(name, &[])).await?;
        cx.apply(service(name)).await?;
    }
    assert_eq!(cx.prune().await?, 0, "all were applied");

    let (_, cx) = rig.run().await?;
    cx.apply(secret("two", &[])).await?;
    rig.writes();
    assert_eq!(cx.prune().await?, 3);
    let mut writes = rig.writes();
    writes.sort();
    assert_eq!(
        writes,
        [
            "delete secrets one",
            "delete services one",
            "delete services two"
        ]
    );
    assert_eq!(secrets(&plane).await?, ["two"]);
    assert!(
        cx.get::<Secret>("one")?.is_none(),
        "the deletion is read immediately"
    );
    assert_eq!(cx.prune().await?, 0);
    rig.stop().await
}

#[opkit::test]
async fn an_early_return_prunes_nothing(plane: ControlPlane) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (_, cx) = rig.run().await?;
    cx.apply(secret("one", &[])).await?;
    let (_, cx) = rig.run().await?;
    cx.apply(secret("two", &[])).await?;
    // An early return: a run that is over does nothing more.
    drop(cx);
    rig.run().await?;
    assert_eq!(secrets(&plane).await?, ["one", "two"]);
    rig.stop().await
}

#[opkit::test]
async fn only_annotated_children_of_this_object_are_deleted(plane: ControlPlane) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (owner, cx) = rig.run().await?;
    let uid = owner.metadata.uid.clone().unwrap();
    let reference = |uid: &str, controller: bool| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "controller": controller});
    let child = |name: &str, mark: Option<&str>, reference: Value| -> Secret {
        let annotations = mark.map(|mark| json!({APPLIED_ANNOTATION: mark}));
        object(json!({"metadata": {
            "name": name, "annotations": annotations, "ownerReferences": [reference],
        }}))
    };
    // The owner must exist, otherwise its child would be collected.
    let other: ConfigMap = plane
        .apply(object(json!({"metadata": {"name": "other"}})))
        .await?;
    let other = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "other", "controller": true,
        "uid": other.metadata.uid,
    });
    let mark = Some("rig.configmap:0123456789abcdef");
    for stays in [
        child("unmarked", None, reference(&uid, true)),
        child(
            "other-manager",
            Some("rig.other:0123"),
            reference(&uid, true),
        ),
        child("not-controlled", mark, reference(&uid, false)),
        child("other-owner", mark, other),
    ] {
        let stays = plane.apply(stays).await?;
        seen(&cx, &stays).await?;
    }
    let goes = plane
        .apply(child("goes", mark, reference(&uid, true)))
        .await?;
    seen(&cx, &goes).await?;
    cx.prune().await?;
    assert_eq!(
        secrets(&plane).await?,
        ["not-controlled", "other-manager", "other-owner", "unmarked"]
    );
    rig.stop().await
}

#[opkit::test]
async fn a_child_is_deleted_at_the_version_read_or_read_again(
    plane: ControlPlane,
) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (_, cx) = rig.run().await?;
    for name in ["changed", "taken"] {
        cx.apply(secret(name, &[])).await?;
    }
    let (_, cx) = rig.run().await?;
    // The operator's cache does not have this change yet, because the test uses another client.
    merge::<Secret>(
        &plane,
        "changed",
        json!({"metadata": {"labels": {"a": "b"}}}),
    )
    .await?;
    merge::<Secret>(
        &plane,
        "taken",
        json!({"metadata": {"annotations": {APPLIED_ANNOTATION: null}}}),
    )
    .await?;
    rig.writes();
    cx.prune().await?;
    assert_eq!(secrets(&plane).await?, ["taken"]);
    let exchanges = rig.seam.exchanges();
    let deletes = exchanges
        .iter()
        .filter(|exchange| exchange.info.verb == "delete");
    for delete in deletes {
        let body: Value = serde_json::from_slice(&delete.body.bytes)?;
        let preconditions = &body["preconditions"];
        assert!(preconditions["uid"].is_string(), "{body}");
        assert!(preconditions["resourceVersion"].is_string(), "{body}");
    }
    rig.stop().await
}

#[opkit::test]
async fn a_child_whose_apply_failed_is_kept(plane: ControlPlane) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (_, cx) = rig.run().await?;
    cx.apply(secret("child", &[])).await?;
    let (_, cx) = rig.run().await?;
    let mut broken = secret("child", &[]);
    broken.metadata.labels = Some([("a".into(), "not a label!".into())].into());
    assert!(cx.apply(broken).await.is_err());
    cx.prune().await?;
    assert_eq!(secrets(&plane).await?, ["child"]);
    rig.stop().await
}

/// Also if the child is refused before anything is sent.
#[opkit::test]
async fn a_child_whose_apply_was_refused_is_kept(plane: ControlPlane) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (_, cx) = rig.run().await?;
    cx.apply(secret("child", &[])).await?;
    cx.apply(secret("adopted", &[])).await?;
    let (_, cx) = rig.run().await?;
    let refused = |name: &str| -> Secret {
        object(json!({"metadata": {"name": name}, "stringData": {"a": "b"}}))
    };
    assert!(cx.apply(refused("child")).await.is_err());
    assert!(cx.adopt(refused("adopted"), ["helm"]).await.is_err());
    cx.prune().await?;
    assert_eq!(secrets(&plane).await?, ["adopted", "child"]);
    rig.stop().await
}
