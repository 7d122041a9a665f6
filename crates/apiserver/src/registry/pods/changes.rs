//! The changes of a Pod that an update can make.

use opkit_apimachinery::structural::FieldError;
use serde_json::Value;

use crate::object;

const FIXED: &str = "pod updates may not change fields other than \
    `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,\
    `spec.tolerations` (only additions to existing tolerations),\
    `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)\n";

/// Returns the errors in a change of a Pod. Only images, the deadline, and additional tolerations
/// can change, and scheduling gates can be removed.
pub(in crate::registry) fn validate_update(live: &Value, new: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in ["containers", "initContainers"] {
        let count = |pod: &Value| object::items(pod, &["spec", field]).len();
        let path = format!("spec.{field}");
        if count(live) != count(new) {
            let detail = "pod updates may not add or remove containers";
            errors.push(FieldError::forbidden(path, detail));
            return errors;
        }
        let containers = object::items(new, &["spec", field]).iter().enumerate();
        for (index, container) in containers {
            let image = object::at(container, &["image"]);
            let text = image.as_str().unwrap_or_default();
            let at = format!("{path}[{index}].image");
            if text.is_empty() {
                // Kubernetes validates the spec and the change, and lists the cause twice.
                errors.push(FieldError::required(at, ""));
            } else if text.trim() != text {
                let detail = "must not have leading or trailing whitespace";
                errors.push(FieldError::invalid(at, image, detail));
            }
        }
    }
    match deadline_error(live, new) {
        Some((error, true)) => {
            errors.push(error);
            return errors;
        }
        Some((error, false)) => errors.push(error),
        None => {}
    }
    errors.extend(toleration_error(live, new));
    errors.extend(gate_errors(live, new));
    if munged(live, new) != *object::at(live, &["spec"]) {
        errors.push(FieldError::forbidden("spec", FIXED));
    }
    errors
}

/// Returns the error in a change of `activeDeadlineSeconds`, and whether no other rule is checked
/// after it.
fn deadline_error(live: &Value, new: &Value) -> Option<(FieldError, bool)> {
    const FIELD: &str = "spec.activeDeadlineSeconds";
    let deadline = |pod: &Value| object::at(pod, &["spec", "activeDeadlineSeconds"]).as_i64();
    match (deadline(live), deadline(new)) {
        (_, Some(after)) if !(0..=i64::from(i32::MAX)).contains(&after) => {
            let detail = "must be between 0 and 2147483647, inclusive";
            Some((FieldError::invalid(FIELD, &after.into(), detail), true))
        }
        (Some(before), Some(after)) if before < after => {
            let detail = "must be less than or equal to previous value";
            Some((FieldError::invalid(FIELD, &after.into(), detail), true))
        }
        (Some(_), None) => {
            let detail = "must not update from a positive integer to nil value";
            Some((FieldError::invalid(FIELD, &Value::Null, detail), false))
        }
        _ => None,
    }
}

fn toleration_error(live: &Value, new: &Value) -> Option<FieldError> {
    let without_seconds = |toleration: &Value| {
        let mut toleration = toleration.clone();
        object::set(&mut toleration, &["tolerationSeconds"], Value::Null);
        toleration
    };
    let after: Vec<Value> = object::items(new, &["spec", "tolerations"])
        .iter()
        .map(without_seconds)
        .collect();
    let mut before = object::items(live, &["spec", "tolerations"]).iter();
    let is_kept = before.all(|old| after.contains(&without_seconds(old)));
    (!is_kept).then(|| {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        FieldError::forbidden("spec.tolerations", detail)
    })
}

fn gate_errors(live: &Value, new: &Value) -> Vec<FieldError> {
    let before = object::items(live, &["spec", "schedulingGates"]);
    let after = object::items(new, &["spec", "schedulingGates"]);
    let gates = after.iter().enumerate();
    let added = gates.filter(|(_, gate)| !before.contains(gate));
    added
        .map(|(index, gate)| {
            let name = object::text(gate, &["name"]);
            let detail =
                format!("only deletion is allowed, but found new scheduling gate '{name}'");
            FieldError::forbidden(format!("spec.schedulingGates[{index}].name"), detail)
        })
        .collect()
}

/// Returns the spec of `new` with the fields that can change reset to those of `live`.
fn munged(live: &Value, new: &Value) -> Value {
    let mut spec = object::at(new, &["spec"]).clone();
    let before = object::at(live, &["spec"]);
    for field in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        object::set(&mut spec, &[field], object::at(before, &[field]).clone());
    }
    for field in ["containers", "initContainers"] {
        let old = object::items(before, &[field]);
        let containers = spec.get_mut(field).and_then(Value::as_array_mut);
        for (container, old) in containers.into_iter().flatten().zip(old) {
            object::set(container, &["image"], object::at(old, &["image"]).clone());
        }
    }
    let grace = |spec: &Value| object::int(spec, &["terminationGracePeriodSeconds"]);
    if grace(before) < 0 && grace(&spec) == 1 {
        let value = object::at(before, &["terminationGracePeriodSeconds"]).clone();
        object::set(&mut spec, &["terminationGracePeriodSeconds"], value);
    }
    if !object::items(before, &["schedulingGates"]).is_empty() {
        // The node selector of a Pod that waits for its gates can get more labels.
        let selector = |spec: &Value| object::at(spec, &["nodeSelector"]).as_object().cloned();
        let (old, new) = (selector(before), selector(&spec));
        let mut old_labels = old.iter().flatten();
        let is_kept = old_labels
            .all(|(key, value)| new.as_ref().is_some_and(|new| new.get(key) == Some(value)));
        if is_kept {
            let value = object::at(before, &["nodeSelector"]).clone();
            object::set(&mut spec, &["nodeSelector"], value);
        }
    }
    spec
}
