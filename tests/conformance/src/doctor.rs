//! The diagnosis of an operator: a healthy one has no findings, and each broken situation is named.
//!
//! No operator runs in these tests: its Pods become Running, and the test creates what the operator
//! would, such as its certificate. Each test has an operator, a group and CRDs of its own.

mod crds;
mod deployment;
mod objects;
mod patient;
mod webhooks;

use opkit::prelude::*;
use opkit_doctor::Severity::{Fail, Warning};
use serde_json::json;

use patient::Patient;

#[opkit::test]
async fn a_healthy_operator_has_no_findings(plane: ControlPlane) -> opkit::Result {
    let patient = Patient::deployed(&plane).await?;
    let report = patient.report().await?;
    assert_eq!(report.findings, [], "{report}");
    assert!(report.may_deploy);
    let text = report.to_string();
    assert!(
        text.starts_with("ok    cluster       Kubernetes 1."),
        "{text}"
    );
    assert!(text.ends_with("has no problems\n"), "{text}");
    patient.remove().await
}

#[opkit::test]
async fn an_operator_that_is_not_deployed_is_named(plane: ControlPlane) -> opkit::Result {
    let patient = Patient::new(&plane)?;
    let report = patient.report().await?;
    patient::has(
        &report,
        Fail,
        "operator",
        &["does not exist", "opkit deploy"],
    );
    patient::has(&report, Fail, "crd", &["is not installed", "opkit install"]);
    assert_eq!(report.findings.len(), 2, "{report}");
    Ok(())
}

/// The user has the permissions of an operator without controllers.
#[opkit::test]
async fn permissions_that_the_user_lacks_are_named(plane: ControlPlane) -> opkit::Result {
    let patient = Patient::new(&plane)?;
    let visitor = Operator::new("visitor");
    let plane = plane.expect_denials();
    let options = opkit::operator::RunOptions::default();
    let client = plane.operator_client(&visitor, &options).await?;
    let report = patient.report_as(client).await?;
    let words =
        ["you may not create, delete, get, list, patch clusterroles.rbac.authorization.k8s.io"];
    patient::has(&report, Fail, "permission", &words);
    let words = [
        "objects of the kind Deployment were not checked",
        "orbidden",
    ];
    patient::has(&report, Warning, "cluster", &words);
    assert!(!report.may_deploy && !report.to_string().contains("you may do all"));
    Ok(())
}

#[opkit::test]
async fn another_version_than_that_of_the_build_is_named(plane: ControlPlane) -> opkit::Result {
    let mut patient = Patient::deployed(&plane).await?;
    for object in &mut patient.manifests.objects {
        if object["kind"] == "Deployment" {
            let containers = &mut object["spec"]["template"]["spec"]["containers"];
            containers[0]["image"] = json!("acme/patient:2.0.0");
        }
    }
    patient
        .finds(Warning, "version", &["and this build is", "opkit deploy"])
        .await?;
    patient.remove().await
}

#[opkit::test]
async fn objects_without_a_release_are_named(plane: ControlPlane) -> opkit::Result {
    let patient = Patient::deployed(&plane).await?;
    let set = opkit_deploy::ApplySet::new(&patient.manifests.operator, plane.namespace());
    let leftover = json!({
        "metadata": {"name": "leftover", "labels": {opkit_deploy::PART_OF_LABEL: set.id()}},
        "spec": {"ports": [{"port": 80}]},
    });
    patient.create(&patient::SERVICES, leftover).await?;
    let words = ["service/leftover is not in the newest release"];
    patient.finds(Warning, "leftover", &words).await?;
    patient
        .delete(&patient::SECRETS, &set.parent_name())
        .await?;
    let words = ["belong to the ApplySet", "does not exist"];
    patient.finds(Warning, "leftover", &words).await?;
    patient.remove().await
}

/// Blocks the discovery of all kinds, so that no other test may run on the same control plane.
#[tokio::test]
async fn an_aggregated_server_that_blocks_a_namespace_is_named() -> opkit::Result {
    let plane = ControlPlane::embedded()?;
    let patient = Patient::deployed(&plane).await?;
    let service = json!({
        "metadata": {"name": "v1.gone.example.com"},
        "spec": {
            "group": "gone.example.com", "version": "v1", "groupPriorityMinimum": 1000,
            "versionPriority": 15, "insecureSkipTLSVerify": true,
            "service": {"name": "gone", "namespace": plane.namespace()},
        },
    });
    patient.create(&patient::API_SERVICES, service).await?;
    let words = [
        "apiservice/v1.gone.example.com is not available",
        "kubectl describe apiservice",
    ];
    patient.finds(Warning, "apiservice", &words).await?;
    plane.shutdown().await
}
