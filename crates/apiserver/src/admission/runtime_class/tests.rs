use serde_json::{Value, json};

use super::{admit, check, merge};

fn class() -> Value {
    json!({
        "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}},
        "scheduling": {
            "nodeSelector": {"runtime": "kata"},
            "tolerations": [{"key": "kata", "operator": "Exists", "effect": "NoSchedule"}],
        },
    })
}

#[test]
fn a_pod_gets_overhead_selector_and_tolerations() {
    let mut pod = json!({"spec": {"nodeSelector": {"disk": "ssd"}}});
    admit(&class(), &mut pod).unwrap();
    let expected = json!({"spec": {
        "overhead": {"cpu": "250m", "memory": "120Mi"},
        "nodeSelector": {"disk": "ssd", "runtime": "kata"},
        "tolerations": [{"key": "kata", "operator": "Exists", "effect": "NoSchedule"}],
    }});
    assert_eq!(pod, expected);
    assert_eq!(check(Some(&class()), &pod), Ok(()));
}

#[test]
fn another_overhead_is_refused() {
    let mut same = json!({"spec": {"overhead": {"cpu": "0.25", "memory": "120Mi"}}});
    admit(&class(), &mut same).unwrap();
    let mut pod = json!({"spec": {"overhead": {"cpu": "1"}}});
    let why = admit(&class(), &mut pod).unwrap_err();
    assert!(why.contains("doesn't match"), "{why}");
    assert!(
        check(Some(&class()), &pod)
            .unwrap_err()
            .contains("doesn't match")
    );
    assert!(
        check(None, &pod)
            .unwrap_err()
            .contains("without corresponding")
    );
    assert!(check(Some(&json!({})), &pod).is_err());
    assert_eq!(check(None, &json!({"spec": {}})), Ok(()));
}

#[test]
fn another_node_selector_is_refused() {
    let mut pod = json!({"spec": {"nodeSelector": {"runtime": "gvisor"}}});
    let expected = "conflict: runtimeClass.scheduling.nodeSelector[runtime] = kata; \
                    pod.spec.nodeSelector[runtime] = gvisor";
    assert_eq!(admit(&class(), &mut pod).unwrap_err(), expected);
}

fn check_merge(first: Value, second: Value, expected: Value) {
    let merged = merge(first.as_array().unwrap(), second.as_array().unwrap());
    assert_eq!(json!(merged), expected);
}

#[test]
fn tolerations_that_others_include_are_dropped() {
    let all = json!([{"operator": "Exists"}]);
    let one = json!([{"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}]);
    check_merge(one.clone(), one.clone(), one.clone());
    check_merge(one.clone(), all.clone(), all.clone());
    check_merge(all.clone(), one.clone(), all);
    let any_value = json!([{"key": "k", "operator": "Exists"}]);
    check_merge(one, any_value.clone(), any_value);
    let short = json!([{
        "key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5,
    }]);
    let long = json!([{
        "key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 50,
    }]);
    // The toleration with the longer time includes the other one.
    check_merge(short.clone(), long.clone(), long.clone());
    check_merge(long.clone(), short, long);
}
