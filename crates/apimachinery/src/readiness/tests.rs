use serde_json::{Value, json};

use super::*;

fn object(kind: &str, spec: Value, status: Value) -> Value {
    json!({
        "apiVersion": if kind == "Robot" { "example.com/v1" } else { "apps/v1" },
        "kind": kind,
        "metadata": {"generation": 2},
        "spec": spec,
        "status": status,
    })
}

#[test]
fn workloads() {
    fn check(kind: &str, spec: Value, status: Value, expected: bool) {
        assert_eq!(
            is_ready(&object(kind, spec, status.clone())),
            expected,
            "{kind} {status}"
        );
    }
    let done = json!({
        "observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3,
        "readyReplicas": 3,
    });
    let with = |name: &str, value: i64| {
        let mut status = done.clone();
        status[name] = json!(value);
        status
    };
    let three = json!({"replicas": 3});
    for kind in ["Deployment", "StatefulSet", "ReplicaSet"] {
        check(kind, three.clone(), done.clone(), true);
        check(kind, three.clone(), with("observedGeneration", 1), false);
        check(kind, three.clone(), with("availableReplicas", 2), false);
        check(kind, three.clone(), with("replicas", 4), false);
        check(kind, three.clone(), json!({}), false);
        check(
            kind,
            json!({"replicas": 0}),
            json!({"observedGeneration": 2}),
            true,
        );
        check(kind, json!({}), json!({"observedGeneration": 2}), false);
    }
    check(
        "Deployment",
        three.clone(),
        with("updatedReplicas", 2),
        false,
    );
    check("StatefulSet", three, with("updatedReplicas", 2), false);
    let partitioned = json!({"replicas": 3, "updateStrategy": {"rollingUpdate": {"partition": 2}}});
    check("StatefulSet", partitioned, with("updatedReplicas", 1), true);
    let daemons = |available: i64| {
        json!({
            "observedGeneration": 2, "desiredNumberScheduled": 2, "updatedNumberScheduled": 2,
            "numberAvailable": available,
        })
    };
    check("DaemonSet", json!({}), daemons(2), true);
    check("DaemonSet", json!({}), daemons(1), false);
}

#[test]
fn other_kinds_are_ready_by_conditions() {
    fn check(kind: &str, conditions: Value, expected: bool) {
        let status = json!({"conditions": conditions});
        assert_eq!(
            is_ready(&object(kind, json!({}), status)),
            expected,
            "{kind} {conditions}"
        );
    }
    check("Job", json!([{"type": "Complete", "status": "True"}]), true);
    check("Job", json!([{"type": "Failed", "status": "True"}]), false);
    check("Pod", json!([{"type": "Ready", "status": "True"}]), true);
    check("Pod", json!([]), false);
    check("Robot", json!([{"type": "Ready", "status": "True"}]), true);
    check(
        "Robot",
        json!([{"type": "Ready", "status": "True", "observedGeneration": 2}]),
        true,
    );
    check(
        "Robot",
        json!([{"type": "Ready", "status": "True", "observedGeneration": 1}]),
        false,
    );
    check(
        "Robot",
        json!([{"type": "Ready", "status": "Unknown"}]),
        false,
    );
    check(
        "Robot",
        json!([{"type": "Synced", "status": "True"}]),
        false,
    );
}

#[test]
fn kinds_without_a_status() {
    fn check(object: Value, expected: bool) {
        assert_eq!(is_ready(&object), expected, "{object}");
    }
    check(json!({"apiVersion": "v1", "kind": "ConfigMap"}), true);
    check(
        json!({"apiVersion": "v1", "kind": "Service", "status": {"loadBalancer": {}}}),
        true,
    );
    check(
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role"}),
        true,
    );
    check(
        json!({"apiVersion": "example.com/v1", "kind": "Robot"}),
        true,
    );
    check(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"deletionTimestamp": "2024-01-01T00:00:00Z"}}),
        false,
    );
    check(
        json!({"apiVersion": "x.io/v1", "kind": "Robot", "metadata": {"generation": 2}, "status": {"observedGeneration": 1, "phase": "Up"}}),
        false,
    );
    check(
        json!({"apiVersion": "x.io/v1", "kind": "Robot", "metadata": {"generation": 2}, "status": {"observedGeneration": 2, "phase": "Up"}}),
        true,
    );
}

#[test]
fn replicas_that_are_ready() {
    fn check(object: Value, expected: i32) {
        assert_eq!(ready_replicas(&object), expected);
    }
    check(
        json!({"kind": "Deployment", "status": {"readyReplicas": 2}}),
        2,
    );
    check(
        json!({"kind": "DaemonSet", "status": {"numberReady": 4}}),
        4,
    );
    check(json!({"kind": "Deployment"}), 0);
}

#[test]
fn a_custom_kind_of_the_same_name_is_not_a_workload() {
    let mut object = object("Deployment", json!({"replicas": 3}), json!({}));
    assert!(!is_ready(&object));
    object["apiVersion"] = json!("example.com/v1");
    assert!(is_ready(&object));
    object["status"] = json!({"conditions": [{"type": "Ready", "status": "False"}]});
    assert!(!is_ready(&object));
}
