use super::*;

fn pods(ready: usize, not_ready: usize) -> Vec<Arc<Value>> {
    let pod = |(index, status): (usize, &str)| {
        Arc::new(json!({
            "metadata": {"name": format!("p{index}")},
            "status": {"conditions": [{"type": "Ready", "status": status}]},
        }))
    };
    let ready = std::iter::repeat_n("True", ready);
    let not_ready = std::iter::repeat_n("False", not_ready);
    ready.chain(not_ready).enumerate().map(pod).collect()
}

/// Checks the status of a budget with this spec: healthy, desired, expected and allowed.
fn check(spec: Value, pods: &[Arc<Value>], scale: i64, want: [i64; 4]) {
    let budget = json!({"spec": spec});
    let count = count(&budget, pods, &Map::new(), scale);
    let got = [
        count.current_healthy,
        count.desired_healthy,
        count.expected_pods,
        count.disruptions_allowed,
    ];
    assert_eq!(got, want, "{budget}");
}

#[test]
fn a_budget_allows_what_is_left_over() {
    check(json!({"minAvailable": 2}), &pods(3, 0), 3, [3, 2, 3, 1]);
    check(json!({"minAvailable": 2}), &pods(1, 2), 3, [1, 2, 3, 0]);
    check(json!({"minAvailable": "50%"}), &pods(3, 0), 3, [3, 2, 3, 1]);
    check(json!({"maxUnavailable": 1}), &pods(3, 0), 4, [3, 3, 4, 0]);
    check(
        json!({"maxUnavailable": "50%"}),
        &pods(3, 0),
        3,
        [3, 1, 3, 2],
    );
    check(json!({"maxUnavailable": 9}), &pods(2, 0), 2, [2, 0, 2, 2]);
}

#[test]
fn a_budget_without_pods_allows_nothing() {
    check(json!({"minAvailable": 0}), &[], 0, [0, 0, 0, 0]);
    // Pods without a controller have no scale.
    check(json!({"maxUnavailable": 1}), &pods(2, 0), 0, [2, 0, 0, 0]);
}

#[test]
fn a_pod_that_is_evicted_is_not_healthy() {
    let pods = pods(2, 0);
    let budget = json!({
        "spec": {"minAvailable": 1},
        "status": {"disruptedPods": {"p0": "now", "gone": "now"}},
    });
    let disrupted = disrupted_pods(&budget, &pods);
    assert_eq!(disrupted.keys().collect::<Vec<_>>(), ["p0"]);
    let count = count(&budget, &pods, &disrupted, 0);
    assert_eq!(count.current_healthy, 1);
    assert_eq!(count.disruptions_allowed, 0);
}
