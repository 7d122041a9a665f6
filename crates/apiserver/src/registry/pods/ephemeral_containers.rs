//! The subresource `ephemeralcontainers`, with which a container for debugging is added to a Pod.

use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use super::{is_mirror, reset_metadata};
use crate::object;

const PATH: [&str; 2] = ["spec", "ephemeralContainers"];

/// Fields of a container that an ephemeral container cannot have, in the order in which Kubernetes
/// checks them.
const FORBIDDEN: &[&str] = &[
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "restartPolicyRules",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];
const CANNOT: &str = "cannot be set for an Ephemeral Container";

/// Resets all fields of `new` to those of `live`, except the ephemeral containers.
pub(in crate::registry) fn restrict(live: &Value, new: &mut Value) {
    let containers = object::at(new, &PATH).clone();
    reset_metadata(live, new);
    for field in ["spec", "status"] {
        object::set(new, &[field], object::at(live, &[field]).clone());
    }
    object::set(new, &PATH, containers);
}

/// Returns the errors in the ephemeral containers of `new`.
pub(in crate::registry) fn errors(live: &Value, new: &Value) -> Vec<FieldError> {
    if is_mirror(live) {
        let detail = "static pods do not support ephemeral containers";
        return vec![FieldError::forbidden("", detail)];
    }
    let mut errors = Vec::new();
    let name = |container: &Value| object::text(container, &["name"]).to_owned();
    let others: Vec<String> = ["containers", "initContainers"]
        .iter()
        .flat_map(|field| object::items(new, &["spec", field]))
        .map(name)
        .collect();
    let mut seen = others.clone();
    let containers = object::items(new, &PATH);
    for (index, container) in containers.iter().enumerate() {
        let at = |field: &str| format!("{}[{index}].{field}", PATH.join("."));
        let own = name(container);
        match seen.contains(&own) {
            true => errors.push(FieldError::duplicate(at("name"), &json!(own))),
            false => seen.push(own),
        }
        let target = object::at(container, &["targetContainerName"]);
        let wanted = target.as_str().unwrap_or_default();
        if !wanted.is_empty() && !others.iter().any(|other| other == wanted) {
            errors.push(FieldError::not_found(at("targetContainerName"), target));
        }
        for field in FORBIDDEN {
            let value = object::at(container, &[field]);
            let is_empty = value.is_null()
                || value.as_array().is_some_and(Vec::is_empty)
                || value.as_object().is_some_and(serde_json::Map::is_empty);
            if !is_empty {
                errors.push(FieldError::forbidden(at(field), CANNOT));
            }
        }
        for (mount_index, mount) in object::items(container, &["volumeMounts"])
            .iter()
            .enumerate()
        {
            for field in ["subPath", "subPathExpr"] {
                if !object::text(mount, &[field]).is_empty() {
                    let path = at(&format!("volumeMounts[{mount_index}].{field}"));
                    errors.push(FieldError::forbidden(path, CANNOT));
                }
            }
        }
    }
    for old in object::items(live, &PATH) {
        let called = name(old);
        let detail = match containers.iter().find(|new| name(new) == called) {
            None => format!("existing ephemeral containers {called:?} may not be removed\n"),
            Some(new) if new != old => {
                format!("existing ephemeral containers {called:?} may not be changed\n")
            }
            Some(_) => continue,
        };
        errors.push(FieldError::forbidden(PATH.join("."), detail));
    }
    errors
}
