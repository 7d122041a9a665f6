//! The status of PodDisruptionBudgets.

use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use super::rules;
use crate::kinds::Kind;
use crate::object;

/// The resource name of PodDisruptionBudgets in the store.
pub(crate) const RESOURCE: &str = "poddisruptionbudgets.policy";
/// The type of the condition that reports whether the budget allows disruptions.
pub(crate) const DISRUPTION_ALLOWED: &str = "DisruptionAllowed";

/// Returns the errors in the spec of a budget. Returns none for objects of other kinds.
pub(super) fn errors(kind: &Kind, budget: &Value) -> Vec<FieldError> {
    if kind.group_resource() != RESOURCE {
        return Vec::new();
    }
    let mut errors = Vec::new();
    let bounds = ["minAvailable", "maxUnavailable"];
    let bound = |name: &str| object::at(budget, &["spec", name]);
    if bounds.iter().all(|name| !bound(name).is_null()) {
        let mut error = FieldError::invalid("spec", &Value::Null, "");
        // Kubernetes prints its internal type, with the fields in the order of the Go struct.
        error.detail = format!(
            "Invalid value: {{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\
             \"UnhealthyPodEvictionPolicy\":{}}}: minAvailable and maxUnavailable cannot be both \
             set",
            bound("minAvailable"),
            bound("selector"),
            bound("maxUnavailable"),
            bound("unhealthyPodEvictionPolicy"),
        );
        errors.push(error);
    }
    for name in bounds {
        errors.extend(rules::bad_bound(budget, &["spec", name]));
        let percent = bound(name).as_str().and_then(|text| text.strip_suffix('%'));
        let percent = percent.and_then(|percent| percent.parse::<u32>().ok());
        if percent.is_some_and(|percent| percent > 100) {
            let field = format!("spec.{name}");
            let detail = "must not be greater than 100%";
            errors.push(FieldError::invalid(field, bound(name), detail));
        }
    }
    for name in [
        "disruptionsAllowed",
        "currentHealthy",
        "desiredHealthy",
        "expectedPods",
    ] {
        let value = object::at(budget, &["status", name]);
        if value.as_i64().is_some_and(|value| value < 0) {
            let detail = "must be greater than or equal to 0";
            errors.push(FieldError::invalid(format!("status.{name}"), value, detail));
        }
    }
    errors
}

/// Sets the condition `DisruptionAllowed` of a budget from `status.disruptionsAllowed`.
pub(crate) fn set_condition(budget: &mut Value, now: &str) {
    let is_allowed = object::int(budget, &["status", "disruptionsAllowed"]) > 0;
    let (status, reason) = match is_allowed {
        true => ("True", "SufficientPods"),
        false => ("False", "InsufficientPods"),
    };
    let mut conditions = object::items(budget, &["status", "conditions"]).to_vec();
    let old = conditions
        .iter_mut()
        .find(|old| object::text(old, &["type"]) == DISRUPTION_ALLOWED);
    let before = old
        .as_ref()
        .filter(|old| object::text(old, &["status"]) == status)
        .map(|old| object::at(old, &["lastTransitionTime"]).clone());
    let mut condition = json!({
        "type": DISRUPTION_ALLOWED, "status": status, "reason": reason, "message": "",
        "lastTransitionTime": before.unwrap_or_else(|| json!(now)),
    });
    let observed = object::int(budget, &["status", "observedGeneration"]);
    if observed != 0 {
        object::set_field(&mut condition, "observedGeneration", json!(observed));
    }
    match old {
        Some(old) => *old = condition,
        None => conditions.push(condition),
    }
    object::set(budget, &["status", "conditions"], json!(conditions));
}
