use k8s_openapi::api::core::v1::ConfigMap;

use super::*;

#[test]
fn a_validating_policy_has_a_binding_that_denies() {
    let selector: LabelSelector =
        serde_json::from_value(json!({"matchLabels": {"team": "a"}})).unwrap();
    let policy = ValidatingPolicy::of::<ConfigMap>("maps")
        .variable("count", "size(object.data)")
        .validation("variables.count < 3", "too many entries")
        .audit_annotation("count", "string(variables.count)")
        .match_condition("not-system", "request.namespace != 'kube-system'")
        .namespace_selector(selector)
        .operations(["CREATE"]);
    let [policy, binding] = policy.documents().try_into().unwrap();
    assert_eq!(
        policy["spec"],
        json!({
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["configmaps"],
            }]},
            "variables": [{"name": "count", "expression": "size(object.data)"}],
            "validations": [{"expression": "variables.count < 3", "message": "too many entries"}],
            "auditAnnotations": [{"key": "count", "valueExpression": "string(variables.count)"}],
            "matchConditions": [
                {"name": "not-system", "expression": "request.namespace != 'kube-system'"},
            ],
        })
    );
    assert_eq!(
        binding["spec"],
        json!({
            "policyName": "maps", "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {"team": "a"}}},
        })
    );
    assert_eq!(binding["metadata"]["name"], "maps-binding");
}

#[test]
fn a_mutating_policy_has_both_sorts_of_patches() {
    let policy = MutatingPolicy::of::<ConfigMap>("maps")
        .apply_configuration("Object{}")
        .json_patch("[]")
        .reinvoke_if_needed()
        .ignore_failures();
    let [policy, binding] = policy.documents().try_into().unwrap();
    assert_eq!(policy["kind"], "MutatingAdmissionPolicy");
    assert_eq!(policy["spec"]["reinvocationPolicy"], "IfNeeded");
    assert_eq!(policy["spec"]["failurePolicy"], "Ignore");
    let types: Vec<_> = (policy["spec"]["mutations"].as_array().unwrap().iter())
        .map(|it| it["patchType"].as_str().unwrap())
        .collect();
    assert_eq!(types, ["ApplyConfiguration", "JSONPatch"]);
    assert_eq!(binding["kind"], "MutatingAdmissionPolicyBinding");
    assert_eq!(binding["spec"], json!({"policyName": "maps"}));
}
