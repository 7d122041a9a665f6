use serde_json::{Value, json};

use super::{Field, of_pod, of_pod_spec, to_value};

fn container(name: &str, cpu: &str, policy: &str) -> Value {
    json!({"name": name, "restartPolicy": policy, "resources": {"requests": {"cpu": cpu}}})
}

fn check(pod: Value, expected: Value) {
    assert_eq!(
        to_value(&of_pod_spec(&pod, Field::Requests)),
        expected,
        "spec of {pod}"
    );
    assert_eq!(to_value(&of_pod(&pod, Field::Requests)), expected, "{pod}");
}

#[test]
fn init_containers_run_before_the_containers() {
    let containers = || json!([container("a", "1", ""), container("b", "500m", "")]);
    check(
        json!({"spec": {"containers": containers()}}),
        json!({"cpu": "1500m"}),
    );
    let small = json!([container("i", "1", "")]);
    check(
        json!({"spec": {"containers": containers(), "initContainers": small}}),
        json!({"cpu": "1500m"}),
    );
    let large = json!([container("i", "2", ""), container("j", "1", "")]);
    check(
        json!({"spec": {"containers": containers(), "initContainers": large}}),
        json!({"cpu": "2"}),
    );
    // The second init container runs beside the sidecar.
    let sidecar = json!([container("s", "1", "Always"), container("i", "2", "")]);
    check(
        json!({"spec": {"containers": containers(), "initContainers": sidecar}}),
        json!({"cpu": "3"}),
    );
}

#[test]
fn the_resources_of_the_pod_replace_those_of_containers() {
    let pod = json!({"spec": {
        "containers": [container("a", "1", "")],
        "resources": {"requests": {"cpu": "3"}},
    }});
    check(pod, json!({"cpu": "3"}));
}

#[test]
fn quotas_count_the_overhead() {
    let pod = json!({"spec": {
        "containers": [{"name": "a", "resources": {
            "requests": {"cpu": "1"}, "limits": {"memory": "1Gi"},
        }}],
        "overhead": {"cpu": "250m", "memory": "1Gi"},
    }});
    let requests = of_pod(&pod, Field::Requests);
    assert_eq!(
        to_value(&requests),
        json!({"cpu": "1250m", "memory": "1Gi"})
    );
    // There is no limit of CPU, and so no limit of the overhead either.
    assert_eq!(
        to_value(&of_pod(&pod, Field::Limits)),
        json!({"memory": "2Gi"})
    );
    assert_eq!(
        to_value(&of_pod_spec(&pod, Field::Requests)),
        json!({"cpu": "1"})
    );
}

#[test]
fn quotas_count_the_larger_size_while_a_resize_is_pending() {
    let pod = |condition: Value| {
        json!({
            "spec": {"containers": [container("a", "1", "")]},
            "status": {
                "conditions": [condition],
                "containerStatuses": [{
                    "name": "a", "resources": {"requests": {"cpu": "2"}},
                    "allocatedResources": {"cpu": "1500m"},
                }],
            },
        })
    };
    let requests = |pod: &Value| to_value(&of_pod(pod, Field::Requests));
    assert_eq!(requests(&pod(json!({}))), json!({"cpu": "2"}));
    let mut grown = pod(json!({"type": "PodResizePending", "reason": "Infeasible"}));
    grown["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!("8");
    // A size that the node cannot provide does not count.
    assert_eq!(requests(&grown), json!({"cpu": "2"}));
}
