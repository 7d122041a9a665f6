//! The Roles, ClusterRoles and bindings that every Kubernetes cluster has.

use serde_json::{Value, json};

use crate::error::StartError;
use crate::object;
use crate::registry::{Registry, storage_name};
use crate::store::Expected;

/// The objects as a real server has them, one per line, without the fields that differ from server
/// to server. `cargo xtask rbac` writes the file.
const TEXT: &str = include_str!("../data/v1.36/rbac.jsonl");

/// Creates the objects. They are valid, so they are stored without the checks of a request: a
/// request for each object would double the time that a server needs to start.
pub(crate) fn create(registry: &Registry) -> Result<(), StartError> {
    let fail = |cause: String| StartError::InitialObject {
        resource: "roles",
        cause,
    };
    let time = json!(registry.clock.now_rfc3339());
    for line in TEXT.lines() {
        let object = serde_json::from_str(line);
        let mut object: Value = object.map_err(|error| fail(error.to_string()))?;
        let kind = object::text(&object, &["kind"]);
        let group = "rbac.authorization.k8s.io";
        let plural = format!("{}s", kind.to_lowercase());
        let found = registry.builtin(group, &plural);
        let found = found.map_err(|error| fail(error.message()))?;
        object::set_meta(&mut object, "uid", json!(registry.random.uid()));
        object::set_meta(&mut object, "creationTimestamp", time.clone());
        let managers = object.pointer_mut("/metadata/managedFields");
        for manager in managers.and_then(Value::as_array_mut).into_iter().flatten() {
            object::set_field(manager, "time", time.clone());
        }
        let resource = storage_name(&found);
        let stored = registry.store.put(&resource, Expected::Absent, object);
        stored.map_err(|error| fail(format!("{error:?}")))?;
    }
    Ok(())
}
