use std::sync::Arc;

use serde_json::{Value, json};

use super::{check_claim, check_pod, set_defaults};

fn range(limit: Value) -> Vec<Arc<Value>> {
    vec![Arc::new(json!({"spec": {"limits": [limit]}}))]
}

fn pod(resources: Value) -> Value {
    json!({"spec": {"containers": [{"name": "c", "resources": resources}]}})
}

#[test]
fn defaults_fill_what_is_missing() {
    let ranges = range(json!({
        "type": "Container",
        "default": {"cpu": "500m", "memory": "512Mi"},
        "defaultRequest": {"cpu": "100m", "memory": "256Mi"},
    }));
    let mut pod = json!({"spec": {
        "containers": [
            {"name": "a"},
            {"name": "b", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}},
        ],
        "initContainers": [{"name": "i", "resources": {"requests": {"memory": "1"}}}],
    }});
    set_defaults(&ranges, &mut pod);
    let expected = json!({"requests": {"cpu": "1", "memory": "256Mi"},
        "limits": {"cpu": "1", "memory": "512Mi"}});
    assert_eq!(pod["spec"]["containers"][1]["resources"], expected);
    let expected = "LimitRanger plugin set: cpu, memory request for container a; cpu, memory limit \
                    for container a; memory request for container b; memory limit for container \
                    b; cpu request for init container i; cpu, memory limit for init container i";
    let annotations = &pod["metadata"]["annotations"];
    assert_eq!(annotations["kubernetes.io/limit-ranger"], expected);
}

#[test]
fn without_defaults_a_pod_is_not_annotated() {
    let mut pod = pod(json!({}));
    let before = pod.clone();
    set_defaults(
        &range(json!({"type": "Pod", "max": {"cpu": "1"}})),
        &mut pod,
    );
    assert_eq!(pod, before);
}

fn check(limit: Value, resources: Value, expected: &str) {
    let found = check_pod(&range(limit), &pod(resources));
    assert_eq!(found.err().unwrap_or_default(), expected);
}

#[test]
fn containers_have_bounds() {
    let min = || json!({"type": "Container", "min": {"cpu": "100m"}});
    check(
        min(),
        json!({}),
        "minimum cpu usage per Container is 100m.  No request is specified",
    );
    check(
        min(),
        json!({"requests": {"cpu": "50m"}}),
        "minimum cpu usage per Container is 100m, but request is 50m",
    );
    check(
        min(),
        json!({"requests": {"cpu": "100m"}, "limits": {"cpu": "99m"}}),
        "minimum cpu usage per Container is 100m, but limit is 99m",
    );
    check(min(), json!({"requests": {"cpu": "0.1"}}), "");
    let max = || json!({"type": "Container", "max": {"memory": "1Gi"}});
    check(
        max(),
        json!({}),
        "maximum memory usage per Container is 1Gi.  No limit is specified",
    );
    check(
        max(),
        json!({"limits": {"memory": "1025Mi"}}),
        "maximum memory usage per Container is 1Gi, but limit is 1025Mi",
    );
    check(
        max(),
        json!({"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}}),
        "maximum memory usage per Container is 1Gi, but request is 2Gi",
    );
    check(max(), json!({"limits": {"memory": "1024Mi"}}), "");
}

#[test]
fn the_ratio_of_limit_and_request_has_a_bound() {
    let ratio = || json!({"type": "Pod", "maxLimitRequestRatio": {"cpu": "2500m"}});
    check(
        ratio(),
        json!({"limits": {"cpu": "1"}}),
        "cpu max limit to request ratio per Pod is 2500m, but no request is specified or request \
         is 0",
    );
    check(
        ratio(),
        json!({"requests": {"cpu": "1"}}),
        "cpu max limit to request ratio per Pod is 2500m, but no limit is specified or limit is 0",
    );
    check(
        ratio(),
        json!({"requests": {"cpu": "1"}, "limits": {"cpu": "3"}}),
        "cpu max limit to request ratio per Pod is 2500m, but provided ratio is 3.000000",
    );
    check(
        ratio(),
        json!({"requests": {"cpu": "1"}, "limits": {"cpu": "2.5"}}),
        "",
    );
}

#[test]
fn several_violations_are_one_error_without_duplicates() {
    let ranges = range(json!({"type": "Container", "max": {"cpu": "1", "memory": "1"}}));
    let two = json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}});
    let expected = "[maximum cpu usage per Container is 1.  No limit is specified, maximum memory \
                    usage per Container is 1.  No limit is specified]";
    assert_eq!(check_pod(&ranges, &two).unwrap_err(), expected);
}

#[test]
fn claims_have_bounds() {
    let ranges = range(json!({
        "type": "PersistentVolumeClaim", "min": {"storage": "1Gi"}, "max": {"storage": "2Gi"},
    }));
    let check = |size: &str, expected: &str| {
        let claim = json!({"spec": {"resources": {"requests": {"storage": size}}}});
        let found = check_claim(&ranges, &claim);
        assert_eq!(found.err().unwrap_or_default(), expected);
    };
    check("1Gi", "");
    let small = "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi";
    check("1Mi", small);
    let large = "maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi";
    check("3Gi", large);
    let bound = "storage usage per PersistentVolumeClaim is";
    let none = format!(
        "[minimum {bound} 1Gi.  No request is specified, maximum {bound} 2Gi.  No request is \
         specified]"
    );
    assert_eq!(check_claim(&ranges, &json!({})).unwrap_err(), none);
}
