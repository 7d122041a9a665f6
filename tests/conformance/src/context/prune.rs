//! `cx.prune`: what goes and what stays.

use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use opkit::prelude::*;
use serde_json::{Value, json};

use super::{MARK, Rig, merge, object, secret, seen};

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
    assert!(cx.get::<Secret>("one")?.is_none(), "reads see it at once");
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
    // It returns here: nothing is left to do for a run that is over.
    drop(cx);
    rig.run().await?;
    assert_eq!(secrets(&plane).await?, ["one", "two"]);
    rig.stop().await
}

#[opkit::test]
async fn only_marked_children_of_this_object_go(plane: ControlPlane) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (owner, cx) = rig.run().await?;
    let uid = owner.metadata.uid.clone().unwrap();
    let reference = |uid: &str, controller: bool| json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid, "controller": controller});
    let child = |name: &str, mark: Option<&str>, reference: Value| -> Secret {
        let annotations = mark.map(|mark| json!({MARK: mark}));
        object(json!({"metadata": {
            "name": name, "annotations": annotations, "ownerReferences": [reference],
        }}))
    };
    // An owner that does not exist would have its child collected.
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
async fn a_child_goes_as_it_was_read_or_is_read_again(plane: ControlPlane) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (_, cx) = rig.run().await?;
    for name in ["changed", "taken"] {
        cx.apply(secret(name, &[])).await?;
    }
    let (_, cx) = rig.run().await?;
    // What the cache does not know yet: the requests of the test are not the operator's.
    merge::<Secret>(
        &plane,
        "changed",
        json!({"metadata": {"labels": {"a": "b"}}}),
    )
    .await?;
    merge::<Secret>(
        &plane,
        "taken",
        json!({"metadata": {"annotations": {MARK: null}}}),
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
async fn a_child_whose_application_failed_stays(plane: ControlPlane) -> opkit::Result {
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

/// Also one that is refused before anything is sent.
#[opkit::test]
async fn a_child_whose_application_was_refused_stays(plane: ControlPlane) -> opkit::Result {
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
