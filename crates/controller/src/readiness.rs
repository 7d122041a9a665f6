//! Whether an object is ready, for every kind.

use opkit_apimachinery::readiness;
use opkit_client::{Kind, Object};
use serde_json::Value;

/// Readiness of any object, as its status tells it.
///
/// # Examples
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use opkit_controller::Readiness;
/// assert!(!Deployment::default().is_ready());
/// ```
pub trait Readiness {
    /// Whether the status has observed the present generation and says Ready; for workloads,
    /// whether all replicas are updated and available.
    fn is_ready(&self) -> bool;

    /// How many replicas are ready; 0 if the status does not say.
    fn ready_replicas(&self) -> i32;
}

impl<K: Object> Readiness for K {
    fn is_ready(&self) -> bool {
        readiness::is_ready(&json(self))
    }

    fn ready_replicas(&self) -> i32 {
        readiness::ready_replicas(&json(self))
    }
}

/// The object as JSON with its kind, which the rules for workloads go by.
fn json<K: Object>(object: &K) -> Value {
    let mut json = serde_json::to_value(object).unwrap_or_default();
    if let Some(fields) = json.as_object_mut() {
        let kind = Kind::of::<K>();
        fields.insert("apiVersion".into(), kind.api_version().into());
        fields.insert("kind".into(), kind.kind.into());
    }
    json
}
