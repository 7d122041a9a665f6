//! The requests: reviews of a Pod, and a review for the conversion of Robots.

use opkit_benches::data::Kind;
use serde_json::{Value, json};

pub(crate) const MUTATE: &str = "/mutate--v1-pod";
pub(crate) const VALIDATE: &str = "/validate--v1-pod";
pub(crate) const CONVERT: &str = "/convert";

/// Returns the AdmissionReview for the creation of a Pod.
pub(crate) fn admission() -> String {
    let mut pod = Kind::Pods.objects(1).next().unwrap_or_default();
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "requestKind": {"group": "", "version": "v1", "kind": "Pod"},
            "requestResource": {"group": "", "version": "v1", "resource": "pods"},
            "name": "pod-7",
            "namespace": "default",
            "operation": "CREATE",
            "userInfo": {"username": "admin", "groups": ["system:masters", "system:authenticated"]},
            "object": pod,
            "oldObject": null,
            "dryRun": false,
            "options": {"apiVersion": "meta.k8s.io/v1", "kind": "CreateOptions"},
        },
    })
    .to_string()
}

/// Returns the ConversionReview for this number of Robots.
pub(crate) fn conversion(objects: u64) -> String {
    let robots: Vec<Value> = (0..objects).map(robot).collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "ConversionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800003",
            "desiredAPIVersion": "robot.opkit.dev/v1",
            "objects": robots,
        },
    })
    .to_string()
}

fn robot(number: u64) -> Value {
    json!({
        "apiVersion": "robot.opkit.dev/v1alpha1",
        "kind": "Robot",
        "metadata": {
            "name": format!("robot-{number}"),
            "namespace": "default",
            "uid": format!("705ab4f5-6393-11e8-b7cc-{number:012}"),
            "resourceVersion": (1000 + number).to_string(),
            "generation": 1,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": "robots", "tier": format!("tier-{}", number % 7)},
        },
        "spec": {
            "image": format!("registry.example.com/robots/robot:{number}"),
            "size": number % 9,
            "endpoint": format!("robot-{number}.robots.svc:{}", 8000 + number % 1000),
            "labels": {"zone": format!("zone-{}", number % 3), "owner": "fleet"},
        },
    })
}
