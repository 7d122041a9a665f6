//! The plugin `NamespaceLifecycle`: refuses objects in a namespace that does not exist or is being
//! deleted, and the deletion of the namespaces of the cluster itself.

use super::{Attributes, Operation};
use crate::registry::Registry;
use crate::status::{ApiError, ApiResult};
use crate::store::Key;

/// The namespaces that cannot be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Checks the namespace of a request.
pub(super) fn admit(registry: &Registry, attributes: &Attributes<'_>) -> ApiResult<()> {
    let kind = attributes.kind();
    if kind.group.is_empty() && kind.plural == "namespaces" {
        return match attributes.operation {
            Operation::Delete if IMMORTAL.contains(&attributes.target.name.as_str()) => {
                Err(attributes.forbid("this namespace may not be deleted"))
            }
            _ => Ok(()),
        };
    }
    let is_handled = matches!(attributes.operation, Operation::Create | Operation::Update);
    // A review must not show whether a namespace exists.
    let is_review = kind.plural == "localsubjectaccessreviews";
    if !kind.namespaced || !is_handled || is_review {
        return Ok(());
    }
    let namespace = attributes.namespace();
    let Some(found) = registry
        .store
        .stored("namespaces", &Key::new("", namespace))
    else {
        return Err(ApiError::namespace_not_found(namespace));
    };
    if attributes.operation == Operation::Update || !found.is_deleting() {
        return Ok(());
    }
    let why = format!(
        "unable to create new content in namespace {namespace} because it is being terminated"
    );
    Err(attributes.forbid(why).with_cause(
        "NamespaceTerminating",
        &format!("namespace {namespace} is being terminated"),
        "metadata.namespace",
    ))
}
