//! Pods: the subresources with which a Pod is bound to a node, evicted, resized and debugged, and
//! the changes of a Pod that are allowed.

mod binding;
mod changes;
mod ephemeral_containers;
mod eviction;
mod resize;

use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::object;

pub(crate) use binding::Binding;
pub(super) use changes::validate_update;
pub(super) use ephemeral_containers::{
    errors as ephemeral_container_errors, restrict as restrict_to_ephemeral_containers,
};
pub(super) use resize::{errors as resize_errors, restrict as restrict_to_resources};

/// The annotation of a Pod that represents a static Pod of a kubelet.
const MIRROR: &str = "kubernetes.io/config.mirror";

pub(super) fn is_pod(kind: &Kind) -> bool {
    kind.group.is_empty() && kind.plural == "pods"
}

fn is_mirror(pod: &Value) -> bool {
    object::at(pod, &["metadata", "annotations"])
        .get(MIRROR)
        .is_some()
}

/// Reports whether the condition `Ready` of a Pod is true.
fn is_ready(pod: &Value) -> bool {
    object::items(pod, &["status", "conditions"])
        .iter()
        .any(|condition| {
            object::text(condition, &["type"]) == "Ready"
                && object::text(condition, &["status"]) == "True"
        })
}

/// Sets a condition of a Pod. The transition time changes only with the status of the condition.
fn set_condition(pod: &mut Value, mut condition: Value, now: &str) {
    let type_ = object::text(&condition, &["type"]).to_owned();
    let mut conditions = object::items(pod, &["status", "conditions"]).to_vec();
    let old = conditions
        .iter_mut()
        .find(|old| object::text(old, &["type"]) == type_);
    let status = object::text(&condition, &["status"]).to_owned();
    let before = old
        .as_ref()
        .filter(|old| object::text(old, &["status"]) == status)
        .map(|old| object::at(old, &["lastTransitionTime"]).clone());
    object::set_field(&mut condition, "lastProbeTime", Value::Null);
    let time = before.unwrap_or_else(|| now.into());
    object::set_field(&mut condition, "lastTransitionTime", time);
    match old {
        Some(old) => *old = condition,
        None => conditions.push(condition),
    }
    object::set(pod, &["status", "conditions"], conditions.into());
}

/// Adds the condition of a new Pod that waits for its scheduling gates.
pub(super) fn set_gated(pod: &mut Value, now: &str) {
    if object::items(pod, &["spec", "schedulingGates"]).is_empty() {
        return;
    }
    let condition = json!({
        "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
        "message": "Scheduling is blocked due to non-empty scheduling gates",
    });
    set_condition(pod, condition, now);
}

/// Returns the errors in a new Pod.
pub(super) fn creation_errors(pod: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if !object::items(pod, &["spec", "ephemeralContainers"]).is_empty() {
        let field = "spec.ephemeralContainers";
        errors.push(FieldError::forbidden(field, "cannot be set on create"));
    }
    let is_gated = !object::items(pod, &["spec", "schedulingGates"]).is_empty();
    if is_gated && !object::text(pod, &["spec", "nodeName"]).is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        errors.push(FieldError::forbidden("spec.nodeName", detail));
    }
    errors
}

/// Replaces the fields of `new` by those of `live`, except `managedFields`.
fn reset_metadata(live: &Value, new: &mut Value) {
    let managers = object::at(new, &["metadata", "managedFields"]).clone();
    let metadata = object::at(live, &["metadata"]).clone();
    object::set(new, &["metadata"], metadata);
    object::set_meta(new, "managedFields", managers);
}
