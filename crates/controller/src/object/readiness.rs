//! Whether an object is ready, for every kind.

use opkit_apimachinery::readiness;
use opkit_client::{Kind, Object};
use serde_json::{Value, json};

/// Readiness of any object, as its status tells it.
///
/// # Examples
/// ```
/// # use opkit_controller as opkit;
/// use k8s_openapi::api::apps::v1::Deployment;
/// use opkit::Readiness;
/// assert!(!Deployment::default().is_ready());
/// ```
pub trait Readiness {
    /// Whether the status has observed the present generation and says Ready; for workloads,
    /// whether all replicas are updated and available. A custom kind whose type has conditions is
    /// not ready before it has one that says so; kinds that cannot say it are ready once they
    /// exist.
    fn is_ready(&self) -> bool;

    /// Whether the condition of this type is true for the present generation: for kinds that name
    /// it otherwise than `Ready`, such as `Available`. An object that is being deleted is not
    /// ready.
    fn is_ready_by(&self, condition: &str) -> bool;

    /// How many replicas are ready; 0 if the status does not say.
    fn ready_replicas(&self) -> i32;
}

/// Reports whether the kind is not one of Kubernetes' own.
pub(crate) fn is_custom(kind: &Kind) -> bool {
    kind.group.contains('.') && !kind.group.ends_with(".k8s.io")
}

impl<K: Object> Readiness for K {
    fn is_ready(&self) -> bool {
        let json = as_json(self);
        let conditions = json.pointer("/status/conditions");
        let says_nothing = conditions
            .and_then(Value::as_array)
            .is_none_or(|conditions| conditions.is_empty());
        if says_nothing && is_custom(&Kind::of::<K>()) && can_say_ready::<K>(&json) {
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

/// Whether the type has conditions: whether one survives being read and written. A type that cannot
/// be read so has a status that needs more, so it has not been written yet.
fn can_say_ready<K: Object>(json: &Value) -> bool {
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

/// The object as JSON with its kind, which the rules for workloads go by.
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
