//! The field and label selectors in the spec of an access review.

use opkit_apimachinery::selector::{FieldSelector, LabelSelector};
use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use crate::object;

/// Returns an error for each selector of `resourceAttributes` that is not valid.
pub(super) fn validate(resource: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for name in ["fieldSelector", "labelSelector"] {
        let selector = object::at(resource, &[name]);
        if !selector.is_object() {
            continue;
        }
        let path = format!("spec.resourceAttributes.{name}");
        let raw = object::text(selector, &["rawSelector"]);
        let requirements = object::items(selector, &["requirements"]);
        if !raw.is_empty() && !requirements.is_empty() {
            let detail = "may not specified at the same time as requirements";
            let field = format!("{path}.rawSelector");
            errors.push(FieldError::invalid(field, &json!(raw), detail));
        }
        if raw.is_empty() && requirements.is_empty() {
            let detail =
                format!("when {path} is specified, requirements or rawSelector is required");
            errors.push(FieldError::required(format!("{path}.requirements"), detail));
        }
        for (index, requirement) in requirements.iter().enumerate() {
            let path = format!("{path}.requirements[{index}]");
            errors.extend(check_requirement(&path, requirement));
        }
    }
    errors
}

/// Returns an error for each flaw of a requirement. Unknown operators are accepted, as in
/// Kubernetes, because a newer client may know them.
fn check_requirement(path: &str, requirement: &Value) -> Vec<FieldError> {
    let values = object::items(requirement, &["values"]);
    let mut errors = Vec::new();
    if object::text(requirement, &["key"]).is_empty() {
        let field = format!("{path}.key");
        errors.push(FieldError::required(field, "must be specified"));
    }
    match object::text(requirement, &["operator"]) {
        "In" | "NotIn" if values.is_empty() => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(format!("{path}.values"), detail));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(format!("{path}.values"), detail));
        }
        _ => {}
    }
    errors
}

/// Returns the messages of Kubernetes for selectors that cannot be used.
pub(super) fn problems(spec: &Value) -> Vec<String> {
    let resource = object::at(spec, &["resourceAttributes"]);
    let raw = |name: &str| object::text(resource, &[name, "rawSelector"]);
    let mut problems = Vec::new();
    if FieldSelector::parse(raw("fieldSelector")).is_err() {
        problems.push("fieldSelector ignored");
    } else if let Some(problem) = field_problem(resource) {
        problems.push(problem);
    }
    if LabelSelector::parse(raw("labelSelector")).is_err() {
        problems.push("labelSelector ignored");
    } else if let Some(problem) = label_problem(resource) {
        problems.push(problem);
    }
    let text = |problem| format!("spec.resourceAttributes.{problem} due to parse error");
    problems.into_iter().map(text).collect()
}

fn field_problem(resource: &Value) -> Option<&'static str> {
    let requirements = object::items(resource, &["fieldSelector", "requirements"]);
    let is_usable = |requirement: &&Value| {
        matches!(object::text(requirement, &["operator"]), "In" | "NotIn")
            && object::items(requirement, &["values"]).len() == 1
    };
    match requirements.iter().filter(is_usable).count() {
        count if count == requirements.len() => None,
        0 => Some("fieldSelector ignored"),
        _ => Some("fieldSelector partially ignored"),
    }
}

fn label_problem(resource: &Value) -> Option<&'static str> {
    let requirements = object::items(resource, &["labelSelector", "requirements"]);
    let is_usable = |requirement: &&Value| {
        let selector = json!({"matchExpressions": [requirement]});
        LabelSelector::from_object(&selector).is_ok()
    };
    match requirements.iter().filter(is_usable).count() {
        count if count == requirements.len() => None,
        0 => Some("labelSelector ignored"),
        _ => Some("labelSelector partially ignored"),
    }
}
