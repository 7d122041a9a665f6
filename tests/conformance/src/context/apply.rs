//! `cx.apply`: its requests, and the children that it refuses.

use k8s_openapi::api::core::v1::{ConfigMap, LimitRange, Namespace, Secret, ServiceAccount};
use opkit::controller::ApplyError;
use opkit::prelude::*;
use serde_json::json;

use super::{APPLIED_ANNOTATION, MANAGER, Rig, data, merge, object, secret, seen, theirs};

#[opkit::test]
async fn a_child_is_applied_with_owner_reference_and_annotation(
    plane: ControlPlane,
) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (owner, cx) = rig.run().await?;
    let child = cx.apply(secret("child", &[("a", "1")])).await?;
    assert_eq!(cx.field_manager(), MANAGER);

    let stored = plane.get::<Secret>("child").await?.unwrap();
    assert_eq!(*child, stored, "the stored child is returned");
    let reference = &stored.metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!(Some(&reference.uid), owner.metadata.uid.as_ref());
    assert_eq!(reference.controller, Some(true));
    assert_eq!(reference.block_owner_deletion, Some(true));
    let entries = stored.metadata.managed_fields.iter().flatten();
    let entries: Vec<_> = entries
        .map(|entry| (entry.manager.as_deref(), entry.operation.as_deref()))
        .collect();
    assert_eq!(entries, [(Some(MANAGER), Some("Apply"))]);
    let mark = stored.annotations().get(APPLIED_ANNOTATION).unwrap();
    assert!(mark.starts_with("rig.configmap:"), "{mark}");
    rig.stop().await
}

#[opkit::test]
async fn nothing_is_sent_while_the_child_equals_the_last_response(
    plane: ControlPlane,
) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (_, cx) = rig.run().await?;
    cx.apply(secret("child", &[("a", "1")])).await?;
    rig.writes();
    cx.apply(secret("child", &[("a", "1")])).await?;
    assert_eq!(rig.writes(), [""; 0]);

    // Fields of other managers are ignored.
    let patch = json!({"metadata": {"labels": {"of": "other"}}, "data": {"b": "Mg=="}});
    let changed = merge::<Secret>(&plane, "child", patch).await?;
    seen(&cx, &changed).await?;
    let (_, cx) = rig.run().await?;
    let child = cx.apply(secret("child", &[("a", "1")])).await?;
    assert_eq!(rig.writes(), [""; 0]);
    assert_eq!(data(&child), [("a", "1"), ("b", "2")]);
    rig.stop().await
}

/// Returns a limit that servers store in another form.
fn limits(cpu: &str) -> LimitRange {
    object(json!({
        "metadata": {"name": "limits"},
        "spec": {"limits": [{"type": "Container", "max": {"cpu": cpu, "memory": "1024Mi"}}]},
    }))
}

#[opkit::test]
async fn a_quantity_that_the_server_normalises_causes_no_second_write(
    plane: ControlPlane,
) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (_, cx) = rig.run().await?;
    let stored = cx.apply(limits("1000m")).await?;
    let max = stored.spec.as_ref().unwrap().limits[0].max.clone().unwrap();
    assert_eq!(
        (max["cpu"].0.as_str(), max["memory"].0.as_str()),
        ("1", "1Gi")
    );
    rig.writes();
    cx.apply(limits("1000m")).await?;
    let noted = merge::<LimitRange>(
        &plane,
        "limits",
        json!({"metadata": {"labels": {"a": "b"}}}),
    );
    seen(&cx, &noted.await?).await?;
    cx.apply(limits("1000m")).await?;
    assert_eq!(rig.writes(), [""; 0]);
    cx.apply(limits("1500m")).await?;
    assert_eq!(rig.writes(), ["patch limitranges limits"]);
    rig.stop().await
}

#[opkit::test]
async fn a_field_no_longer_set_disappears(plane: ControlPlane) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (_, cx) = rig.run().await?;
    cx.apply(secret("child", &[("a", "1"), ("b", "2")])).await?;
    let child = cx.apply(secret("child", &[("b", "2")])).await?;
    assert_eq!(data(&child), [("b", "2")]);
    let stored = plane.get::<Secret>("child").await?.unwrap();
    assert_eq!(data(&stored), [("b", "2")]);
    rig.stop().await
}

#[opkit::test]
async fn drift_is_corrected(plane: ControlPlane) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (_, cx) = rig.run().await?;
    let expected = || secret("child", &[("a", "1"), ("b", "2")]);
    cx.apply(expected()).await?;
    for drift in [
        json!({"data": {"a": "OQ=="}}),
        json!({"data": {"a": null}}),
        json!({"metadata": {"annotations": {APPLIED_ANNOTATION: null}}}),
        json!({"metadata": {"annotations": {APPLIED_ANNOTATION: "other:1"}}}),
    ] {
        let drifted = merge::<Secret>(&plane, "child", drift.clone()).await?;
        seen(&cx, &drifted).await?;
        rig.writes();
        let child = cx.apply(expected()).await?;
        assert_eq!(rig.writes(), ["patch secrets child"], "{drift}");
        assert_eq!(data(&child), [("a", "1"), ("b", "2")], "{drift}");
        assert!(
            child.annotations()[APPLIED_ANNOTATION].starts_with(MANAGER),
            "{drift}"
        );
    }
    rig.stop().await
}

#[opkit::test]
async fn an_object_of_another_owner_is_refused_with_both_names(
    plane: ControlPlane,
) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let foreign = plane.apply(secret("child", &[("theirs", "1")])).await?;
    let (_, cx) = rig.run().await?;
    let namespace = plane.namespace();
    let error = cx.apply(secret("child", &[])).await.unwrap_err();
    assert!(error.is_not_ours());
    let expected_error = format!(
        "Secret {namespace}/child exists and is not controlled by ConfigMap {namespace}/owner"
    );
    assert_eq!(error.to_string(), expected_error);
    let same = plane.get::<Secret>("child").await?.unwrap();
    assert_eq!(
        same.metadata.resource_version,
        foreign.metadata.resource_version
    );

    // An object of another controller, which the error names.
    let theirs = theirs(&plane, "theirs").await?;
    seen(&cx, &theirs).await?;
    let error = cx.apply(secret("theirs", &[])).await.unwrap_err();
    assert!(
        error.to_string().ends_with(" but by ConfigMap far"),
        "{error}"
    );
    rig.stop().await
}

#[opkit::test]
async fn an_owner_in_another_namespace_is_refused(plane: ControlPlane) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (_, cx) = rig.run().await?;
    rig.writes();
    let mut elsewhere = secret("child", &[]);
    elsewhere.metadata.namespace = Some("elsewhere".into());
    let error = cx.apply(elsewhere).await.unwrap_err().to_string();
    let expected_error = format!(
        "ConfigMap {}/owner cannot own Secret elsewhere/child: an owner and its children must be in the same namespace",
        plane.namespace()
    );
    assert_eq!(error, expected_error);
    let of_cluster: Namespace = object(json!({"metadata": {"name": "child"}}));
    let error = cx.apply(of_cluster).await.unwrap_err().to_string();
    assert!(error.ends_with("the child is cluster-scoped"), "{error}");
    assert_eq!(rig.writes(), [""; 0]);
    rig.stop().await
}

#[opkit::test]
async fn string_data_is_refused(plane: ControlPlane) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (_, cx) = rig.run().await?;
    rig.writes();
    let child: Secret = object(json!({"metadata": {"name": "child"}, "stringData": {"a": "b"}}));
    let error = cx.apply(child).await.unwrap_err().to_string();
    let expected_error = format!(
        "cannot apply Secret {}/child with stringData: the server converts it to data; set data instead",
        plane.namespace()
    );
    assert_eq!(error, expected_error);
    assert_eq!(rig.writes(), [""; 0]);
    rig.stop().await
}

#[opkit::test]
async fn a_child_with_a_version_is_applied_at_that_version_or_fails(
    plane: ControlPlane,
) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (_, cx) = rig.run().await?;
    let child = cx.apply(secret("child", &[("a", "1")])).await?;
    let at = |version: &Option<String>, value: &str| {
        let mut secret = secret("child", &[("a", value)]);
        secret.metadata.resource_version = version.clone();
        secret
    };
    let version = &child.metadata.resource_version;
    let second = cx.apply(at(version, "2")).await?;
    assert_eq!(data(&second), [("a", "2")]);
    let error = cx.apply(at(version, "3")).await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    // Also if the cache does not have the change of another client yet.
    merge::<Secret>(&plane, "child", json!({"metadata": {"labels": {"a": "b"}}})).await?;
    let error = cx
        .apply(at(&second.metadata.resource_version, "3"))
        .await
        .unwrap_err();
    assert!(error.is_conflict(), "{error}");
    let stored = plane.get::<Secret>("child").await?.unwrap();
    assert_eq!(data(&stored), [("a", "2")]);

    let mut none = secret("none", &[]);
    none.metadata.resource_version = version.clone();
    let error = cx.apply(none).await.unwrap_err();
    assert!(
        matches!(error, ApplyError::Version { found: None, .. }),
        "{error}"
    );
    assert!(plane.get::<Secret>("none").await?.is_none());
    rig.stop().await
}

#[opkit::test]
async fn a_terminating_child_is_an_error_until_it_is_deleted(plane: ControlPlane) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (_, cx) = rig.run().await?;
    cx.apply(secret("child", &[("a", "1")])).await?;
    let kept = json!({"metadata": {"finalizers": ["somebody/keeps"]}});
    merge::<Secret>(&plane, "child", kept).await?;
    plane.delete::<Secret>("child").await?;
    let dying = plane.get::<Secret>("child").await?.unwrap();
    seen(&cx, &dying).await?;
    rig.writes();
    let error = cx.apply(secret("child", &[("a", "2")])).await.unwrap_err();
    assert!(error.is_deleting(), "{error}");
    let namespace = plane.namespace();
    assert_eq!(
        error.to_string(),
        format!(
            "cannot apply Secret {namespace}/child for ConfigMap {namespace}/owner: it is being deleted; it is created again after that"
        )
    );
    assert_eq!(rig.writes(), [""; 0]);

    merge::<Secret>(&plane, "child", json!({"metadata": {"finalizers": null}})).await?;
    plane.eventually_gone::<Secret>("child").await?;
    let anew = loop {
        match cx.apply(secret("child", &[("a", "2")])).await {
            // The cache does not have the deletion yet.
            Err(error) if error.is_deleting() => tokio::time::sleep(Duration::from_millis(5)).await,
            result => break result?,
        }
    };
    assert_ne!(anew.metadata.uid, dying.metadata.uid);
    rig.stop().await
}

#[opkit::test]
async fn a_kind_that_is_not_owned_is_refused(plane: ControlPlane) -> opkit::Result {
    let mut rig = Rig::start(&plane).await?;
    let (_, cx) = rig.run().await?;
    rig.writes();
    let account = || object::<ServiceAccount>(json!({"metadata": {"name": "child"}}));
    let applied = cx.apply(account()).await.unwrap_err();
    let adopted = cx.adopt(account(), ["helm"]).await.unwrap_err();
    for error in [applied.to_string(), adopted.to_string()] {
        assert!(error.ends_with(".owns::<ServiceAccount>()"), "{error}");
    }
    assert_eq!(rig.writes(), [""; 0]);
    rig.stop().await
}

#[opkit::test]
async fn a_kind_without_a_cache_is_read_and_applied_when_it_differs(
    plane: ControlPlane,
) -> opkit::Result {
    let owner: ConfigMap = object(json!({"metadata": {"name": "owner"}}));
    plane.apply(owner).await?;
    let mut rig: Rig<ConfigMap> = Rig::start_with(&plane, |controller| {
        controller.owns_metadata::<ServiceAccount>()
    })
    .await?;
    let (_, cx) = rig.run().await?;
    let account = |label: &str| -> ServiceAccount {
        object(json!({"metadata": {"name": "child", "labels": {"a": label}}}))
    };
    cx.apply(account("1")).await?;
    rig.writes();
    cx.apply(account("1")).await?;
    assert_eq!(rig.writes(), [""; 0]);
    let drift = json!({"metadata": {"labels": {"a": "2"}}});
    merge::<ServiceAccount>(&plane, "child", drift).await?;
    let child = cx.apply(account("1")).await?;
    assert_eq!(rig.writes(), ["patch serviceaccounts child"]);
    assert_eq!(child.labels()["a"], "1");
    rig.stop().await
}
