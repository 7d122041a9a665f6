//! Readiness: whether an object has reached the state that its `spec` describes.
//!
//! The rules are those of `kubectl wait` and `kubectl rollout status`: the controller has observed
//! the current generation, and the status reports that the work is done. Kinds that have no status
//! (ConfigMap, Secret, Service) are ready as soon as they exist.

use serde_json::Value;

/// Reports whether `object` is ready by the rule for its `kind`.
///
/// - Deployments, StatefulSets, ReplicaSets and DaemonSets are ready when all replicas are updated
///   and available.
/// - Jobs, Pods and CustomResourceDefinitions are ready when the condition `Complete`, `Ready` or
///   `Established` is true.
/// - Objects of other kinds are ready when the condition `Ready` is true. Without this condition,
///   objects of built-in kinds are ready, and objects of custom kinds are ready if they have no
///   conditions at all.
///
/// A status of an older generation does not count. An object that is being deleted is not ready.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::readiness::is_ready;
/// use serde_json::json;
///
/// assert!(is_ready(&json!({"kind": "ConfigMap", "metadata": {}, "data": {}})));
/// assert!(!is_ready(&json!({
///     "kind": "Pod",
///     "status": {"conditions": [{"type": "Ready", "status": "False"}]},
/// })));
/// ```
pub fn is_ready(object: &Value) -> bool {
    if is_deleting(object) {
        return false;
    }
    let kind = object
        .get("kind")
        .and_then(Value::as_str)
        // A custom kind may have the same name as a built-in one.
        .filter(|_| is_builtin(object))
        .unwrap_or_default();
    let workload = matches!(
        kind,
        "Deployment" | "StatefulSet" | "ReplicaSet" | "DaemonSet"
    );
    if !is_observed(object, workload) {
        return false;
    }
    match kind {
        "Deployment" => {
            let replicas = desired_replicas(object);
            count(object, "/status/updatedReplicas") == replicas
                && count(object, "/status/replicas") == replicas
                && count(object, "/status/availableReplicas") == replicas
        }
        "StatefulSet" => is_stateful_set_ready(object),
        "ReplicaSet" => {
            let replicas = desired_replicas(object);
            count(object, "/status/replicas") == replicas
                && count(object, "/status/availableReplicas") == replicas
        }
        "DaemonSet" => {
            let desired = count(object, "/status/desiredNumberScheduled");
            count(object, "/status/updatedNumberScheduled") == desired
                && count(object, "/status/numberAvailable") == desired
        }
        "CustomResourceDefinition" => has_condition(object, "Established"),
        "Job" => has_condition(object, "Complete"),
        "Pod" => has_condition(object, "Ready"),
        _ => is_other_ready(object),
    }
}

/// Reports whether the condition of type `condition` is true for the current generation of the
/// object, which may be of any kind. An object that is being deleted is not ready.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::readiness::is_ready_by;
/// use serde_json::json;
///
/// let object = json!({"status": {"conditions": [{"type": "Available", "status": "True"}]}});
/// assert!(is_ready_by(&object, "Available"));
/// assert!(!is_ready_by(&object, "Ready"));
/// ```
pub fn is_ready_by(object: &Value, condition: &str) -> bool {
    !is_deleting(object) && is_observed(object, false) && has_condition(object, condition)
}

/// Returns the number of ready replicas of a workload: `status.numberReady` for a DaemonSet, and
/// `status.readyReplicas` for other kinds. Returns 0 if the status does not have the field.
pub fn ready_replicas(object: &Value) -> i32 {
    let ready = match object.get("kind").and_then(Value::as_str) {
        Some("DaemonSet") => count(object, "/status/numberReady"),
        _ => count(object, "/status/readyReplicas"),
    };
    i32::try_from(ready).unwrap_or(i32::MAX)
}

fn is_deleting(object: &Value) -> bool {
    object
        .pointer("/metadata/deletionTimestamp")
        .is_some_and(Value::is_string)
}

/// Reports whether `status.observedGeneration` is the current generation. If `workload` is false,
/// the field may be missing.
fn is_observed(object: &Value, workload: bool) -> bool {
    let generation = object
        .pointer("/metadata/generation")
        .and_then(Value::as_i64);
    let observed = object
        .pointer("/status/observedGeneration")
        .and_then(Value::as_i64);
    match (generation, observed) {
        (Some(generation), Some(observed)) => observed >= generation,
        (Some(_), None) => !workload,
        // An object that was never stored has no generation, so no controller has observed it.
        (None, _) => !workload,
    }
}

fn is_stateful_set_ready(object: &Value) -> bool {
    let replicas = desired_replicas(object);
    let on_delete = object
        .pointer("/spec/updateStrategy/type")
        .and_then(Value::as_str)
        == Some("OnDelete");
    // Pods below the partition are not updated; with OnDelete, no Pod has to be updated.
    let partition = count(object, "/spec/updateStrategy/rollingUpdate/partition");
    let updated = if on_delete {
        0
    } else {
        replicas.saturating_sub(partition).max(0)
    };
    // Clusters before 1.25 have no availableReplicas in this status.
    let available = match object.pointer("/status/availableReplicas") {
        Some(_) => count(object, "/status/availableReplicas"),
        None => count(object, "/status/readyReplicas"),
    };
    count(object, "/status/updatedReplicas") >= updated
        && count(object, "/status/replicas") == replicas
        && count(object, "/status/readyReplicas") == replicas
        && available == replicas
}

/// Reports whether an object of a kind without a special rule is ready: its condition `Ready` is
/// true. Without the condition `Ready`, an object of a built-in kind is ready, and an object of a
/// custom kind is ready if it has no conditions at all.
fn is_other_ready(object: &Value) -> bool {
    match condition(object, "Ready") {
        Some(_) => has_condition(object, "Ready"),
        None => is_builtin(object) || !has_conditions(object),
    }
}

/// Reports whether the kind of the object is built in: its group has no dot, or ends in `.k8s.io`.
fn is_builtin(object: &Value) -> bool {
    let version = object
        .get("apiVersion")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let group = version.split_once('/').map_or("", |(group, _)| group);
    !group.contains('.') || group.ends_with(".k8s.io")
}

fn desired_replicas(object: &Value) -> i64 {
    object
        .pointer("/spec/replicas")
        .and_then(Value::as_i64)
        .unwrap_or(1)
}

fn count(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or(0)
}

fn has_conditions(object: &Value) -> bool {
    let conditions = object
        .pointer("/status/conditions")
        .and_then(Value::as_array);
    conditions.is_some_and(|conditions| !conditions.is_empty())
}

fn condition<'o>(object: &'o Value, type_: &str) -> Option<&'o Value> {
    let conditions = object.pointer("/status/conditions")?.as_array()?;
    conditions
        .iter()
        .find(|condition| condition.get("type").and_then(Value::as_str) == Some(type_))
}

/// Reports whether the condition is true, and the condition's `observedGeneration`, if it is set,
/// is the current generation.
fn has_condition(object: &Value, type_: &str) -> bool {
    let Some(condition) = condition(object, type_) else {
        return false;
    };
    let is_true = condition.get("status").and_then(Value::as_str) == Some("True");
    let generation = object
        .pointer("/metadata/generation")
        .and_then(Value::as_i64);
    let observed = condition.get("observedGeneration").and_then(Value::as_i64);
    is_true
        && observed
            .zip(generation)
            .is_none_or(|(observed, generation)| observed >= generation)
}

#[cfg(test)]
mod tests;
