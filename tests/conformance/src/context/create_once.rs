//! `cx.create_once`: creates a missing child, and never changes it.

use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use kube::Api;
use kube::api::PostParams;
use opkit::prelude::*;
use serde_json::json;

use super::{APPLIED_ANNOTATION, Rig, data, merge, object, secret, seen, theirs};

/// Content type of a creation.
const CREATE: &str = "application/json";

#[opkit::test]
async fn a_child_is_created_once_and_never_overwritten_or_pruned(
    plane: ControlPlane,
) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (owner, cx) = rig.run().await?;
    let created = cx
        .create_once(secret("child", &[("password", "1")]))
        .await?;
    assert_eq!(rig.writes(), ["create secrets "]);
    assert_eq!(data(&created), [("password", "1")]);
    let stored = plane.get::<Secret>("child").await?.unwrap();
    let references = stored.metadata.owner_references.as_ref().unwrap();
    assert_eq!(Some(&references[0].uid), owner.metadata.uid.as_ref());
    assert_eq!(references[0].controller, Some(true));
    assert!(!stored.annotations().contains_key(APPLIED_ANNOTATION));
    assert!(
        cx.get::<Secret>("child")?.is_some(),
        "the write is read immediately"
    );

    // Another password, which must not replace the first one.
    let again = cx
        .create_once(secret("child", &[("password", "2")]))
        .await?;
    assert_eq!(data(&again), [("password", "1")]);
    let rotated = json!({"data": {"password": "Mw=="}});
    let changed = merge::<Secret>(&plane, "child", rotated).await?;
    seen(&cx, &changed).await?;
    let (_, cx) = rig.run().await?;
    let again = cx
        .create_once(secret("child", &[("password", "2")]))
        .await?;
    assert_eq!(data(&again), [("password", "3")]);
    assert_eq!(cx.prune().await?, 0);

    // A run without a call of `create_once`.
    let (_, cx) = rig.run().await?;
    assert_eq!(cx.prune().await?, 0);
    assert_eq!(rig.writes(), [""; 0]);
    let children = cx.children::<Secret>()?;
    assert_eq!(children.len(), 1, "it is listed as a child");
    assert!(plane.get::<Secret>("child").await?.is_some());

    plane.delete::<ConfigMap>("owner").await?;
    plane.eventually_gone::<Secret>("child").await?;
    rig.stop().await
}

#[opkit::test]
async fn string_data_is_accepted(plane: ControlPlane) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (_, cx) = rig.run().await?;
    let child = json!({"metadata": {"name": "child"}, "stringData": {"password": "1"}});
    let created = cx.create_once(object::<Secret>(child)).await?;
    assert_eq!(data(&created), [("password", "1")]);
    rig.stop().await
}

/// The cache does not have an object that was just created: the server decides.
#[opkit::test]
async fn a_child_that_is_created_concurrently_is_refused_or_returned(
    plane: ControlPlane,
) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (owner, cx) = rig.run().await?;
    let other = plane.clone();
    rig.meddle.before_patch(CREATE, "secrets", async move {
        theirs(&other, "child").await.map(drop)
    });
    let error = cx.create_once(secret("child", &[])).await.unwrap_err();
    assert!(rig.meddle.is_done());
    assert!(error.is_not_ours(), "{error}");
    assert_eq!(
        error.to_string(),
        format!(
            "Secret {0}/child exists and is not controlled by ConfigMap {0}/owner but by ConfigMap far",
            plane.namespace()
        )
    );

    // A child of this owner, created by another replica.
    let reference = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "controller": true,
        "uid": owner.metadata.uid,
    });
    let ours: Secret = object(json!({
        "metadata": {"name": "two", "ownerReferences": [reference]}, "stringData": {"password": "1"},
    }));
    let other = plane.clone();
    rig.meddle.before_patch(CREATE, "secrets", async move {
        let api: Api<Secret> = Api::default_namespaced(other.client());
        api.create(&PostParams::default(), &ours).await?;
        Ok(())
    });
    let found = cx.create_once(secret("two", &[("password", "2")])).await?;
    assert!(rig.meddle.is_done());
    assert_eq!(data(&found), [("password", "1")]);
    rig.stop().await
}

#[opkit::test]
async fn an_invalid_child_is_refused(plane: ControlPlane) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (_, cx) = rig.run().await?;
    let error = cx.create_once(object::<Pod>(json!({"metadata": {"name": "pod"}})));
    let error = error.await.unwrap_err().to_string();
    assert!(error.contains("declare it with .owns::<Pod>()"), "{error}");
    let elsewhere: Secret =
        object(json!({"metadata": {"name": "child", "namespace": "elsewhere"}}));
    assert!(cx.create_once(elsewhere).await.is_err());
    assert_eq!(rig.writes(), [""; 0]);

    // No password is generated for a child that is being deleted.
    let held: Secret =
        object(json!({"metadata": {"name": "held", "finalizers": ["rig.opkit.dev/a"]}}));
    let child = cx.create_once(held).await?;
    plane.delete::<Secret>("held").await?;
    let deleting = plane.get::<Secret>("held").await?.unwrap();
    seen(&cx, &deleting).await?;
    let error = cx.create_once(secret("held", &[])).await.unwrap_err();
    assert!(error.is_deleting(), "{error}");
    let free = json!({"metadata": {"finalizers": null}});
    merge::<Secret>(&plane, &child.name_any(), free).await?;
    rig.stop().await
}
