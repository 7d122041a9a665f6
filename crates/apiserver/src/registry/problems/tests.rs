use serde_json::json;

use super::*;

#[test]
fn a_webhook_is_named_in_its_errors() {
    let webhook = |name: &str, expression: &str| {
        json!({
            "name": name, "admissionReviewVersions": ["v1"], "sideEffects": "None",
            "clientConfig": {"service": {"name": "a", "namespace": "b"}},
            "matchConditions": [{"name": "small", "expression": expression}],
        })
    };
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "shop-operator"},
        "webhooks": [
            webhook("a.shops.opkit.dev", "object.spec.size < 3"),
            webhook("b.shops.opkit.dev", "object.spec.size <"),
        ],
    });
    let problems = object_problems(&[configuration]);
    let [problem] = problems.as_slice() else {
        panic!("{problems:?}");
    };
    let start = "ValidatingWebhookConfiguration shop-operator: webhook b.shops.opkit.dev: \
                 webhooks[1].matchConditions[0].expression: Invalid value: \"object.spec.size <\"";
    assert!(problem.starts_with(start), "{problem}");
}

#[test]
fn other_kinds_are_not_checked() {
    let robot = json!({"apiVersion": "example.com/v1", "kind": "Robot", "spec": 3});
    assert_eq!(object_problems(&[robot, json!(null)]), Vec::<String>::new());
}
