//! Changes by other clients between the operator's read and its write: the write must detect them.

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use opkit::prelude::*;
use serde_json::json;

use super::meddle::{APPLY, MERGE};
use super::{MANAGER, Rig, data, merge, object, secret, seen, theirs};

/// Deletes the secret `child`, and waits until it does not exist.
async fn delete_child(plane: &ControlPlane) -> opkit::Result {
    let api: Api<Secret> = Api::default_namespaced(plane.client());
    api.delete("child", &DeleteParams::default()).await?;
    plane.eventually_gone::<Secret>("child").await
}

/// Starts a rig whose owner has applied the secret `child`.
async fn with_child(plane: &ControlPlane) -> opkit::Result<(Rig<ConfigMap>, Context)> {
    let mut rig = Rig::start(plane).await?;
    let (_, cx) = rig.run().await?;
    let child = cx.apply(secret("child", &[("a", "1")])).await?;
    seen(&cx, &*child).await?;
    Ok((rig, cx))
}

#[opkit::test]
async fn a_child_that_is_replaced_before_it_is_applied_is_not_taken_over(
    plane: ControlPlane,
) -> opkit::Result {
    let (rig, cx) = with_child(&plane).await?;
    let other = plane.clone();
    rig.meddle.before_patch(APPLY, "secrets", async move {
        delete_child(&other).await?;
        let api: Api<Secret> = Api::default_namespaced(other.client());
        api.create(&PostParams::default(), &secret("child", &[("theirs", "1")]))
            .await?;
        Ok(())
    });
    assert!(cx.apply(secret("child", &[("a", "2")])).await.is_err());
    assert!(rig.meddle.is_done());
    let stored = plane.get::<Secret>("child").await?.unwrap();
    assert_eq!(data(&stored), [("theirs", "1")]);
    assert_eq!(stored.metadata.owner_references, None);
    rig.stop().await
}

#[opkit::test]
async fn a_child_that_is_deleted_before_it_is_applied_is_not_created_by_the_patch(
    plane: ControlPlane,
) -> opkit::Result {
    let (rig, cx) = with_child(&plane).await?;
    let other = plane.clone();
    rig.meddle
        .before_patch(APPLY, "secrets", async move { delete_child(&other).await });
    let error = cx.apply(secret("child", &[("a", "2")])).await.unwrap_err();
    assert!(rig.meddle.is_done());
    assert!(error.is_conflict(), "{error}");
    assert_eq!(plane.get::<Secret>("child").await?, None);
    rig.stop().await
}

#[opkit::test]
async fn a_child_that_another_controller_adopts_first_is_not_changed(
    plane: ControlPlane,
) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let created = plane.apply(secret("child", &[("a", "1")])).await?;
    let (_, cx) = rig.run().await?;
    seen(&cx, &created).await?;
    let others = theirs(&plane, "other").await?.metadata.owner_references;
    let other = plane.clone();
    rig.meddle.before_patch(APPLY, "secrets", async move {
        let adopted = json!({"metadata": {"ownerReferences": others}});
        merge::<Secret>(&other, "child", adopted).await.map(drop)
    });
    let adopted = cx.adopt(secret("child", &[("a", "2")]), ["opkit-test"]);
    let error = adopted.await.unwrap_err();
    assert!(rig.meddle.is_done());
    assert!(error.is_not_ours(), "{error}");
    let stored = plane.get::<Secret>("child").await?.unwrap();
    assert_eq!(data(&stored), [("a", "1")]);
    let owners = stored.metadata.owner_references.unwrap_or_default();
    let owners: Vec<_> = owners.iter().map(|owner| owner.name.as_str()).collect();
    assert_eq!(owners, ["far"]);
    rig.stop().await
}

#[opkit::test]
async fn a_child_that_is_deleted_during_adoption_is_released(plane: ControlPlane) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let mut created = secret("child", &[("a", "1")]);
    // The finalizer keeps the child while it is being deleted.
    created.metadata.finalizers = Some(vec!["rig.opkit.dev/hold".to_owned()]);
    let created = plane.apply(created).await?;
    let (_, cx) = rig.run().await?;
    seen(&cx, &created).await?;
    let other = plane.clone();
    rig.meddle.before_patch(APPLY, "secrets", async move {
        let api: Api<Secret> = Api::default_namespaced(other.client());
        api.delete("child", &DeleteParams::default()).await?;
        Ok(())
    });
    let adopted = cx.adopt(secret("child", &[("a", "2")]), ["opkit-test"]);
    let error = adopted.await.unwrap_err();
    assert!(rig.meddle.is_done());
    assert!(error.is_deleting(), "{error}");
    let stored = plane.get::<Secret>("child").await?.unwrap();
    assert_eq!(stored.metadata.owner_references, None);
    let mut managers = stored.metadata.managed_fields.iter().flatten();
    assert!(
        !managers.any(|entry| entry.manager.as_deref() == Some(MANAGER)
            && entry.operation.as_deref() == Some("Apply")
            && format!("{:?}", entry.fields_v1).contains("ownerReferences"))
    );
    merge::<Secret>(&plane, "child", json!({"metadata": {"finalizers": null}})).await?;
    rig.stop().await
}

#[opkit::test]
async fn a_finalizer_that_is_added_at_the_same_time_is_kept(plane: ControlPlane) -> opkit::Result {
    const CLEANUP: &str = "rig.opkit.dev/cleanup";
    const OTHER: &str = "rig.opkit.dev/other";
    let rig: Rig<Secret> = Rig::start_with(&plane, |controller| {
        controller.finalizer(CLEANUP, |_, _| async { Ok::<_, Error>(Cleanup::Done) })
    })
    .await?;
    let other = plane.clone();
    rig.meddle.before_patch(MERGE, "secrets", async move {
        let finalizers = json!({"metadata": {"finalizers": [OTHER]}});
        merge::<Secret>(&other, "one", finalizers).await.map(drop)
    });
    let one = object::<Secret>(json!({"metadata": {"name": "one"}}));
    plane.apply(one).await?;
    let has_ours = |map: &Secret| map.finalizers().iter().any(|name| name == CLEANUP);
    plane.eventually("one", has_ours).await?;
    assert!(rig.meddle.is_done());
    let stored = plane.get::<Secret>("one").await?.unwrap();
    assert_eq!(stored.finalizers(), [OTHER, CLEANUP]);
    let ours = json!({"metadata": {"finalizers": [CLEANUP]}});
    merge::<Secret>(&plane, "one", ours).await?;
    plane.delete::<Secret>("one").await?;
    plane.eventually_gone::<Secret>("one").await?;
    rig.stop().await
}
