//! The Deployment, its Pods, its permissions and its Leases.

use super::*;
use Severity::{Fail, Warning};

#[test]
fn a_missing_deployment_is_one_problem() {
    let words = [
        "deployment/op-controller-manager does not exist",
        "opkit deploy",
    ];
    one(
        |facts| remove(facts, "Deployment"),
        Fail,
        "operator",
        &words,
    );
}

#[test]
fn a_deployment_without_replicas_is_a_failure() {
    one(
        |facts| live(facts, "Deployment")["spec"]["replicas"] = json!(0),
        Fail,
        "operator",
        &[
            "scaled to 0",
            "kubectl -n ops scale deployment/op-controller-manager --replicas 1",
        ],
    );
}

#[test]
fn fewer_replicas_than_wanted_are_a_warning() {
    one(
        |facts| live(facts, "Deployment")["spec"]["replicas"] = json!(2),
        Warning,
        "operator",
        &["1 of 2 replicas available"],
    );
}

/// Sets the status of the operator's Pod, which is not ready.
fn pod(facts: &mut Facts, status: Value) {
    live(facts, "Deployment")["status"] = json!({"availableReplicas": 0});
    live(facts, "Pod")["status"] = status;
}

fn waiting(reason: &str, message: &str) -> Value {
    json!({"phase": "Pending", "containerStatuses": [
        {"name": "manager", "state": {"waiting": {"reason": reason, "message": message}}},
    ]})
}

#[test]
fn the_reason_of_the_pod_is_named() {
    for (status, words) in [
        (
            waiting(
                "ImagePullBackOff",
                "Back-off pulling image \"acme/op:1.0.0\"",
            ),
            "0 of 1 replicas available: pod/op-7d4b-x2 ImagePullBackOff: Back-off pulling",
        ),
        (
            waiting("CreateContainerConfigError", "secret \"x\" not found"),
            "CreateContainerConfigError: secret \"x\" not found",
        ),
        (
            json!({"containerStatuses": [{
                "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
                "lastState": {"terminated": {"reason": "OOMKilled", "exitCode": 137}},
            }]}),
            "CrashLoopBackOff, after OOMKilled with exit code 137",
        ),
        (
            json!({"phase": "Pending", "conditions": [{
                "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
                "message": "0/3 nodes are available",
            }]}),
            "Unschedulable: 0/3 nodes are available",
        ),
        (
            json!({"phase": "Failed", "reason": "Evicted", "message": "low on memory"}),
            "Evicted: low on memory",
        ),
        (json!({"phase": "Running"}), "pod/op-7d4b-x2 is not ready"),
    ] {
        one(
            |facts| pod(facts, status),
            Fail,
            "operator",
            &[words, "kubectl -n ops describe"],
        );
    }
}

#[test]
fn a_quota_that_refuses_pods_is_named() {
    one(
        |facts| {
            remove(facts, "Pod");
            remove(facts, "Lease");
            live(facts, "Deployment")["status"] = json!({"conditions": [{
                "type": "ReplicaFailure", "status": "True", "message": "exceeded quota: small",
            }]});
        },
        Fail,
        "operator",
        &["no Pod can be created: exceeded quota: small"],
    );
}

#[test]
fn a_rollout_without_progress_is_named() {
    one(
        |facts| {
            remove(facts, "Pod");
            remove(facts, "Lease");
            live(facts, "Deployment")["status"] = json!({"conditions": [{
                "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded",
            }]});
        },
        Fail,
        "operator",
        &["the rollout makes no progress"],
    );
}

#[test]
fn a_restart_because_of_memory_is_a_warning() {
    one(
        |facts| {
            live(facts, "Pod")["status"]["containerStatuses"] = json!([{
                "restartCount": 4, "state": {"running": {}},
                "lastState": {"terminated": {"reason": "OOMKilled"}},
            }]);
        },
        Warning,
        "operator",
        &["restarted 4 times", "OOMKilled", "top pod"],
    );
}

fn unhealthy(count: i64, seconds: i64) -> Value {
    json!({"apiVersion": "v1", "kind": "Event", "reason": "Unhealthy", "count": count,
        "involvedObject": {"kind": "Pod", "name": "op-7d4b-x2"}, "lastTimestamp": ago(seconds),
        "message": "Readiness probe failed: HTTP probe failed with statuscode: 500"})
}

#[test]
fn failing_probes_are_reported_while_they_fail() {
    let words = [
        "Readiness probe failed",
        "statuscode: 500",
        "logs op-7d4b-x2",
    ];
    one(
        |facts| facts.objects.push(unhealthy(5, 20)),
        Warning,
        "probe",
        &words,
    );
    // One failure at the start of a Pod, and old ones.
    assert_eq!(findings(|facts| facts.objects.push(unhealthy(1, 20))), []);
    assert_eq!(findings(|facts| facts.objects.push(unhealthy(9, 3600))), []);
    let not_ready = findings(|facts| {
        pod(facts, json!({"phase": "Running"}));
        facts.objects.push(unhealthy(1, 20));
    });
    has(&not_ready, Fail, "probe", &words);
}

#[test]
fn another_image_than_that_of_the_build_is_a_warning() {
    let image = |facts: &mut Facts, image: &str| {
        let containers = &mut live(facts, "Deployment")["spec"]["template"]["spec"]["containers"];
        containers[0]["image"] = json!(image);
    };
    one(
        |facts| image(facts, "acme/op:0.9.0"),
        Warning,
        "version",
        &["runs acme/op:0.9.0, and this build is op 1.0.0"],
    );
    // Another registry, and a digest, are not another version.
    assert_eq!(
        findings(|facts| image(facts, "mirror:5000/acme/op:1.0.0")),
        []
    );
    assert_eq!(findings(|facts| image(facts, "acme/op@sha256:00")), []);
}

#[test]
fn a_missing_service_account_is_a_failure() {
    let words = ["serviceaccount/op does not exist"];
    one(
        |facts| remove(facts, "ServiceAccount"),
        Fail,
        "operator",
        &words,
    );
}

#[test]
fn a_role_without_a_permission_of_the_build_is_a_failure() {
    one(
        |facts| {
            drop(
                live(facts, "ClusterRole")["rules"]
                    .as_array_mut()
                    .unwrap()
                    .pop(),
            )
        },
        Fail,
        "rbac",
        &[
            "serviceaccount/op may not patch robots.example.com/status",
            "opkit deploy",
        ],
    );
    let two = findings(|facts| remove(facts, "ClusterRoleBinding"));
    has(
        &two,
        Fail,
        "rbac",
        &["may not get, list robots.example.com", "auth can-i get"],
    );
    has(
        &two,
        Fail,
        "rbac",
        &["may not patch robots.example.com/status"],
    );
}

#[test]
fn another_role_may_have_the_permissions() {
    let administrator = |facts: &mut Facts| {
        let role = live(facts, "ClusterRole");
        role["metadata"]["name"] = json!("all");
        role["rules"] = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
        live(facts, "ClusterRoleBinding")["roleRef"]["name"] = json!("all");
        live(facts, "ClusterRoleBinding")["subjects"] =
            json!([{"kind": "Group", "name": "system:serviceaccounts:ops"}]);
        // Not a member of the release, so that it is no leftover.
        live(facts, "ClusterRole")["metadata"]["labels"] = json!({});
    };
    assert_eq!(findings(administrator), []);
}

#[test]
fn leases_without_a_leader_are_found() {
    let spec = |holder: &str, seconds: i64| json!({"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": ago(seconds)});
    let lease = |holder: &'static str, seconds: i64| {
        move |facts: &mut Facts| live(facts, "Lease")["spec"] = spec(holder, seconds)
    };
    let words = [
        "lease/op.example.com expired",
        "pod/op-7d4b-x2 holds it and does not renew it",
    ];
    one(lease("op-7d4b-x2_1", 600), Fail, "lease", &words);
    let words = ["expired 9 min ago, held by gone", "no replica takes it"];
    one(lease("gone_1", 600), Fail, "lease", &words);
    let words = ["held by laptop_1, which is not a Pod", "reconcile nothing"];
    one(lease("laptop_1", 3), Warning, "lease", &words);
    // Released, as at a shutdown.
    assert_eq!(findings(lease("", 600)), []);
    let stopped = findings(|facts| {
        lease("gone_1", 600)(facts);
        pod(facts, json!({"phase": "Running"}));
    });
    has(
        &stopped,
        Warning,
        "lease",
        &["no replica runs that could take it"],
    );
    one(
        |facts| {
            let mut old = live(facts, "Lease").clone();
            old["metadata"]["name"] = json!("old.example.com");
            old["spec"] = spec("op-old-1_2", 9000);
            facts.objects.push(old);
        },
        Warning,
        "lease",
        &[
            "lease/old.example.com is orphaned",
            "kubectl -n ops delete lease old.example.com",
        ],
    );
}
