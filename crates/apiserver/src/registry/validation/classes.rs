//! Validation of PriorityClasses and RuntimeClasses.

use serde_json::json;

use super::field::{Errors, Field};
use super::resources::{self, Owner};
use super::{format, pod_specs, scheduling, selectors};

/// Highest priority of a class that is not one of the system.
const USER_PRIORITY_MAX: i64 = 1_000_000_000;
/// The priority classes of the system.
const SYSTEM: &[(&str, i64)] = &[
    ("system-node-critical", 2_000_001_000),
    ("system-cluster-critical", 2_000_000_000),
];

/// Adds the errors in a PriorityClass.
pub(super) fn priority_class(class: &Field<'_>, errors: &mut Errors) {
    let (name, value) = (class.at(&["metadata", "name"]), class.get("value"));
    if name.text().starts_with("system-") {
        if let Some(problem) = system_error(class) {
            let detail = format!(
                "priority class names with 'system-' prefix are reserved for system use only. \
                 error: {problem}"
            );
            errors.forbidden(&name, &detail);
        }
    } else if value.int() > USER_PRIORITY_MAX {
        let detail =
            format!("maximum allowed value of a user defined priority is {USER_PRIORITY_MAX}");
        errors.forbidden(&value, &detail);
    }
    pod_specs::preemption_policy(&class.get("preemptionPolicy"), errors);
}

fn system_error(class: &Field<'_>) -> Option<String> {
    let name = class.at(&["metadata", "name"]).text();
    let Some((_, value)) = SYSTEM.iter().find(|(known, _)| *known == name) else {
        return Some(format!("{name} is not a known system priority class"));
    };
    if class.get("value").int() != *value {
        return Some(format!("value of {name} PriorityClass must be {value}"));
    }
    class
        .get("globalDefault")
        .is_true()
        .then(|| format!("globalDefault of {name} PriorityClass must be false"))
}

/// Adds the errors in the change of a PriorityClass.
pub(super) fn priority_class_update(live: &Field<'_>, new: &Field<'_>, errors: &mut Errors) {
    if live.get("value").int() != new.get("value").int() {
        errors.forbidden(&new.get("value"), "may not be changed in an update.");
    }
    let policy = live.get("preemptionPolicy");
    errors.immutable(&new.get("preemptionPolicy"), policy.value);
}

/// Adds the errors in a RuntimeClass.
pub(super) fn runtime_class(class: &Field<'_>, errors: &mut Errors) {
    let handler = class.get("handler");
    match handler.text() {
        "" => errors.required(&handler, ""),
        text => errors.rules(&handler, format::dns_label(text)),
    }
    let limits = class.at(&["overhead", "podFixed"]);
    let limits = limits.renamed("overhead.limits");
    resources::amounts(Owner::Container, &limits, None, errors);
    let rules = class.get("scheduling");
    selectors::labels(&rules.get("nodeSelector"), errors);
    let tolerations = rules.get("tolerations");
    scheduling::tolerations(&tolerations, errors);
    let mut seen: Vec<[&str; 4]> = Vec::new();
    for toleration in tolerations.items() {
        let text = |name: &str| toleration.get(name).text();
        let key = ["key", "operator", "value", "effect"].map(text);
        if seen.contains(&key) {
            let [name, operator, value, effect] = key.map(|text| json!(text));
            let seconds = toleration.get("tolerationSeconds");
            errors.duplicate(&toleration.path, "");
            if let Some(error) = errors.0.last_mut() {
                error.detail = format!(
                    "Duplicate value: {{\"Key\":{name},\"Operator\":{operator},\"Value\":{value},\
                     \"Effect\":{effect},\"TolerationSeconds\":{}}}",
                    seconds.value
                );
            }
        }
        seen.push(key);
    }
}

/// Adds the errors in the change of a RuntimeClass.
pub(super) fn runtime_class_update(live: &Field<'_>, new: &Field<'_>, errors: &mut Errors) {
    errors.immutable(&new.get("handler"), live.get("handler").value);
}
