//! Controller of the status of ValidatingAdmissionPolicies: reports wrong types in expressions.

use serde_json::json;

use crate::admission::type_warnings;
use crate::object;
use crate::registry::{Registry, Write};
use crate::status::ApiResult;
use crate::store::Key;
use crate::target::Target;

/// The resource name of the policies in the store.
pub(super) const POLICIES: &str = "validatingadmissionpolicies.admissionregistration.k8s.io";
/// The field manager of the controller in Kubernetes.
const MANAGER: &str = "validatingadmissionpolicy-status";

/// Checks the expressions of a policy that has changed since the last check.
pub(super) async fn step(registry: &Registry, key: &Key) -> ApiResult<()> {
    let Some(policy) = registry.store.get(POLICIES, key) else {
        return Ok(());
    };
    let generation = object::int(&policy, &["metadata", "generation"]);
    if generation <= object::int(&policy, &["status", "observedGeneration"]) {
        return Ok(());
    }
    let warnings = type_warnings(registry, &policy);
    let checking = match warnings.is_empty() {
        true => json!({}),
        false => json!({"expressionWarnings": warnings}),
    };
    let status = json!({"observedGeneration": generation, "typeChecking": checking});
    let kind = registry.builtin(
        "admissionregistration.k8s.io",
        "validatingadmissionpolicies",
    )?;
    let target = Target::new(&kind, "", &key.name).subresource("status");
    registry
        .modify(&target, &mut Write::by(MANAGER), |live| {
            let mut new = live.clone();
            object::set(&mut new, &["status"], status.clone());
            Ok(new)
        })
        .await?;
    Ok(())
}
