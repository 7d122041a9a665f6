//! Validation of Roles, ClusterRoles and bindings, with the messages of Kubernetes.

use opkit_apimachinery::identity::segment_flaw;
use opkit_apimachinery::names;
use opkit_apimachinery::selector::LabelSelector;
use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::object;

const GROUP: &str = "rbac.authorization.k8s.io";

/// Reports whether the kind is one of those that this module validates.
pub(super) fn is_rbac(kind: &Kind) -> bool {
    kind.group == GROUP
}

/// Returns an error for each field of a role or binding that is not valid.
pub(super) fn validate(kind: &Kind, object: &Value) -> Vec<FieldError> {
    match kind.kind.as_str() {
        "Role" | "ClusterRole" => check_role(kind, object),
        "RoleBinding" | "ClusterRoleBinding" => check_binding(kind, object),
        _ => Vec::new(),
    }
}

/// Returns an error if the role of a binding changes.
pub(super) fn check_change(kind: &Kind, live: &Value, new: &Value) -> Option<FieldError> {
    let role = object::at(new, &["roleRef"]);
    if !is_rbac(kind) || object::at(live, &["roleRef"]) == role {
        return None;
    }
    // Kubernetes prints its internal type, whose fields have Go's names.
    let text = |field: &str| object::text(role, &[field]);
    let printed = json!({
        "APIGroup": text("apiGroup"), "Kind": text("kind"), "Name": text("name"),
    });
    Some(FieldError::invalid(
        "roleRef",
        &printed,
        "cannot change roleRef",
    ))
}

fn check_role(kind: &Kind, role: &Value) -> Vec<FieldError> {
    let rules = object::items(role, &["rules"]).iter().enumerate();
    let mut errors: Vec<FieldError> = rules
        .flat_map(|(index, rule)| check_rule(kind, &format!("rules[{index}]"), rule))
        .collect();
    let aggregation = object::at(role, &["aggregationRule"]);
    if !aggregation.is_object() {
        return errors;
    }
    let path = "aggregationRule.clusterRoleSelectors";
    let selectors = object::items(aggregation, &["clusterRoleSelectors"]);
    if selectors.is_empty() {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(FieldError::required(path, detail));
    }
    for (index, selector) in selectors.iter().enumerate() {
        if LabelSelector::from_object(selector).is_err() {
            let field = format!("{path}[{index}]");
            errors.push(FieldError::invalid(
                field,
                selector,
                "invalid label selector.",
            ));
        }
    }
    errors
}

fn check_rule(kind: &Kind, path: &str, rule: &Value) -> Vec<FieldError> {
    let is_empty = |field: &str| object::items(rule, &[field]).is_empty();
    let mut errors = Vec::new();
    if is_empty("verbs") {
        let detail = "verbs must contain at least one value";
        errors.push(FieldError::required(format!("{path}.verbs"), detail));
    }
    if is_empty("nonResourceURLs") {
        if is_empty("apiGroups") {
            let detail = "resource rules must supply at least one api group";
            errors.push(FieldError::required(format!("{path}.apiGroups"), detail));
        }
        if is_empty("resources") {
            let detail = "resource rules must supply at least one resource";
            errors.push(FieldError::required(format!("{path}.resources"), detail));
        }
        return errors;
    }
    let field = format!("{path}.nonResourceURLs");
    let urls = object::at(rule, &["nonResourceURLs"]);
    if kind.namespaced {
        let detail = "namespaced rules cannot apply to non-resource URLs";
        errors.push(FieldError::invalid(field.as_str(), urls, detail));
    }
    if !is_empty("apiGroups") || !is_empty("resources") || !is_empty("resourceNames") {
        let detail = "rules cannot apply to both regular resources and non-resource URLs";
        errors.push(FieldError::invalid(field, urls, detail));
    }
    errors
}

fn check_binding(kind: &Kind, binding: &Value) -> Vec<FieldError> {
    let role = |field: &str| object::text(binding, &["roleRef", field]);
    let mut errors = Vec::new();
    // A missing reference gets the default of this field in Kubernetes.
    let has_role = !object::at(binding, &["roleRef"]).is_null();
    if has_role && role("apiGroup") != GROUP {
        let group = json!(role("apiGroup"));
        errors.push(FieldError::not_supported(
            "roleRef.apiGroup",
            &group,
            &[GROUP],
        ));
    }
    let kinds: &[&str] = match kind.namespaced {
        true => &["Role", "ClusterRole"],
        false => &["ClusterRole"],
    };
    if !kinds.contains(&role("kind")) {
        let value = json!(role("kind"));
        errors.push(FieldError::not_supported("roleRef.kind", &value, kinds));
    }
    let name = role("name");
    match segment_flaw(name) {
        _ if name.is_empty() => errors.push(FieldError::required("roleRef.name", "")),
        Some(flaw) => errors.push(FieldError::invalid("roleRef.name", &json!(name), flaw)),
        None => {}
    }
    let subjects = object::items(binding, &["subjects"]).iter().enumerate();
    errors.extend(
        subjects.flat_map(|(index, subject)| {
            check_subject(kind, &format!("subjects[{index}]"), subject)
        }),
    );
    errors
}

fn check_subject(kind: &Kind, path: &str, subject: &Value) -> Vec<FieldError> {
    let text = |field: &str| object::text(subject, &[field]);
    let (name, group) = (text("name"), text("apiGroup"));
    let mut errors = Vec::new();
    if name.is_empty() {
        errors.push(FieldError::required(format!("{path}.name"), ""));
    }
    let unsupported = |supported: &str| {
        FieldError::not_supported(format!("{path}.apiGroup"), &json!(group), &[supported])
    };
    match text("kind") {
        "ServiceAccount" => {
            if let Err(flaw) = names::check_dns_subdomain(name)
                && !name.is_empty()
            {
                let field = format!("{path}.name");
                errors.push(FieldError::invalid(field, &json!(name), flaw));
            }
            if !group.is_empty() {
                errors.push(unsupported(""));
            }
            if !kind.namespaced && text("namespace").is_empty() {
                errors.push(FieldError::required(format!("{path}.namespace"), ""));
            }
        }
        "User" | "Group" => {
            if group != GROUP {
                errors.push(unsupported(GROUP));
            }
        }
        other => {
            let kinds = ["ServiceAccount", "User", "Group"];
            let field = format!("{path}.kind");
            errors.push(FieldError::not_supported(field, &json!(other), &kinds));
        }
    }
    errors
}
