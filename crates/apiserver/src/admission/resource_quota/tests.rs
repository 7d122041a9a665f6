use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Evaluator, Request, charge};
use crate::admission::resource_list;

fn quota(name: &str, hard: Value, used: Value) -> Value {
    json!({"metadata": {"name": name}, "status": {"hard": hard, "used": used}})
}

fn pod(requests: Value) -> Value {
    json!({"spec": {"containers": [{"name": "c", "resources": {"requests": requests}}]}})
}

/// Charges a quota for the object of a request, and returns the new use, or the error.
fn used(
    resource: &str,
    quota: &Value,
    object: &Value,
    old: Option<&Value>,
) -> Result<Value, String> {
    let request = Request {
        subresource: "",
        object,
        old,
        now: Timestamp::UNIX_EPOCH,
    };
    let evaluator = Evaluator::of_resource(resource);
    let charged = charge(&evaluator, &request, std::slice::from_ref(quota))?;
    Ok(charged[0]
        .as_ref()
        .map_or(Value::Null, resource_list::to_value))
}

#[test]
fn a_pod_is_charged_for_its_requests() {
    let quota = quota(
        "q",
        json!({"cpu": "2", "pods": "2"}),
        json!({"cpu": "1", "pods": "1"}),
    );
    let charged = used("pods", &quota, &pod(json!({"cpu": "500m"})), None);
    assert_eq!(charged, Ok(json!({"cpu": "1500m", "pods": "2"})));
    let refused = used("pods", &quota, &pod(json!({"cpu": "1001m"})), None);
    let expected = "exceeded quota: q, requested: cpu=1001m, used: cpu=1, limited: cpu=2";
    assert_eq!(refused.unwrap_err(), expected);
    let refused = used("pods", &quota, &pod(json!({"memory": "1"})), None);
    assert_eq!(
        refused.unwrap_err(),
        "failed quota: q: must specify cpu for: c"
    );
}

#[test]
fn a_quota_without_usage_is_not_used() {
    let quota = quota(
        "q",
        json!({"configmaps": "2", "pods": "1"}),
        json!({"pods": "0"}),
    );
    let refused = used("configmaps", &quota, &json!({}), None);
    let expected = "status unknown for quota: q, resources: configmaps";
    assert_eq!(refused.unwrap_err(), expected);
    assert_eq!(used("secrets", &quota, &json!({}), None), Ok(Value::Null));
}

#[test]
fn an_update_is_charged_for_the_increase() {
    let quota = quota(
        "q",
        json!({"requests.storage": "5Gi"}),
        json!({"requests.storage": "2Gi"}),
    );
    let claim = |size: &str| {
        json!({
            "metadata": {"resourceVersion": "1"},
            "spec": {"resources": {"requests": {"storage": size}}},
        })
    };
    let charge = |old: &str, new: &str| {
        used(
            "persistentvolumeclaims",
            &quota,
            &claim(new),
            Some(&claim(old)),
        )
    };
    assert_eq!(charge("1Gi", "3Gi"), Ok(json!({"requests.storage": "4Gi"})));
    assert_eq!(charge("3Gi", "1Gi"), Ok(Value::Null));
    assert!(charge("1Gi", "5Gi").is_err());
}

#[test]
fn services_count_ports_and_balancers() {
    let quota = quota(
        "q",
        json!({"services": "5", "services.nodeports": "5", "services.loadbalancers": "5"}),
        json!({"services": "0", "services.nodeports": "0", "services.loadbalancers": "0"}),
    );
    let service = |type_: &str, allocates: bool| {
        json!({"spec": {
            "type": type_, "allocateLoadBalancerNodePorts": allocates,
            "ports": [{"nodePort": 30000}, {}],
        }})
    };
    let check = |service: &Value, ports: &str, balancers: &str| {
        let charged = used("services", &quota, service, None).unwrap();
        let expected = json!({
            "services": "1", "services.nodeports": ports, "services.loadbalancers": balancers,
        });
        assert_eq!(charged, expected, "{service}");
    };
    check(&service("ClusterIP", true), "0", "0");
    check(&service("NodePort", true), "2", "0");
    check(&service("LoadBalancer", true), "2", "1");
    check(&service("LoadBalancer", false), "1", "1");
}

#[test]
fn ended_pods_count_only_as_objects() {
    let quota = quota(
        "q",
        json!({"pods": "5", "count/pods": "5"}),
        json!({"pods": "0", "count/pods": "0"}),
    );
    let mut ended = pod(json!({}));
    ended["status"] = json!({"phase": "Failed"});
    let charged = used("pods", &quota, &ended, None);
    assert_eq!(charged, Ok(json!({"pods": "0", "count/pods": "1"})));
    let mut lost = pod(json!({}));
    lost["metadata"] = json!({
        "deletionTimestamp": "1969-12-31T23:59:00Z", "deletionGracePeriodSeconds": 30,
    });
    let charged = used("pods", &quota, &lost, None);
    assert_eq!(charged, Ok(json!({"pods": "0", "count/pods": "1"})));
    lost["metadata"]["deletionGracePeriodSeconds"] = json!(90);
    let charged = used("pods", &quota, &lost, None);
    assert_eq!(charged, Ok(json!({"pods": "1", "count/pods": "1"})));
}

/// Checks whether a quota with these scopes counts a Pod.
fn check_scope(spec: Value, pod_spec: Value, expected: bool) {
    let mut quota = quota("q", json!({"pods": "0"}), json!({"pods": "0"}));
    quota["spec"] = spec;
    let pod = json!({"spec": pod_spec});
    let is_counted = used("pods", &quota, &pod, None).is_err();
    assert_eq!(is_counted, expected, "{quota} {pod}");
}

#[test]
fn quotas_have_scopes() {
    let scopes = |names: &[&str]| json!({"scopes": names});
    let requests = || json!({"containers": [{"resources": {"requests": {"cpu": "1"}}}]});
    check_scope(scopes(&["BestEffort"]), json!({"containers": [{}]}), true);
    check_scope(scopes(&["BestEffort"]), requests(), false);
    check_scope(scopes(&["NotBestEffort"]), requests(), true);
    check_scope(
        scopes(&["Terminating"]),
        json!({"activeDeadlineSeconds": 1}),
        true,
    );
    check_scope(
        scopes(&["NotTerminating"]),
        json!({"activeDeadlineSeconds": 1}),
        false,
    );
    check_scope(
        scopes(&["NotTerminating", "NotBestEffort"]),
        requests(),
        true,
    );
    check_scope(scopes(&["NotTerminating", "BestEffort"]), requests(), false);
    let term = |field: Value| {
        json!({"affinity": {"podAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": [field],
        }}})
    };
    let cross = || scopes(&["CrossNamespacePodAffinity"]);
    check_scope(cross(), term(json!({"namespaces": ["n"]})), true);
    check_scope(cross(), term(json!({"namespaceSelector": {}})), true);
    check_scope(cross(), term(json!({})), false);
    // A scope of claims.
    check_scope(scopes(&["VolumeAttributesClass"]), json!({}), false);
}

#[test]
fn scopes_select_priority_classes() {
    let selector = |operator: &str, values: Value| {
        json!({"scopeSelector": {"matchExpressions": [
            {"scopeName": "PriorityClass", "operator": operator, "values": values},
        ]}})
    };
    let high = || json!({"priorityClassName": "high"});
    check_scope(selector("In", json!(["high"])), high(), true);
    check_scope(selector("In", json!(["low"])), high(), false);
    check_scope(selector("In", json!(["low"])), json!({}), false);
    check_scope(selector("NotIn", json!(["low"])), high(), true);
    check_scope(selector("NotIn", json!(["low"])), json!({}), true);
    check_scope(selector("Exists", json!([])), high(), true);
    check_scope(selector("DoesNotExist", json!([])), high(), false);
}

#[test]
fn claims_belong_to_the_scopes_of_their_attributes_classes() {
    let mut quota = quota(
        "q",
        json!({"persistentvolumeclaims": "0"}),
        json!({"persistentvolumeclaims": "0"}),
    );
    quota["spec"] = json!({"scopeSelector": {"matchExpressions": [
        {"scopeName": "VolumeAttributesClass", "operator": "In", "values": ["gold"]},
    ]}});
    let is_counted = |claim: Value| used("persistentvolumeclaims", &quota, &claim, None).is_err();
    assert!(is_counted(
        json!({"spec": {"volumeAttributesClassName": "gold"}})
    ));
    assert!(!is_counted(
        json!({"spec": {"volumeAttributesClassName": "silver"}})
    ));
    assert!(is_counted(json!({
        "spec": {"volumeAttributesClassName": "silver"},
        "status": {"currentVolumeAttributesClassName": "gold"},
    })));
    assert!(!is_counted(json!({})));
}

#[test]
fn resource_claims_count_devices_by_class() {
    let name = "gpu.deviceclass.resource.k8s.io/devices";
    let quota = quota("q", json!({name: "40"}), json!({name: "0"}));
    let claim = json!({"spec": {"devices": {"requests": [
        {"exactly": {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 2}},
        {"firstAvailable": [
            {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 3},
            {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1},
        ]},
        {"exactly": {"deviceClassName": "gpu", "allocationMode": "All"}},
    ]}}});
    let charged = used("resourceclaims.resource.k8s.io", &quota, &claim, None);
    assert_eq!(charged, Ok(json!({name: "37"})));
}

#[test]
fn extended_resources_are_limited_by_their_requests() {
    let quota = quota(
        "q",
        json!({"requests.example.com/gpu": "3", "hugepages-2Mi": "4Mi"}),
        json!({"requests.example.com/gpu": "1", "hugepages-2Mi": "0"}),
    );
    let requests = json!({"example.com/gpu": "2", "hugepages-2Mi": "2Mi"});
    let charged = used("pods", &quota, &pod(requests), None);
    let expected = json!({"requests.example.com/gpu": "3", "hugepages-2Mi": "2Mi"});
    assert_eq!(charged, Ok(expected));
}
