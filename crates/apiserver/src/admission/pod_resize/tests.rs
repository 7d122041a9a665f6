use serde_json::{Value, json};

use super::{Refusal, check};

fn pod(requests: Value) -> Value {
    json!({"spec": {"nodeName": "n", "containers": [{"resources": {"requests": requests}}]}})
}

fn node(system: &str) -> Value {
    json!({
        "metadata": {"labels": {"kubernetes.io/os": system}},
        "status": {"allocatable": {"cpu": "1", "memory": "1Ki"}},
    })
}

#[test]
fn a_pod_is_resized_within_its_node() {
    assert_eq!(
        check(&pod(json!({"cpu": "1"})), Some(&node("linux"))),
        Ok(())
    );
    let refused = check(
        &pod(json!({"cpu": "1500m", "memory": "2Ki"})),
        Some(&node("linux")),
    );
    let expected = "node didn't have enough allocatable resources: cpu, requested: 1500, \
                    allocatable: 1000; memory, requested: 2048, allocatable: 1024";
    let refusal = Refusal {
        cause: "NodeCapacity",
        message: expected.to_owned(),
    };
    assert_eq!(refused, Err(refusal));
}

#[test]
fn a_pod_is_not_resized_on_other_systems_or_missing_nodes() {
    let refused = check(&pod(json!({})), Some(&node("windows"))).unwrap_err();
    let expected = "pod resize is only supported on linux nodes, node \"n\" is \"windows\"";
    assert_eq!(
        (refused.cause, &*refused.message),
        ("UnsupportedPlatform", expected)
    );
    let refused = check(&pod(json!({})), None).unwrap_err();
    assert_eq!(
        (refused.cause, &*refused.message),
        ("", "node \"n\" not found")
    );
}
