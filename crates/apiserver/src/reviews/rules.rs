//! SelfSubjectRulesReview: the rules that apply to the user in a namespace.

use serde_json::{Value, json};

use crate::authentication::Identity;
use crate::object;
use crate::registry::Registry;
use crate::status::{ApiError, ApiResult};

/// Returns a review with the rules of the user.
pub(super) fn review(registry: &Registry, review: &Value, identity: &Identity) -> ApiResult<Value> {
    let namespace = object::text(review, &["spec", "namespace"]);
    if namespace.is_empty() {
        return Err(ApiError::bad_request("no namespace on request"));
    }
    let (rules, errors, incomplete) =
        registry
            .authorizer
            .rules_for(&registry.store, identity, namespace);
    let (mut resource_rules, mut other_rules) = (Vec::new(), Vec::new());
    for mut rule in rules {
        if !rule.non_resource_urls.is_empty() {
            let urls = &rule.non_resource_urls;
            other_rules.push(json!({"verbs": rule.verbs, "nonResourceURLs": urls}));
        }
        if !rule.resources.is_empty() {
            rule.non_resource_urls = Vec::new();
            resource_rules.push(rule.to_json());
        }
    }
    let mut status = json!({
        "resourceRules": resource_rules, "nonResourceRules": other_rules, "incomplete": incomplete,
    });
    if !errors.is_empty() {
        object::set_field(&mut status, "evaluationError", json!(errors.join(", ")));
    }
    Ok(json!({
        "kind": "SelfSubjectRulesReview", "apiVersion": "authorization.k8s.io/v1",
        "metadata": {}, "spec": {}, "status": status,
    }))
}
