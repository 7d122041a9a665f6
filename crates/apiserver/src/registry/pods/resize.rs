//! The subresource `resize`, with which the CPU and memory of running containers are changed.

use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use super::{is_mirror, reset_metadata};
use crate::kinds::defaults;
use crate::object;

const LISTS: [&str; 2] = ["containers", "initContainers"];
const ONLY: &str = "only cpu and memory resources are mutable";

/// Resets all fields of `new` to those of `live`, except the resources of containers. If containers
/// were added, removed, renamed or moved, the containers of `new` stay, and are refused later.
pub(in crate::registry) fn restrict(live: &Value, new: &mut Value) {
    let names = |pod: &Value, list: &str| -> Vec<String> {
        let containers = object::items(pod, &["spec", list]).iter();
        containers
            .map(|container| object::text(container, &["name"]).to_owned())
            .collect()
    };
    let count = |pod: &Value, list: &str| object::items(pod, &["spec", list]).len();
    let is_longer = LISTS
        .iter()
        .any(|list| count(live, list) != count(new, list));
    if is_longer {
        return;
    }
    let mut spec = object::at(live, &["spec"]).clone();
    for list in LISTS {
        if names(live, list) != names(new, list) {
            let containers = object::at(new, &["spec", list]).clone();
            object::set(&mut spec, &[list], containers);
            continue;
        }
        let resized = object::items(new, &["spec", list]);
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for (container, resized) in containers.into_iter().flatten().zip(resized) {
            for field in ["resources", "resizePolicy"] {
                let value = object::at(resized, &[field]).clone();
                object::set(container, &[field], value);
            }
        }
    }
    reset_metadata(live, new);
    object::set(new, &["spec"], spec);
    object::set(new, &["status"], object::at(live, &["status"]).clone());
}

/// Returns the errors in the new resources of a Pod.
pub(in crate::registry) fn errors(live: &Value, new: &Value) -> Vec<FieldError> {
    let refuse = |detail: &str| vec![FieldError::forbidden("", detail)];
    if is_mirror(live) {
        return refuse("static pods cannot be resized");
    }
    if object::text(live, &["spec", "os", "name"]) == "windows" {
        return refuse("windows pods cannot be resized");
    }
    let mut errors = Vec::new();
    let before = object::text(live, &["status", "qosClass"]);
    if before != defaults::qos_class(new) {
        let detail = "Pod QOS Class may not change as a result of resizing";
        errors.push(FieldError::invalid("spec", &json!(before), detail));
    }
    if !is_supported(live) {
        let detail = "Pod running on node without support for resize";
        errors.push(FieldError::forbidden("spec", detail));
    }
    let order = order_errors(live, new);
    let is_moved = !order.is_empty();
    errors.extend(order);
    if is_moved {
        return errors;
    }
    for list in LISTS {
        errors.extend(container_errors(live, new, list));
    }
    errors
}

/// Reports whether the kubelet of a Pod can resize it, which it shows by reporting the resources of
/// running containers.
fn is_supported(pod: &Value) -> bool {
    let statuses = object::items(pod, &["status", "containerStatuses"]);
    let mut running = statuses
        .iter()
        .filter(|status| !object::at(status, &["state", "running"]).is_null());
    let first = running.next();
    first.is_none_or(|status| !object::at(status, &["resources"]).is_null())
}

fn order_errors(live: &Value, new: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for list in LISTS {
        let path = ["spec", list];
        let (before, after) = (object::items(live, &path), object::items(new, &path));
        if before.len() != after.len() {
            let detail = format!("{list} may not be added or removed on resize");
            errors.push(FieldError::forbidden(path.join("."), detail));
            continue;
        }
        for (index, (before, after)) in before.iter().zip(after).enumerate() {
            if object::at(before, &["name"]) != object::at(after, &["name"]) {
                let field = format!("{}[{index}].name", path.join("."));
                let detail = format!("{list} may not be renamed or reordered on resize");
                errors.push(FieldError::forbidden(field, detail));
            }
        }
    }
    errors
}

fn container_errors(live: &Value, new: &Value, list: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let path = ["spec", list];
    let pairs = object::items(live, &path)
        .iter()
        .zip(object::items(new, &path));
    let is_main = list == "containers";
    for (index, (before, after)) in pairs.enumerate() {
        let at = format!("spec.{list}[{index}]");
        for field in ["requests", "limits"] {
            let amounts = |container: &Value| {
                let amounts = object::at(container, &["resources", field]).as_object();
                amounts.cloned().unwrap_or_default()
            };
            let (old, new) = (amounts(before), amounts(after));
            if old.keys().any(|resource| !new.contains_key(resource)) {
                let detail = format!("resource {field} cannot be removed");
                errors.push(FieldError::forbidden(
                    format!("{at}.resources.{field}"),
                    detail,
                ));
            }
        }
        if fixed(before) != fixed(after) {
            let error = match is_main {
                true => FieldError::forbidden("spec", ONLY),
                false => {
                    let detail =
                        "only cpu and memory resources for init or sidecar containers are mutable";
                    FieldError::forbidden(at, detail)
                }
            };
            errors.push(error);
        }
    }
    errors
}

/// Returns a container without its CPU and memory.
fn fixed(container: &Value) -> Value {
    let mut container = container.clone();
    for list in ["requests", "limits"] {
        for resource in ["cpu", "memory"] {
            object::set(&mut container, &["resources", list, resource], Value::Null);
        }
        let is_empty = object::at(&container, &["resources", list])
            .as_object()
            .is_some_and(serde_json::Map::is_empty);
        if is_empty {
            object::set(&mut container, &["resources", list], Value::Null);
        }
    }
    container
}
