//! The plugin `RuntimeClass`: sets the overhead and the nodes of a Pod from its RuntimeClass.

use serde_json::{Value, json};

use super::resource_list;
use crate::object;

/// The resource name of RuntimeClasses.
pub(super) const RUNTIME_CLASSES: &str = "runtimeclasses.node.k8s.io";

const OTHER_OVERHEAD: &str =
    "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";

/// Sets the overhead, the node selector and the tolerations of a Pod from its class.
pub(super) fn admit(class: &Value, pod: &mut Value) -> Result<(), String> {
    set_overhead(class, pod)?;
    set_scheduling(class, pod)
}

/// Checks that the overhead of a Pod is that of its class, if the Pod has a class.
pub(super) fn check(class: Option<&Value>, pod: &Value) -> Result<(), &'static str> {
    let overhead = object::at(pod, &["spec", "overhead"]);
    let wanted = class.map(|class| object::at(class, &["overhead"]));
    match wanted.filter(|wanted| !wanted.is_null()) {
        Some(wanted) if is_same(object::at(wanted, &["podFixed"]), overhead) => Ok(()),
        Some(_) => Err(OTHER_OVERHEAD),
        None if overhead.is_null() => Ok(()),
        None => Err(
            "pod rejected: Pod Overhead set without corresponding RuntimeClass defined \
                     Overhead",
        ),
    }
}

fn is_same(first: &Value, second: &Value) -> bool {
    resource_list::parse(first) == resource_list::parse(second)
}

fn set_overhead(class: &Value, pod: &mut Value) -> Result<(), String> {
    if object::at(class, &["overhead"]).is_null() {
        return Ok(());
    }
    let wanted = object::at(class, &["overhead", "podFixed"]);
    let present = object::at(pod, &["spec", "overhead"]);
    let is_set = present.as_object().is_some_and(|list| !list.is_empty());
    if is_set && !is_same(wanted, present) {
        return Err(OTHER_OVERHEAD.to_owned());
    }
    object::set(pod, &["spec", "overhead"], wanted.clone());
    Ok(())
}

fn set_scheduling(class: &Value, pod: &mut Value) -> Result<(), String> {
    let scheduling = object::at(class, &["scheduling"]);
    if scheduling.is_null() {
        return Ok(());
    }
    let wanted = object::at(scheduling, &["nodeSelector"]).as_object();
    for (key, value) in wanted.into_iter().flatten() {
        let value = value.as_str().unwrap_or_default();
        let path = ["spec", "nodeSelector", key];
        let present = object::at(pod, &path).as_str();
        if let Some(present) = present.filter(|present| *present != value) {
            return Err(format!(
                "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; \
                 pod.spec.nodeSelector[{key}] = {present}"
            ));
        }
        object::set(pod, &path, json!(value));
    }
    let own = object::items(pod, &["spec", "tolerations"]);
    let merged = merge(own, object::items(scheduling, &["tolerations"]));
    if !merged.is_empty() {
        object::set(pod, &["spec", "tolerations"], json!(merged));
    }
    Ok(())
}

/// Merges two lists of tolerations, without those that another toleration includes.
fn merge(first: &[Value], second: &[Value]) -> Vec<Value> {
    let all: Vec<&Value> = first.iter().chain(second).collect();
    let mut merged: Vec<Value> = Vec::new();
    for (index, toleration) in all.iter().enumerate() {
        let is_known = merged.iter().any(|other| includes(other, toleration));
        let mut later = all.iter().skip(index + 1);
        let is_included_later =
            later.any(|other| other != toleration && includes(other, toleration));
        if !is_known && !is_included_later {
            merged.push((*toleration).clone());
        }
    }
    merged
}

/// Reports whether `outer` tolerates everything that `inner` tolerates.
fn includes(outer: &Value, inner: &Value) -> bool {
    if outer == inner {
        return true;
    }
    let is = |field: &str| object::text(outer, &[field]) == object::text(inner, &[field]);
    let text = |field: &str| object::text(outer, &[field]);
    let matches_all_keys = text("key").is_empty() && text("operator") == "Exists";
    if !is("key") && !matches_all_keys {
        return false;
    }
    if !is("effect") && !text("effect").is_empty() {
        return false;
    }
    let seconds = |toleration| object::at(toleration, &["tolerationSeconds"]).as_i64();
    if text("effect") == "NoExecute"
        && let Some(outer) = seconds(outer)
        && seconds(inner).is_none_or(|inner| inner > outer)
    {
        return false;
    }
    match text("operator") {
        "Equal" | "" => object::text(inner, &["operator"]) == "Equal" && is("value"),
        "Exists" => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
