//! Operators whose Pods do not run, or that lack permissions or a leader.

use opkit::client::Patch;
use opkit::prelude::*;
use opkit_doctor::Severity::{Fail, Warning};
use serde_json::{Value, json};

use super::patient::{
    DEPLOYMENTS, EVENTS, LEASES, PODS, Patient, QUOTAS, ROLE_BINDINGS, ROLES, SERVICE_ACCOUNTS,
};

#[opkit::test]
async fn a_deleted_deployment_is_named(plane: ControlPlane) -> opkit::Result {
    let patient = Patient::deployed(&plane).await?;
    patient.delete(&DEPLOYMENTS, &patient.deployment()).await?;
    let what = format!("deployment/{} does not exist", patient.deployment());
    patient
        .finds(Fail, "operator", &[&what, "opkit deploy"])
        .await?;
    patient.remove().await
}

#[opkit::test]
async fn a_deployment_without_replicas_is_named(plane: ControlPlane) -> opkit::Result {
    let patient = Patient::deployed(&plane).await?;
    patient
        .patch_deployment(json!({"spec": {"replicas": 0}}))
        .await?;
    patient
        .finds(Fail, "operator", &["scaled to 0 replicas", "kubectl -n"])
        .await?;
    patient.remove().await
}

/// A Pod with scheduling gates belongs to no node, so that only the test writes its status.
#[opkit::test]
async fn the_reason_of_a_pod_is_named(plane: ControlPlane) -> opkit::Result {
    let patient = Patient::deployed(&plane).await?;
    let pod = patient.gated_pod().await?;
    let start = format!("0 of 1 replicas available: pod/{pod}");
    patient
        .finds(Fail, "operator", &[&start, "SchedulingGated"])
        .await?;

    let set = async |state: Value, last: Value| -> opkit::Result {
        let status = json!({"status": {"containerStatuses": [{
            "name": "manager", "image": "acme/patient:1.0.0", "imageID": "", "ready": false,
            "restartCount": 3, "state": state, "lastState": last,
        }]}});
        let pods = patient.resource(&PODS).subresource("status");
        pods.patch(pod.as_str(), Patch::Merge(&status)).await?;
        Ok(())
    };
    let waiting =
        |reason: &str| json!({"waiting": {"reason": reason, "message": "manifest unknown"}});
    set(waiting("ImagePullBackOff"), json!({})).await?;
    let words = [&*start, "ImagePullBackOff: manifest unknown"];
    patient.finds(Fail, "operator", &words).await?;
    let killed = json!({"terminated": {"reason": "OOMKilled", "exitCode": 137}});
    set(waiting("CrashLoopBackOff"), killed).await?;
    let words = [
        &*start,
        "CrashLoopBackOff, after OOMKilled with exit code 137",
    ];
    patient.finds(Fail, "operator", &words).await?;
    patient.remove().await
}

#[opkit::test]
async fn a_quota_that_allows_no_pod_is_named(plane: ControlPlane) -> opkit::Result {
    let patient = Patient::deployed(&plane).await?;
    let quota = json!({"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}});
    patient.create(&QUOTAS, quota).await?;
    let template = json!({"spec": {"template": {"metadata": {"labels": {"new": "true"}}}}});
    patient.patch_deployment(template).await?;
    let words = ["no Pod can be created", "exceeded quota: none"];
    patient.finds(Fail, "operator", &words).await?;
    patient.remove().await
}

#[opkit::test]
async fn a_failing_probe_is_named(plane: ControlPlane) -> opkit::Result {
    let patient = Patient::deployed(&plane).await?;
    let pod = patient.gated_pod().await?;
    let now = jiff::Timestamp::now().to_string();
    let event = json!({
        "metadata": {"name": "unhealthy", "namespace": plane.namespace()},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": pod, "namespace": plane.namespace()},
        "type": "Warning", "reason": "Unhealthy", "count": 4,
        "message": "Readiness probe failed: HTTP probe failed with statuscode: 500",
        "firstTimestamp": now, "lastTimestamp": now,
    });
    patient.create(&EVENTS, event).await?;
    let words = ["Readiness probe failed", "4 times", "kubectl -n"];
    patient.finds(Fail, "probe", &words).await?;
    patient.remove().await
}

#[opkit::test]
async fn a_missing_service_account_is_named(plane: ControlPlane) -> opkit::Result {
    let patient = Patient::deployed(&plane).await?;
    patient
        .delete(&SERVICE_ACCOUNTS, &patient.deployment())
        .await?;
    let words = [
        "serviceaccount/",
        "does not exist: no Pod of the operator can be created",
    ];
    patient.finds(Fail, "operator", &words).await?;
    patient.remove().await
}

#[opkit::test]
async fn missing_permissions_of_the_operator_are_named(plane: ControlPlane) -> opkit::Result {
    let patient = Patient::deployed(&plane).await?;
    let rules = json!({"rules": [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
    ]});
    patient.patch(&ROLES, &patient.role(), rules).await?;
    let words = [
        "may not list configmaps, which this build needs",
        "kubectl auth can-i list",
    ];
    patient.finds(Fail, "rbac", &words).await?;
    let binding = format!("{}binding", patient.role());
    patient.delete(&ROLE_BINDINGS, &binding).await?;
    patient
        .finds(Fail, "rbac", &["may not get, list configmaps"])
        .await?;
    patient.remove().await
}

#[opkit::test]
async fn leases_without_a_living_holder_are_named(plane: ControlPlane) -> opkit::Result {
    let patient = Patient::deployed(&plane).await?;
    let lease = |name: &str, holder: &str| {
        let now = format!("{:.6}", jiff::Timestamp::now());
        json!({"metadata": {"name": name}, "spec": {"holderIdentity": holder,
            "leaseDurationSeconds": 15, "acquireTime": now, "renewTime": now}})
    };
    patient.create(&LEASES, lease("leader", "laptop_1")).await?;
    let words = ["lease/leader is held by laptop_1, which is not a Pod"];
    patient.finds(Warning, "lease", &words).await?;
    let words = [
        "lease/leader expired",
        "no replica takes it: nothing is reconciled",
    ];
    patient.finds_after(1, Fail, "lease", &words).await?;
    patient.create(&LEASES, lease("old", "gone_1")).await?;
    let words = ["lease/old is orphaned", "delete lease old"];
    patient.finds_after(2, Warning, "lease", &words).await?;
    patient.remove().await
}
