//! Fields that Go prints although they have no value: as null, zero or an empty text.
//!
//! The schema of a kind does not have this information. It is that of the tags of the Go types: a
//! field without `omitempty` is always printed. Most such fields are required by the schema and by
//! validation; this module has the others. They do not belong to a field manager until a client
//! sets them, so they are added after the field managers are known.

use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::object;

/// What is printed for a field without a value.
#[derive(Clone, Copy)]
enum Zero {
    Null,
    Number,
    Text,
}

/// Fields by resource. A field is printed if the object that contains it exists.
const FIELDS: &[(&str, &[&str], Zero)] = &[
    (
        "clusterroles.rbac.authorization.k8s.io",
        &["rules"],
        Zero::Null,
    ),
    ("csinodes.storage.k8s.io", &["spec", "drivers"], Zero::Null),
    (
        "endpointslices.discovery.k8s.io",
        &["endpoints"],
        Zero::Null,
    ),
    ("endpointslices.discovery.k8s.io", &["ports"], Zero::Null),
    (
        "flowschemas.flowcontrol.apiserver.k8s.io",
        &["spec", "matchingPrecedence"],
        Zero::Number,
    ),
    ("limitranges", &["spec", "limits"], Zero::Null),
    (
        "poddisruptionbudgets.policy",
        &["status", "currentHealthy"],
        Zero::Number,
    ),
    (
        "poddisruptionbudgets.policy",
        &["status", "desiredHealthy"],
        Zero::Number,
    ),
    (
        "poddisruptionbudgets.policy",
        &["status", "disruptionsAllowed"],
        Zero::Number,
    ),
    (
        "poddisruptionbudgets.policy",
        &["status", "expectedPods"],
        Zero::Number,
    ),
    (
        "priorityclasses.scheduling.k8s.io",
        &["value"],
        Zero::Number,
    ),
    ("roles.rbac.authorization.k8s.io", &["rules"], Zero::Null),
    ("statefulsets.apps", &["spec", "serviceName"], Zero::Text),
    (
        "statefulsets.apps",
        &["status", "availableReplicas"],
        Zero::Number,
    ),
];

/// Adds the fields that Go prints without a value. An empty list is printed as null.
pub(super) fn add(kind: &Kind, object: &mut Value) {
    let resource = kind.group_resource();
    for (_, path, zero) in FIELDS.iter().filter(|(of, ..)| *of == resource) {
        add_field(object, path, *zero);
    }
    // The older version of the kind does not have this field.
    if resource == "horizontalpodautoscalers.autoscaling" && kind.version == "v2" {
        add_field(object, &["status", "currentMetrics"], Zero::Null);
    }
}

fn add_field(object: &mut Value, path: &[&str], zero: Zero) {
    let Some((field, parents)) = path.split_last() else {
        return;
    };
    let parent = parents
        .iter()
        .try_fold(object, |value, step| value.get_mut(*step));
    let Some(parent) = parent.filter(|parent| parent.is_object()) else {
        return;
    };
    let value = object::at(parent, &[field]);
    let is_empty = value.is_null() || value.as_array().is_some_and(Vec::is_empty);
    if is_empty {
        let value = match zero {
            Zero::Null => Value::Null,
            Zero::Number => json!(0),
            Zero::Text => json!(""),
        };
        object::set_field(parent, field, value);
    }
}

#[cfg(test)]
mod tests;
