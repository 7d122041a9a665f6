//! ServiceAccounts, roles and role bindings of operators, as JSON documents.

use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use opkit_client::Kind;
use opkit_controller::Permission;
use serde_json::{Value, json};

/// Returns the kind of a document, or `None` if a document of an operator's permissions does not
/// have this kind.
pub(crate) fn kind_of(document: &Value) -> Option<Kind> {
    match document.get("kind").and_then(Value::as_str)? {
        "ServiceAccount" => Some(Kind::of::<ServiceAccount>()),
        "ClusterRole" => Some(Kind::of::<ClusterRole>()),
        "ClusterRoleBinding" => Some(Kind::of::<ClusterRoleBinding>()),
        "Role" => Some(Kind::of::<Role>()),
        "RoleBinding" => Some(Kind::of::<RoleBinding>()),
        _ => None,
    }
}

/// Removes a permission from the rules of a role. Other documents stay unchanged.
pub(crate) fn withhold(document: &mut Value, permission: &Permission) {
    let Some(rules) = document.get_mut("rules").and_then(Value::as_array_mut) else {
        return;
    };
    let mut kept = Vec::new();
    for rule in std::mem::take(rules) {
        let has = |field: &str, value: &str| {
            let values = rule.get(field).and_then(Value::as_array);
            values.is_some_and(|values| values.iter().any(|it| it == value))
        };
        let Permission {
            group,
            resource,
            verb,
            ..
        } = permission;
        if !has("apiGroups", group) || !has("resources", resource) || !has("verbs", verb) {
            kept.push(rule);
            continue;
        }
        // The other resources keep the verb, and the resource keeps the other verbs.
        let mut others = rule.clone();
        remove(&mut others, "resources", resource);
        let mut rest = rule;
        if let Some(fields) = rest.as_object_mut() {
            fields.insert("resources".to_owned(), json!([resource]));
        }
        remove(&mut rest, "verbs", verb);
        kept.extend([others, rest].into_iter().filter(is_complete));
    }
    *rules = kept;
}

fn remove(rule: &mut Value, field: &str, value: &str) {
    if let Some(values) = rule.get_mut(field).and_then(Value::as_array_mut) {
        values.retain(|it| it != value);
    }
}

/// Reports whether a rule has resources and verbs, as the server requires.
fn is_complete(rule: &Value) -> bool {
    let has = |field: &str| {
        let values = rule.get(field).and_then(Value::as_array);
        values.is_some_and(|values| !values.is_empty())
    };
    has("resources") && has("verbs")
}

/// Returns the SelfSubjectAccessReview of the first permission of a role, or `None` if the document
/// is not a role with rules for resources.
pub(crate) fn first_review(document: &Value) -> Option<Value> {
    let rule = document.get("rules")?.get(0)?;
    let first = |field: &str| rule.get(field)?.get(0)?.as_str();
    let (resource, subresource) = match first("resources")?.split_once('/') {
        Some(parts) => parts,
        None => (first("resources")?, ""),
    };
    let namespace = document.pointer("/metadata/namespace");
    Some(json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "metadata": {},
        "spec": {"resourceAttributes": {
            "group": first("apiGroups")?,
            "resource": resource,
            "subresource": subresource,
            "verb": first("verbs")?,
            "name": first("resourceNames").unwrap_or_default(),
            "namespace": namespace.and_then(Value::as_str).unwrap_or_default(),
        }},
    }))
}

#[cfg(test)]
mod tests;
