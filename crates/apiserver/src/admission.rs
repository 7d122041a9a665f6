//! Admission: plugins that change or refuse an object before it is stored. The mutating phase of
//! all plugins runs before the object is validated, and the validating phase after that.
//!
//! The plugins run after the field manager of a write is known, so that no manager owns the fields
//! that a plugin sets.

mod always_pull_images;
mod attributes;
mod authorizer;
mod builtin;
mod certificates;
mod claim_resize;
mod conditions;
mod default_class;
mod default_toleration_seconds;
mod environment;
mod limit_ranger;
mod matching;
mod metrics;
mod namespace_lifecycle;
mod notes;
mod owner_references;
mod plugin;
mod pod_resize;
mod pod_security;
mod pod_topology_labels;
mod policy;
mod priority;
mod reinvocation;
mod request;
pub(crate) mod resource_list;
pub(crate) mod resource_quota;
mod rules;
mod runtime_class;
mod service_account;
mod storage_object_in_use;
mod taint_nodes;
#[cfg(test)]
mod tests;
mod webhook;

use serde_json::Value;

use crate::kinds::Kind;
use crate::registry::Registry;
use crate::status::ApiResult;
use reinvocation::Reinvocation;
use request::Hidden;

pub(crate) use attributes::{Attributes, Operation};
pub(crate) use metrics::AdmissionMetrics;
pub(crate) use notes::Notes;
pub use plugin::{AdmissionPlugin, UnknownAdmissionPlugin};
pub(crate) use policy::{AdmissionPolicies, type_warnings};
pub(crate) use storage_object_in_use::{CLAIM_PROTECTION, VOLUME_PROTECTION};
pub(crate) use webhook::AdmissionWebhooks;

/// Runs the mutating phase of admission on an object that is to be stored.
pub(crate) async fn mutate(
    registry: &Registry,
    attributes: &Attributes<'_>,
    object: &mut Value,
) -> ApiResult<()> {
    mutate_by_plugins(registry, attributes, object).await?;
    if attributes.write.is_direct || is_exempt(attributes.kind()) || !has_mutations(registry) {
        return Ok(());
    }
    let hidden = Hidden::take(attributes, object);
    let mut policies = Reinvocation::default();
    let mut webhooks = Reinvocation::default();
    mutate_dynamically(registry, attributes, object, &mut policies, &mut webhooks).await?;
    let is_changed = policies.is_changed() || webhooks.is_changed();
    if is_changed {
        // The plugins, and the policies and webhooks that want it, see the changes of the first
        // round.
        policies.start_second_round();
        webhooks.start_second_round();
        mutate_by_plugins(registry, attributes, object).await?;
        mutate_dynamically(registry, attributes, object, &mut policies, &mut webhooks).await?;
    }
    hidden.restore(object);
    match is_changed {
        true => registry.complete_mutated(attributes, object),
        false => Ok(()),
    }
}

/// Reports whether a mutating policy or webhook is stored in the cluster.
fn has_mutations(registry: &Registry) -> bool {
    registry.policies.has_mutating(registry) || registry.admission_webhooks.has_mutating(registry)
}

/// Runs the mutating policies and webhooks that are stored in the cluster.
async fn mutate_dynamically(
    registry: &Registry,
    attributes: &Attributes<'_>,
    object: &mut Value,
    policies: &mut Reinvocation,
    webhooks: &mut Reinvocation,
) -> ApiResult<()> {
    policy::mutate(registry, attributes, object, policies).await?;
    webhook::mutate(registry, attributes, object, webhooks).await
}

/// Runs the validating phase of admission. `object` is `None` for a delete. Quotas are charged
/// last, so that nothing refuses an object after it was charged.
pub(crate) async fn validate(
    registry: &Registry,
    attributes: &Attributes<'_>,
    object: Option<&Value>,
) -> ApiResult<()> {
    let is_enabled = |plugin| registry.admission_plugins.contains(plugin);
    let quota = &AdmissionPlugin::ResourceQuota;
    let others = AdmissionPlugin::ALL
        .iter()
        .filter(|plugin| *plugin != quota);
    if let Some(object) = object {
        for plugin in others.filter(|plugin| is_enabled(plugin)) {
            builtin::validate(*plugin, registry, attributes, object).await?;
        }
    }
    if attributes.write.is_direct {
        return Ok(());
    }
    if !is_exempt(attributes.kind()) {
        policy::validate(registry, attributes, object).await?;
        webhook::validate(registry, attributes, object).await?;
    }
    match object.filter(|_| is_enabled(quota)) {
        Some(object) => builtin::validate(*quota, registry, attributes, object).await,
        None => Ok(()),
    }
}

/// Reports whether webhooks and policies are not applied to objects of a kind, because these
/// objects configure admission themselves.
fn is_exempt(kind: &Kind) -> bool {
    kind.group == "admissionregistration.k8s.io"
        && matches!(
            kind.kind.as_str(),
            "ValidatingWebhookConfiguration"
                | "MutatingWebhookConfiguration"
                | "ValidatingAdmissionPolicy"
                | "ValidatingAdmissionPolicyBinding"
                | "MutatingAdmissionPolicy"
                | "MutatingAdmissionPolicyBinding"
        )
}

/// Runs the mutating phase of the enabled plugins.
async fn mutate_by_plugins(
    registry: &Registry,
    attributes: &Attributes<'_>,
    object: &mut Value,
) -> ApiResult<()> {
    for plugin in AdmissionPlugin::ALL {
        if registry.admission_plugins.contains(plugin) {
            builtin::mutate(*plugin, registry, attributes, object).await?;
        }
    }
    Ok(())
}

/// Returns several errors as the text of one, as Go's aggregate of errors prints them.
fn aggregate(errors: &[String]) -> String {
    let mut texts: Vec<&str> = Vec::with_capacity(errors.len());
    for error in errors {
        if !texts.contains(&error.as_str()) {
            texts.push(error);
        }
    }
    match texts.as_slice() {
        [one] => (*one).to_owned(),
        many => format!("[{}]", many.join(", ")),
    }
}
