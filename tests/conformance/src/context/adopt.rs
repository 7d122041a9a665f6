//! `cx.adopt`: taking over an object of another client.

use k8s_openapi::api::core::v1::Secret;
use kube::Resource;
use opkit::prelude::*;
use serde_json::json;

use super::{MANAGER, Rig, data, merge, secret, seen, theirs};

#[opkit::test]
async fn an_unowned_object_is_adopted_with_the_fields_of_its_managers(
    plane: ControlPlane,
) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    // Created by one manager, changed by another; a third manager keeps its field.
    plane
        .apply(secret("child", &[("a", "1"), ("b", "2")]))
        .await?;
    merge::<Secret>(&plane, "child", json!({"data": {"c": "Mw=="}})).await?;
    let api: kube::Api<Secret> = kube::Api::default_namespaced(plane.client());
    let other = kube::api::PatchParams {
        field_manager: Some("third".into()),
        ..Default::default()
    };
    let patch = kube::api::Patch::Merge(json!({"data": {"d": "NA=="}}));
    let created = api.patch("child", &other, &patch).await?;
    let (owner, cx) = rig.run().await?;
    seen(&cx, &created).await?;
    assert!(
        cx.apply(secret("child", &[("a", "9")]))
            .await
            .unwrap_err()
            .is_not_ours()
    );

    let expected = || secret("child", &[("a", "9")]);
    let child = cx.adopt(expected(), ["opkit-test", "other"]).await?;
    assert_eq!(child.metadata.uid, created.metadata.uid);
    let stored = plane.get::<Secret>("child").await?.unwrap();
    assert_eq!(*child, stored);
    assert_eq!(
        data(&stored),
        [("a", "9"), ("d", "4")],
        "b and c are no longer applied"
    );
    let references = stored.metadata.owner_references.as_ref().unwrap();
    assert_eq!(Some(&references[0].uid), owner.metadata.uid.as_ref());
    let managers = stored.metadata.managed_fields.iter().flatten();
    let managers: Vec<_> = managers
        .map(|entry| (entry.manager.as_deref(), entry.operation.as_deref()))
        .collect();
    assert_eq!(managers.len(), 2, "{managers:?}");
    assert!(
        managers.contains(&(Some(MANAGER), Some("Apply"))),
        "{managers:?}"
    );
    assert!(
        managers.contains(&(Some("third"), Some("Update"))),
        "{managers:?}"
    );

    // From now on it is a child like any other.
    rig.writes();
    cx.adopt(expected(), ["opkit-test", "other"]).await?;
    cx.apply(expected()).await?;
    assert_eq!(rig.writes(), [""; 0]);
    rig.stop().await
}

#[opkit::test]
async fn a_missing_child_is_created(plane: ControlPlane) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (_, cx) = rig.run().await?;
    let child = cx.adopt(secret("child", &[("a", "1")]), ["helm"]).await?;
    assert_eq!(data(&child), [("a", "1")]);
    rig.stop().await
}

#[opkit::test]
async fn an_object_of_another_controller_is_refused(plane: ControlPlane) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let theirs = theirs(&plane, "child").await?;
    let (_, cx) = rig.run().await?;
    rig.writes();
    let error = cx
        .adopt(secret("child", &[]), ["opkit-test"])
        .await
        .unwrap_err();
    assert!(error.is_not_ours(), "{error}");
    assert!(
        error.to_string().ends_with("/owner but by ConfigMap far"),
        "{error}"
    );
    assert_eq!(rig.writes(), [""; 0]);
    let same = plane
        .get::<Secret>("child")
        .await?
        .map(|same| same.metadata.resource_version);
    assert_eq!(same, Some(theirs.metadata.resource_version));
    rig.stop().await
}

/// A controller was renamed, or the operator did not use opkit before.
#[opkit::test]
async fn fields_of_another_manager_of_a_child_are_taken_over(plane: ControlPlane) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (owner, cx) = rig.run().await?;
    let mut former = secret("child", &[("a", "1"), ("b", "2")]);
    former.metadata.owner_references = owner.controller_owner_ref(&()).map(|owner| vec![owner]);
    let former = plane.apply(former).await?;
    seen(&cx, &former).await?;
    // The child belongs to this owner, and the fields of the other manager belong to that manager.
    let child = cx
        .adopt(secret("child", &[("a", "9")]), ["opkit-test"])
        .await?;
    assert_eq!(data(&child), [("a", "9")]);
    let managers = child.metadata.managed_fields.iter().flatten();
    let managers: Vec<_> = managers
        .filter_map(|entry| entry.manager.as_deref())
        .collect();
    assert_eq!(managers, [MANAGER]);
    rig.writes();
    cx.adopt(secret("child", &[("a", "9")]), ["opkit-test"])
        .await?;
    assert_eq!(rig.writes(), [""; 0]);
    rig.stop().await
}
