//! The namespace operator: no kind of its own, children of a cluster-scoped owner.

use k8s_openapi::api::core::v1::{LimitRange, Namespace, ResourceQuota};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::Api;
use kube::api::{Patch, PatchParams};
use namespace_operator::{APPLIED, NAME, SIZE, operator};
use opkit::controller::Outcome;
use opkit::prelude::*;
use opkit::testing::Capability;
use serde_json::json;

use super::{RunningOperator, event, golden_rules, merge, object};

/// Sets the label of the test's namespace, or removes it.
pub(super) async fn resize(plane: &ControlPlane, size: Option<&str>) -> opkit::Result {
    let api: Api<Namespace> = Api::all(plane.client());
    let patch = Patch::Merge(json!({"metadata": {"labels": {SIZE: size}}}));
    api.patch(plane.namespace(), &PatchParams::default(), &patch)
        .await?;
    Ok(())
}

/// Waits until the namespace of the test has this annotation, or none.
pub(super) async fn annotated(plane: &ControlPlane, size: Option<&str>) -> opkit::Result {
    let is_annotated = |namespace: &Namespace| {
        let size_now = namespace.annotations().get(APPLIED);
        size_now.map(String::as_str) == size
    };
    plane.eventually(plane.namespace(), is_annotated).await?;
    Ok(())
}

fn cpu(quota: &ResourceQuota) -> Option<&str> {
    let hard = quota.spec.as_ref()?.hard.as_ref()?;
    Some(hard.get("requests.cpu")?.0.as_str())
}

#[opkit::test]
async fn a_label_adds_and_removes_children(plane: ControlPlane) -> opkit::Result {
    plane.start(operator()).await?;
    resize(&plane, Some("small")).await?;
    // The child that is created last.
    plane.eventually(NAME, |_: &NetworkPolicy| true).await?;
    let quota = plane.get::<ResourceQuota>(NAME).await?.unwrap();
    assert_eq!(cpu(&quota), Some("2"));
    let owner = &quota.metadata.owner_references.as_ref().unwrap()[0];
    assert_eq!(
        (owner.kind.as_str(), owner.name.as_str()),
        ("Namespace", plane.namespace())
    );

    resize(&plane, Some("large")).await?;
    plane
        .eventually(NAME, |quota: &ResourceQuota| cpu(quota) == Some("16"))
        .await?;
    annotated(&plane, Some("large")).await?;
    plane.delete::<LimitRange>(NAME).await?;
    plane.eventually(NAME, |_: &LimitRange| true).await?;

    resize(&plane, None).await?;
    plane.eventually_gone::<ResourceQuota>(NAME).await?;
    plane.eventually_gone::<LimitRange>(NAME).await?;
    plane.eventually_gone::<NetworkPolicy>(NAME).await?;
    annotated(&plane, None).await
}

#[opkit::test]
async fn an_unknown_size_changes_nothing(plane: ControlPlane) -> opkit::Result {
    plane.start(operator()).await?;
    resize(&plane, Some("small")).await?;
    plane.eventually(NAME, |_: &NetworkPolicy| true).await?;
    resize(&plane, Some("smal")).await?;
    event(&plane, plane.namespace(), "UnknownSize").await?;
    let key = ObjectKey::from(plane.namespace());
    let refused = |_: &NetworkPolicy| {
        let last = plane.reconciles().last("namespace", &key);
        let last = last.map(|last| last.result.clone());
        matches!(last, Some(Outcome::Error { retry_after: None, message }) if message.contains("\"smal\""))
    };
    plane.eventually(NAME, refused).await?;
    assert!(plane.get::<NetworkPolicy>(NAME).await?.is_some());
    Ok(())
}

#[opkit::test]
async fn a_quota_of_another_client_is_kept(plane: ControlPlane) -> opkit::Result {
    plane.start(operator()).await?;
    let foreign: ResourceQuota = object(json!({
        "metadata": {"name": NAME}, "spec": {"hard": {"requests.cpu": "1"}},
    }));
    plane.apply(foreign).await?;
    resize(&plane, Some("small")).await?;
    let expected_error = format!(
        "ResourceQuota {}/{NAME} exists and is not controlled by",
        plane.namespace()
    );
    let refused = |_: &ResourceQuota| {
        let records = plane.reconciles().records();
        let mut records = records.iter();
        records.any(|record| record.to_string().contains(&expected_error))
    };
    let same = plane.eventually(NAME, refused).await?;
    assert_eq!(cpu(&same), Some("1"));
    resize(&plane, None).await?;
    let seen = plane.reconciles().total();
    merge::<ResourceQuota>(&plane, NAME, json!({"metadata": {"labels": {"a": "b"}}})).await?;
    resize(&plane, Some("")).await?;
    plane
        .eventually(NAME, |_: &ResourceQuota| plane.reconciles().total() > seen)
        .await?;
    assert!(
        plane.get::<ResourceQuota>(NAME).await?.is_some(),
        "the quota is not pruned either"
    );
    Ok(())
}

#[opkit::test]
async fn a_deleted_namespace_is_deleted_with_its_children(plane: ControlPlane) -> opkit::Result {
    plane.require(Capability::ControllerManager)?;
    let team = format!("{}-team", plane.namespace());
    let namespace = json!({"metadata": {"name": team, "labels": {SIZE: "small"}}});
    plane.apply(object::<Namespace>(namespace)).await?;
    // The operator's role in the namespace is deleted with the namespace.
    let running = RunningOperator::start(&plane.expect_denials(), operator(), &[&team]).await?;
    let key = (team.as_str(), NAME);
    plane.eventually(key, |_: &NetworkPolicy| true).await?;
    plane.delete::<Namespace>(team.as_str()).await?;
    // The namespace could not be deleted if children were created again forever. During the
    // deletion a request of a reconcile may fail.
    plane.eventually_gone::<Namespace>(team.as_str()).await?;
    assert!(plane.get::<ResourceQuota>(key).await?.is_none());
    running.stop().await
}

#[opkit::test]
async fn a_restart_writes_nothing(plane: ControlPlane) -> opkit::Result {
    let running = RunningOperator::start(&plane, operator(), &[]).await?;
    resize(&plane, Some("small")).await?;
    plane.eventually(NAME, |_: &NetworkPolicy| true).await?;
    annotated(&plane, Some("small")).await?;
    running.stop().await?;

    let running = RunningOperator::start(&plane, operator(), &[]).await?;
    let key = ObjectKey::from(plane.namespace());
    let reconciled = |_: &NetworkPolicy| {
        let last = plane.reconciles().last("namespace", &key);
        last.is_some_and(|last| last.started >= running.since)
    };
    plane.eventually(NAME, reconciled).await?;
    assert_eq!(running.writes(), [""; 0]);
    resize(&plane, None).await?;
    plane.eventually_gone::<NetworkPolicy>(NAME).await?;
    annotated(&plane, None).await?;
    running.stop().await
}

#[test]
fn the_permissions_are_least_privilege() -> opkit::Result {
    golden_rules(&operator())
}
