use super::*;

fn deployment(status: Value) -> Unstructured {
    Unstructured::from(json!({
        "metadata": {"name": "op", "generation": 2}, "spec": {"replicas": 2}, "status": status,
    }))
}

#[test]
fn a_rollout_is_complete_when_all_replicas_are_new_and_available() {
    let counts = |generation: i64, replicas: i64, updated: i64, available: i64| {
        RolloutState::of(&deployment(json!({
            "observedGeneration": generation, "replicas": replicas,
            "updatedReplicas": updated, "availableReplicas": available,
        })))
    };
    assert!(counts(2, 2, 2, 2).is_complete());
    assert!(
        !counts(1, 2, 2, 2).is_complete(),
        "of the generation before"
    );
    assert!(!counts(2, 3, 2, 2).is_complete(), "an old replica is left");
    assert!(!counts(2, 3, 3, 3).is_complete(), "it is scaled down");
    assert!(!counts(2, 2, 1, 2).is_complete());
    assert!(!counts(2, 2, 2, 1).is_complete());
    assert!(!RolloutState::of(&deployment(json!({}))).is_complete());
    let text = counts(2, 3, 1, 2).to_string();
    assert_eq!(text, "2 of 2 available, 2 to stop");
}

#[test]
fn the_controllers_message_is_the_failure() {
    let state = RolloutState::of(&deployment(json!({"conditions": [{
        "type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded",
        "message": "it timed out", "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]})));
    assert_eq!(state.failure.as_deref(), Some("it timed out"));
}

#[test]
fn the_problem_of_a_pod_names_its_reason() {
    let waiting = Unstructured::from(json!({
        "metadata": {"name": "op-1"},
        "status": {"containerStatuses": [
            {"state": {"running": {}}},
            {"state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}},
        ]},
    }));
    let expected = "pod op-1: ImagePullBackOff: no such image";
    assert_eq!(problem_of_pod(&waiting).as_deref(), Some(expected));
    let pending = Unstructured::from(json!({
        "metadata": {"name": "op-1"},
        "status": {"conditions": [
            {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"},
        ]},
    }));
    assert_eq!(
        problem_of_pod(&pending).as_deref(),
        Some("pod op-1: Unschedulable")
    );
    let running = json!({"status": {"containerStatuses": [{"state": {"running": {}}}]}});
    assert_eq!(problem_of_pod(&running.into()), None);
}
