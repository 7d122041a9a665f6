//! The plugin `Priority`.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Attributes;
use crate::object;
use crate::registry::Registry;
use crate::status::ApiResult;
use crate::store::Key;

const CLASSES: &str = "priorityclasses.scheduling.k8s.io";

/// Sets priority and preemption policy of a Pod from its PriorityClass, or from the class that is
/// the default of the cluster.
pub(super) fn admit(
    registry: &Registry,
    attributes: &Attributes<'_>,
    pod: &mut Value,
) -> ApiResult<()> {
    let class = match object::text(pod, &["spec", "priorityClassName"]) {
        "" => default_class(registry),
        name => {
            let class = registry.store.get(CLASSES, &Key::new("", name));
            let missing = || format!("no PriorityClass with name {name} was found");
            Some(class.ok_or_else(|| attributes.forbid(missing()))?)
        }
    };
    let (priority, policy) = match &class {
        Some(class) => (
            object::int(class, &["value"]),
            object::text(class, &["preemptionPolicy"]),
        ),
        None => (0, "PreemptLowerPriority"),
    };
    let given = object::at(pod, &["spec", "priority"]).as_i64();
    if let Some(given) = given.filter(|given| *given != priority) {
        return Err(attributes.forbid(format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority \
             admission controller computed {priority} from the given PriorityClass name"
        )));
    }
    let given = object::at(pod, &["spec", "preemptionPolicy"]).as_str();
    if let Some(given) = given.filter(|given| !policy.is_empty() && *given != policy) {
        return Err(attributes.forbid(format!(
            "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; \
             priority admission controller computed {policy} from the given PriorityClass name"
        )));
    }
    if let Some(class) = &class {
        let name = json!(object::name(class));
        object::set(pod, &["spec", "priorityClassName"], name);
    }
    object::set(pod, &["spec", "priority"], json!(priority));
    if !policy.is_empty() {
        object::set(pod, &["spec", "preemptionPolicy"], json!(policy));
    }
    Ok(())
}

/// Sets priority and preemption policy of a changed Pod to those of `live` if the client has left
/// them out.
pub(super) fn keep(live: &Value, new: &mut Value) {
    for field in ["priority", "preemptionPolicy"] {
        if object::at(new, &["spec", field]).is_null() {
            let before = object::at(live, &["spec", field]).clone();
            object::set(new, &["spec", field], before);
        }
    }
}

/// Checks that a PriorityClass with `globalDefault` is the only one.
pub(super) fn check_default(
    registry: &Registry,
    attributes: &Attributes<'_>,
    class: &Value,
) -> ApiResult<()> {
    if object::at(class, &["globalDefault"]) != true {
        return Ok(());
    }
    let present = default_class(registry)
        .filter(|present| attributes.old.is_none() || object::name(present) != object::name(class));
    match present {
        None => Ok(()),
        Some(present) => Err(attributes.forbid(format!(
            "PriorityClass {} is already marked as default. Only one default can exist",
            object::name(&present)
        ))),
    }
}

/// Returns the class with `globalDefault`. If there are several, the lowest priority wins.
fn default_class(registry: &Registry) -> Option<Arc<Value>> {
    let (classes, _) = registry.store.list(CLASSES, None);
    let defaults = classes
        .into_iter()
        .filter(|class| object::at(class, &["globalDefault"]) == &Value::Bool(true));
    defaults.min_by_key(|class| object::int(class, &["value"]))
}
