use super::*;

fn check(pod: Value, expected: Option<Step>) {
    assert_eq!(next_step(&pod), expected, "{pod}");
}

#[test]
fn a_pod_is_bound_then_runs() {
    check(json!({"status": {"phase": "Pending"}}), Some(Step::Bind));
    let bound = json!({"spec": {"nodeName": NODE}, "status": {"phase": "Pending"}});
    check(bound, Some(Step::Run));
    let running = json!({"spec": {"nodeName": NODE}, "status": {"phase": "Running"}});
    check(running, None);
}

#[test]
fn a_pod_of_another_node_or_behind_a_gate_is_left_alone() {
    check(json!({"spec": {"nodeName": "other"}}), None);
    check(json!({"spec": {"schedulingGates": [{"name": "g"}]}}), None);
}

#[test]
fn a_deleted_pod_is_finished_unless_it_has_other_finalizers() {
    let deleted = |grace: i64, finalizers: &[&str]| {
        json!({
            "metadata": {
                "deletionTimestamp": "2030-01-01T00:00:00Z", "deletionGracePeriodSeconds": grace,
                "finalizers": finalizers,
            },
            "spec": {"nodeName": NODE},
        })
    };
    check(deleted(30, &[]), Some(Step::Finish));
    check(deleted(30, &["a/b"]), Some(Step::Finish));
    check(deleted(0, &["a/b"]), None);
}

#[test]
fn every_container_is_ready() {
    let pod = json!({"spec": {"containers": [{"name": "a", "image": "i"}, {"name": "b"}]}});
    let status = running(&pod, "2030-01-01T00:00:00Z");
    let statuses = status["containerStatuses"].as_array().unwrap();
    assert_eq!(statuses.len(), 2);
    assert!(statuses.iter().all(|status| status["ready"] == json!(true)));
}
