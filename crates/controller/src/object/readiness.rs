//! Readiness of objects of every kind.

use opkit_apimachinery::readiness;
use opkit_client::{Kind, Object};
use serde_json::{Value, json};

/// Readiness of any object, according to its status.
///
/// # Examples
/// ```
/// # use opkit_controller as opkit;
/// use k8s_openapi::api::apps::v1::Deployment;
/// use opkit::Readiness;
/// assert!(!Deployment::default().is_ready());
/// ```
pub trait Readiness {
    /// Reports whether the object is ready. An object is ready if the status is for the current
    /// generation and the `Ready` condition is true. A workload is ready if all replicas are
    /// updated and available. A custom kind whose Rust type has conditions is not ready before it
    /// has a `Ready` condition. Kinds without a way to report readiness are ready once they exist.
    fn is_ready(&self) -> bool;

    /// Reports whether the condition `condition` is true for the current generation. Use this
    /// method for kinds with another condition than `Ready`, such as `Available`. An object that is
    /// being deleted is not ready.
    fn is_ready_by(&self, condition: &str) -> bool;

    /// Returns the number of ready replicas; 0 if the status has none.
    fn ready_replicas(&self) -> i32;
}

/// Reports whether the kind is not one of Kubernetes' built-in kinds.
pub(crate) fn is_custom(kind: &Kind) -> bool {
    kind.group.contains('.') && !kind.group.ends_with(".k8s.io")
}

impl<K: Object> Readiness for K {
    fn is_ready(&self) -> bool {
        let json = as_json(self);
        let conditions = json.pointer("/status/conditions");
        let no_conditions = conditions
            .and_then(Value::as_array)
            .is_none_or(|conditions| conditions.is_empty());
        if no_conditions && is_custom(&Kind::of::<K>()) && has_conditions::<K>(&json) {
            return false;
        }
        readiness::is_ready(&json)
    }

    fn is_ready_by(&self, condition: &str) -> bool {
        readiness::is_ready_by(&as_json(self), condition)
    }

    fn ready_replicas(&self) -> i32 {
        readiness::ready_replicas(&as_json(self))
    }
}

/// Reports whether the Rust type has conditions. To find out, an object with a condition is decoded
/// and encoded again. If decoding fails, the type has required status fields that have not been
/// written yet, and the result is `true`.
fn has_conditions<K: Object>(json: &Value) -> bool {
    let mut probe = json.clone();
    let Some(fields) = probe.as_object_mut() else {
        return false;
    };
    let status = fields.entry("status").or_insert_with(|| json!({}));
    if let Some(status) = status.as_object_mut() {
        let condition = json!({
            "type": "Ready", "status": "True", "reason": "Probe", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        status.insert("conditions".into(), json!([condition]));
    }
    let Ok(object) = serde_json::from_value::<K>(probe) else {
        return true;
    };
    let written = serde_json::to_value(&object).unwrap_or_default();
    written.pointer("/status/conditions/0").is_some()
}

/// Returns the object as JSON with `apiVersion` and `kind`, because the readiness rules depend on
/// the kind.
fn as_json<K: Object>(object: &K) -> Value {
    let mut json = serde_json::to_value(object).unwrap_or_default();
    if let Some(fields) = json.as_object_mut() {
        let kind = Kind::of::<K>();
        fields.insert("apiVersion".into(), kind.api_version().into());
        fields.insert("kind".into(), kind.kind.into());
    }
    json
}

#[cfg(test)]
mod tests;
