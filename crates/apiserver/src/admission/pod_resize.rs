//! The plugin `PodResizeValidator`: a Pod can be resized only within the resources of its node.

use opkit_apimachinery::quantity::Quantity;
use serde_json::Value;

use super::resource_list::{self, ResourceList};
use crate::object;

/// The reason for which a resize is refused: a cause for the details of the error, which may be
/// empty, and the message.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Refusal {
    pub(super) cause: &'static str,
    pub(super) message: String,
}

/// Checks the new resources of a Pod that has a node.
pub(super) fn check(pod: &Value, node: Option<&Value>) -> Result<(), Refusal> {
    let name = object::text(pod, &["spec", "nodeName"]);
    let refuse = |cause, message: String| Err(Refusal { cause, message });
    let Some(node) = node else {
        return refuse("", format!("node {name:?} not found"));
    };
    let system = object::at(node, &["metadata", "labels", "kubernetes.io/os"]).as_str();
    if let Some(system) = system.filter(|system| *system != "linux") {
        let message =
            format!("pod resize is only supported on linux nodes, node {name:?} is {system:?}");
        return refuse("UnsupportedPlatform", message);
    }
    let requests = resource_list::of_pod_requests(pod);
    let allocatable = resource_list::parse(object::at(node, &["status", "allocatable"]));
    let mut texts = Vec::new();
    for resource in ["cpu", "memory"] {
        let of = |list: &ResourceList| list.get(resource).copied().unwrap_or_default();
        let (asked, present) = (of(&requests), of(&allocatable));
        if asked > present {
            let number = |quantity: Quantity| match resource {
                "cpu" => quantity.milli_value().unwrap_or(i64::MAX),
                _ => quantity.value().unwrap_or(i64::MAX),
            };
            let (asked, present) = (number(asked), number(present));
            texts.push(format!(
                "{resource}, requested: {asked}, allocatable: {present}"
            ));
        }
    }
    match texts.is_empty() {
        true => Ok(()),
        false => refuse(
            "NodeCapacity",
            format!(
                "node didn't have enough allocatable resources: {}",
                texts.join("; ")
            ),
        ),
    }
}

#[cfg(test)]
mod tests;
