use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::api::policy::v1::Eviction;
use serde_json::json;

use super::*;

fn allow<K>(_: &K, _: Option<&K>) -> Admission {
    Admission::allowed()
}

fn any<K: AdmissionObject>(webhook: Webhook<K>) -> AnyWebhook {
    webhook.into()
}

#[test]
fn a_configuration_has_safe_defaults() {
    let webhook = any(Webhook::<ConfigMap>::new()
        .defaulting(|_| {})
        .validating(allow));
    let expected = |verb: &str| {
        json!({
            "name": format!("{verb}.configmap.v1.core"),
            "clientConfig": {"service": {"path": format!("/{verb}--v1-configmap")}},
            "rules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE", "UPDATE"],
                "resources": ["configmaps"],
            }],
            "failurePolicy": "Fail", "matchPolicy": "Equivalent", "sideEffects": "None",
            "timeoutSeconds": 10, "admissionReviewVersions": ["v1"],
        })
    };
    assert_eq!(
        webhook.mutating_configuration().unwrap(),
        expected("mutate")
    );
    assert_eq!(
        webhook.validating_configuration().unwrap(),
        expected("validate")
    );
    webhook.check().unwrap();
}

#[test]
fn a_configuration_has_all_settings() {
    let selector = |label: &str| {
        serde_json::from_value::<LabelSelector>(json!({"matchLabels": {label: "yes"}})).unwrap()
    };
    let webhook = Webhook::<ConfigMap>::new()
        .defaulting(|_| {})
        .validating_delete(|_| Admission::allowed())
        .named("maps")
        .operations([Operation::Create, Operation::Delete])
        .failure_policy(FailurePolicy::Ignore)
        .timeout(Duration::from_secs(3))
        .match_condition("not-nodes", "!('system:nodes' in request.userInfo.groups)")
        .namespace_selector(selector("a"))
        .object_selector(selector("b"))
        .side_effects(SideEffects::NoneOnDryRun)
        .reinvocation_policy(ReinvocationPolicy::IfNeeded)
        .scope(RuleScope::Namespaced);
    let webhook = any(webhook);
    webhook.check().unwrap();
    let mut expected = json!({
        "name": "mutate.maps.v1.core",
        "clientConfig": {"service": {"path": "/mutate--v1-maps"}},
        "rules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"],
            "resources": ["configmaps"], "scope": "Namespaced",
        }],
        "failurePolicy": "Ignore", "matchPolicy": "Equivalent", "sideEffects": "NoneOnDryRun",
        "timeoutSeconds": 3, "admissionReviewVersions": ["v1"], "reinvocationPolicy": "IfNeeded",
        "namespaceSelector": {"matchLabels": {"a": "yes"}},
        "objectSelector": {"matchLabels": {"b": "yes"}},
        "matchConditions": [{
            "name": "not-nodes", "expression": "!('system:nodes' in request.userInfo.groups)",
        }],
    });
    assert_eq!(webhook.mutating_configuration().unwrap(), expected);
    // Only mutating webhooks have a reinvocation policy.
    expected
        .as_object_mut()
        .unwrap()
        .remove("reinvocationPolicy");
    expected["name"] = json!("validate.maps.v1.core");
    expected["clientConfig"]["service"]["path"] = json!("/validate--v1-maps");
    expected["rules"][0]["operations"] = json!(["CREATE", "DELETE"]);
    assert_eq!(webhook.validating_configuration().unwrap(), expected);
}

#[test]
fn a_subresource_may_have_objects_of_another_kind() {
    let webhook = any(Webhook::<Eviction>::new()
        .validating(allow)
        .subresource_of::<Pod>("eviction"));
    let configuration = webhook.validating_configuration().unwrap();
    assert_eq!(
        configuration["rules"][0]["resources"],
        json!(["pods/eviction"])
    );
    assert_eq!(configuration["rules"][0]["apiGroups"], json!([""]));
    let path = &configuration["clientConfig"]["service"]["path"];
    assert_eq!(path, "/validate--v1-pod-eviction");
    assert_eq!(webhook.kind().kind, "Eviction");
    let status = any(Webhook::<Pod>::new()
        .validating(allow)
        .subresource("status"));
    let configuration = status.validating_configuration().unwrap();
    assert_eq!(
        configuration["rules"][0]["resources"],
        json!(["pods/status"])
    );
}

#[test]
fn settings_that_are_not_valid_are_errors() {
    let new = Webhook::<ConfigMap>::new;
    let cases = [
        (any(new()), "it has no function"),
        (
            any(new().validating(allow).timeout(Duration::from_secs(31))),
            "1 s to 30 s",
        ),
        (
            any(new().validating(allow).timeout(Duration::ZERO)),
            "1 s to 30 s",
        ),
        (
            any(new().validating(allow).named("No Name")),
            "is not valid",
        ),
        (
            any(new().defaulting(|_| {}).operations([Operation::Delete])),
            "no operation is left",
        ),
        (
            any(new().validating(allow).match_condition("a", " ")),
            "no expression",
        ),
        (
            any(new()
                .validating(allow)
                .match_condition("a", "1")
                .match_condition("a", "2")),
            "two match conditions are named \"a\"",
        ),
    ];
    for (webhook, expected) in cases {
        let problem = webhook.check().unwrap_err();
        assert!(
            problem.starts_with("the webhook of ConfigMap: "),
            "{problem}"
        );
        assert!(problem.contains(expected), "{problem}");
    }
}
