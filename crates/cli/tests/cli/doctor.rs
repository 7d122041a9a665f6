//! `opkit doctor`, with a binary that prints a model, against a control plane in another process.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use super::deploy::{Cluster, json};
use super::*;

const OK: &str = "ok    cluster       opkit, Kubernetes VERSION; you may do all that deploy does";

/// Returns the report of a run that must exit with this code.
fn doctor(cluster: &Cluster, code: i32) -> String {
    let output = cluster.place.opkit(&["doctor", "--loops", "0"]);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    let report = String::from_utf8(output.stdout).unwrap();
    // The version is that of the embedded control plane.
    let version = report.split("Kubernetes ").nth(1).unwrap_or_default();
    let version = version.split(';').next().unwrap_or_default();
    report.replacen(version, "VERSION", 1)
}

#[tokio::test]
async fn problems_are_named_until_they_are_solved() {
    let cluster = Cluster::start().await;
    let none = format!(
        "{OK}
FAIL  operator      deployment/op-controller-manager does not exist in the namespace op-system: the operator is not deployed
                    opkit deploy
FAIL  crd           the CRD robots.op.opkit.dev is not installed
                    opkit install
"
    );
    assert_eq!(doctor(&cluster, 1), none);
    cluster.place.stdout(&["deploy"]);
    let healthy = format!("{OK}; op has no problems\n");
    assert_eq!(doctor(&cluster, 0), healthy);
    // With objects, loops are looked for.
    cluster.create_robot().await;
    let report = cluster
        .place
        .stdout(&["doctor", "--loops", "1", "--output", "json"]);
    assert_eq!(json(&report)["findings"], json!([]), "{report}");

    let deployments: Api<Deployment> = Api::namespaced(cluster.client.clone(), "op-system");
    let scale = async |replicas: i32| {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        let (name, params) = ("op-controller-manager", PatchParams::default());
        deployments.patch(name, &params, &patch).await.unwrap();
    };
    scale(0).await;
    let scaled = format!(
        "{OK}
FAIL  operator      deployment/op-controller-manager is scaled to 0 replicas: nothing is reconciled
                    kubectl -n op-system scale deployment/op-controller-manager --replicas 1
"
    );
    assert_eq!(doctor(&cluster, 1), scaled);
    let output = cluster
        .place
        .opkit(&["doctor", "--loops", "0", "-o", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let report = json(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(report["operator"], "op");
    assert_eq!(report["mayDeploy"], true);
    let finding = &report["findings"][0];
    assert_eq!(
        (&finding["severity"], &finding["check"]),
        (&json!("fail"), &json!("operator"))
    );
    assert_eq!(finding["object"]["name"], "op-controller-manager");
    cluster.place.stdout(&["deploy"]);
    assert_eq!(doctor(&cluster, 0), healthy);

    // A warning does not fail.
    let mut newer = super::deploy::model("1.1.0");
    newer.namespace = "op-system".to_owned();
    cluster.place.print(&newer);
    let report = doctor(&cluster, 0);
    let warning = "warn  version       deployment/op-controller-manager runs op:1.0.0, and this build is op 1.1.0\n";
    assert!(report.contains(warning), "{report}");

    let namespaces: Api<Namespace> = Api::all(cluster.client.clone());
    assert!(namespaces.get_opt("op-system").await.unwrap().is_some());
}

#[test]
fn a_cluster_that_does_not_respond_is_one_sentence() {
    let place = super::deploy::Place::new();
    let kubeconfig = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "gone",
        "clusters": [{"name": "gone", "cluster": {"server": "http://127.0.0.1:1"}}],
        "contexts": [{"name": "gone", "context": {"cluster": "gone", "user": ""}}],
    });
    fs::write(place.root.path().join("gone.yaml"), kubeconfig.to_string()).unwrap();
    let output = place.opkit(&["doctor", "--kubeconfig", "gone.yaml"]);
    refused(&output, &["cannot reach the API server"]);
    let wrong = place.opkit(&["doctor", "--loops", "-1"]);
    assert_eq!(wrong.status.code(), Some(2));
}
