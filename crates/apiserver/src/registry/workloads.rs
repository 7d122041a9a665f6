//! Validation of workloads and of the Pod specs in them, with the messages of Kubernetes.

use opkit_apimachinery::names::check_dns_label;
use opkit_apimachinery::structural::{FieldError, FieldErrorKind};
use serde_json::{Value, json};

use crate::kinds::Kind;
use crate::object;

/// Workloads with a selector and a Pod template, and the name of the workload in messages. That of
/// ReplicaSets is a mistake of Kubernetes.
const WITH_TEMPLATE: &[(&str, &str)] = &[
    ("daemonsets.apps", "daemonset"),
    ("deployments.apps", "deployment"),
    ("replicasets.apps", "deployment"),
    ("statefulsets.apps", "statefulset"),
];

/// The rules for the status of a workload.
struct StatusRules {
    resource: &'static str,
    /// Fields that cannot be negative.
    counters: &'static [&'static str],
    /// Fields that cannot be greater than `status.replicas`.
    parts: &'static [&'static str],
    /// Message if more replicas are available than ready.
    available: &'static str,
}

const STATUS: &[StatusRules] = &[
    StatusRules {
        resource: "statefulsets.apps",
        counters: &[
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
            "observedGeneration",
            "collisionCount",
        ],
        parts: &[
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
        ],
        available: "cannot be greater than status.readyReplicas",
    },
    StatusRules {
        resource: "deployments.apps",
        counters: &[
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ],
        parts: &["updatedReplicas", "readyReplicas", "availableReplicas"],
        available: "cannot be greater than readyReplicas",
    },
    StatusRules {
        resource: "replicasets.apps",
        counters: &[
            "replicas",
            "fullyLabeledReplicas",
            "readyReplicas",
            "availableReplicas",
            "observedGeneration",
            "terminatingReplicas",
        ],
        parts: &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
        available: "cannot be greater than readyReplicas",
    },
];

/// Returns the path of the Pod spec in objects of the kind, if this module validates it.
fn pod_spec_path(kind: &Kind) -> Option<&'static [&'static str]> {
    let resource = kind.group_resource();
    if resource == "pods" {
        return Some(&["spec"]);
    }
    let mut known = WITH_TEMPLATE.iter();
    known
        .any(|(of, _)| *of == resource)
        .then_some(&["spec", "template", "spec"])
}

/// Reports whether an error of the schema is about a field for which this module has its own rule.
pub(super) fn is_own(kind: &Kind, error: &FieldError) -> bool {
    let Some(path) = pod_spec_path(kind) else {
        return false;
    };
    let path = path.join(".");
    let field = error.field.as_str();
    let in_containers = field
        .strip_prefix(path.as_str())
        .and_then(|rest| rest.strip_prefix(".containers["))
        .and_then(|rest| rest.split_once("]."));
    error.kind == FieldErrorKind::Required
        && (matches!(field, "spec" | "spec.template" | "spec.selector")
            || field == path
            || field == format!("{path}.containers")
            || in_containers.is_some_and(|(_, field)| matches!(field, "name" | "image")))
}

/// Returns the errors in the selector of a workload.
pub(super) fn selector_errors(kind: &Kind, object: &Value) -> Option<FieldError> {
    let resource = kind.group_resource();
    let (_, word) = WITH_TEMPLATE.iter().find(|(of, _)| *of == resource)?;
    let selector = object::at(object, &["spec", "selector"]);
    if selector.is_null() {
        return Some(FieldError::required("spec.selector", ""));
    }
    let is_empty = ["matchLabels", "matchExpressions"].iter().all(|field| {
        let value = object::at(selector, &[field]);
        value.as_object().is_none_or(serde_json::Map::is_empty)
            && value.as_array().is_none_or(Vec::is_empty)
    });
    is_empty.then(|| {
        let detail = format!("empty selector is invalid for {word}");
        FieldError::invalid("spec.selector", selector, detail)
    })
}

/// Returns the errors in the Pod spec of a Pod or workload.
pub(super) fn pod_spec_errors(kind: &Kind, object: &Value) -> Vec<FieldError> {
    let Some(path) = pod_spec_path(kind) else {
        return Vec::new();
    };
    let (spec, at) = (object::at(object, path), path.join("."));
    let mut errors = Vec::new();
    let containers = object::items(spec, &["containers"]);
    if containers.is_empty() {
        errors.push(FieldError::required(format!("{at}.containers"), ""));
    }
    let mut names: Vec<&str> = Vec::new();
    for (list, required) in [("initContainers", false), ("containers", true)] {
        let own = match required {
            true => containers,
            false => object::items(spec, &[list]),
        };
        for (index, container) in own.iter().enumerate() {
            let at = format!("{at}.{list}[{index}]");
            errors.extend(container_errors(&at, container, &names));
            names.push(object::text(container, &["name"]));
        }
    }
    let policy = object::at(spec, &["restartPolicy"]);
    let is_other = policy.as_str().is_some_and(|policy| policy != "Always");
    if is_other && path.len() > 1 {
        let field = format!("{at}.restartPolicy");
        errors.push(FieldError::not_supported(field, policy, &["Always"]));
    }
    errors
}

/// Returns the errors in a container. `names` are the names of the containers before it.
fn container_errors(at: &str, container: &Value, names: &[&str]) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = object::text(container, &["name"]);
    let field = format!("{at}.name");
    if name.is_empty() {
        errors.push(FieldError::required(field, ""));
    } else if let Err(rule) = check_dns_label(name) {
        errors.push(FieldError::invalid(field, &json!(name), rule));
    } else if names.contains(&name) {
        errors.push(FieldError::duplicate(field, &json!(name)));
    }
    if object::text(container, &["image"]).is_empty() {
        errors.push(FieldError::required(format!("{at}.image"), ""));
    }
    for (index, port) in object::items(container, &["ports"]).iter().enumerate() {
        let field = format!("{at}.ports[{index}].containerPort");
        let number = object::at(port, &["containerPort"]);
        match number.as_i64() {
            // The schema requires the field.
            None => {}
            Some(0) => errors.push(FieldError::required(field, "")),
            Some(1..=65_535) => {}
            Some(_) => {
                let detail = "must be between 1 and 65535, inclusive";
                errors.push(FieldError::invalid(field, number, detail));
            }
        }
    }
    errors
}

/// Returns the errors in the status of a workload.
pub(super) fn status_errors(kind: &Kind, object: &Value) -> Vec<FieldError> {
    let resource = kind.group_resource();
    let Some(rules) = STATUS.iter().find(|rules| rules.resource == resource) else {
        return Vec::new();
    };
    let count = |field: &str| object::int(object, &["status", field]);
    let invalid = |field: &str, detail: &str| {
        FieldError::invalid(format!("status.{field}"), &json!(count(field)), detail)
    };
    let negative = rules.counters.iter().filter(|field| count(field) < 0);
    let mut errors: Vec<FieldError> = negative
        .map(|field| invalid(field, "must be greater than or equal to 0"))
        .collect();
    let parts = rules.parts.iter();
    let greater = parts.filter(|field| count(field) > count("replicas"));
    errors.extend(greater.map(|field| invalid(field, "cannot be greater than status.replicas")));
    if count("availableReplicas") > count("readyReplicas") {
        errors.push(invalid("availableReplicas", rules.available));
    }
    errors
}
