//! The cells of nodes, volumes, quotas, classes and role bindings.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::cell::{format_selector, items, print, string};

/// Returns the status of a node: `Ready`, `NotReady` or `Unknown`, followed by `SchedulingDisabled`
/// if the node is cordoned.
pub(super) fn node_status(node: &Value) -> String {
    let ready = items(node, ".status.conditions")
        .iter()
        .rfind(|c| c["type"] == "Ready");
    let status = match ready {
        Some(condition) if condition["status"] == "True" => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    match node.pointer("/spec/unschedulable") {
        Some(Value::Bool(true)) => format!("{status},SchedulingDisabled"),
        _ => status.to_owned(),
    }
}

/// Returns the roles of a node, from its labels.
pub(super) fn node_roles(node: &Value) -> String {
    let labels = node
        .pointer("/metadata/labels")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let roles: BTreeSet<&str> = labels
        .filter_map(
            |(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
                Some(role) => Some(role),
                None => (key == "kubernetes.io/role").then(|| value.as_str().unwrap_or_default()),
            },
        )
        .filter(|role| !role.is_empty())
        .collect();
    roles.into_iter().collect::<Vec<_>>().join(",")
}

/// Returns kernel version and architecture of a node.
pub(super) fn kernel(node: &Value) -> String {
    let version = match string(node, ".status.nodeInfo.kernelVersion") {
        "" => "<unknown>",
        version => version,
    };
    match string(node, ".status.nodeInfo.architecture") {
        "" => version.to_owned(),
        architecture => format!("{version} ({architecture})"),
    }
}

/// Returns the phase in the status of an object, or `Terminating` if the object is being deleted.
pub(super) fn phase(object: &Value) -> String {
    match string(object, ".metadata.deletionTimestamp") {
        "" => string(object, ".status.phase").to_owned(),
        _ => "Terminating".to_owned(),
    }
}

/// Returns the abbreviations of access modes in the order of the API server, such as `RWO,ROX`.
pub(super) fn access_modes(modes: &[Value]) -> String {
    const SHORT: [(&str, &str); 4] = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let has = |mode: &str| modes.iter().any(|m| m.as_str() == Some(mode));
    let short: Vec<&str> = SHORT
        .iter()
        .filter(|(mode, _)| has(mode))
        .map(|(_, short)| *short)
        .collect();
    short.join(",")
}

/// Returns the name of a class, followed by ` (default)` if its `annotation` is `true`.
pub(super) fn default_class(class: &Value, annotation: &str) -> String {
    let name = string(class, ".metadata.name");
    let annotations = class.pointer("/metadata/annotations");
    match annotations.and_then(|annotations| annotations.get(annotation)) {
        Some(value) if value == "true" => format!("{name} (default)"),
        _ => name.to_owned(),
    }
}

/// Returns the used and hard amounts of a quota. If `limits` is true, only resources named
/// `limits.*` are included, otherwise only all other resources.
pub(super) fn quota(quota: &Value, limits: bool) -> String {
    let hard = quota.pointer("/status/hard").and_then(Value::as_object);
    let parts: Vec<String> = hard
        .into_iter()
        .flat_map(Map::iter)
        .filter(|(name, _)| name.starts_with("limits.") == limits)
        .map(|(name, hard)| {
            let used = quota
                .pointer("/status/used")
                .and_then(|used| used.get(name));
            format!(
                "{name}: {}/{}",
                used.map_or("0".to_owned(), print),
                print(hard)
            )
        })
        .collect();
    parts.join(", ")
}

/// Returns the names of the subjects of one kind in a role binding. The name of a service account
/// includes its namespace.
pub(super) fn subjects(binding: &Value, kind: &str) -> String {
    let subjects: Vec<String> = items(binding, ".subjects")
        .iter()
        .filter(|subject| subject["kind"] == kind)
        .map(|subject| match string(subject, ".namespace") {
            "" => string(subject, ".name").to_owned(),
            namespace => format!("{namespace}/{}", string(subject, ".name")),
        })
        .collect();
    subjects.join(", ")
}

/// Returns `namespace/name` of the Service of an APIService, or `Local` if the APIService has no
/// Service.
pub(super) fn api_service(object: &Value) -> String {
    match object.pointer("/spec/service") {
        Some(service) if service.is_object() => {
            format!(
                "{}/{}",
                string(service, ".namespace"),
                string(service, ".name")
            )
        }
        _ => "Local".to_owned(),
    }
}

/// Returns the status of the condition `Available` of an APIService. A status other than `True` is
/// followed by the reason.
pub(super) fn api_service_available(object: &Value) -> String {
    let condition = items(object, ".status.conditions")
        .iter()
        .find(|c| c["type"] == "Available");
    let Some(condition) = condition else {
        return "Unknown".to_owned();
    };
    match (string(condition, ".status"), string(condition, ".reason")) {
        (status @ "True", _) | (status, "") => status.to_owned(),
        (status, reason) => format!("{status} ({reason})"),
    }
}

/// Returns the conditions of a certificate signing request.
pub(super) fn csr_condition(request: &Value) -> String {
    let has = |type_: &str| {
        items(request, ".status.conditions")
            .iter()
            .any(|c| c["type"] == type_)
    };
    let mut status = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    }
    .to_owned();
    if has("Failed") {
        status.push_str(",Failed");
    }
    if !string(request, ".status.certificate").is_empty() {
        status.push_str(",Issued");
    }
    status
}

/// Returns the states of a ResourceClaim: allocated, reserved, being deleted or pending.
pub(super) fn resource_claim_state(claim: &Value) -> String {
    let deleted = !string(claim, ".metadata.deletionTimestamp").is_empty();
    let allocated = claim.pointer("/status/allocation").is_some();
    let reserved = allocated && !items(claim, ".status.reservedFor").is_empty();
    let states = [
        ("deleted", deleted),
        ("pending", !allocated && !deleted),
        ("allocated", allocated),
        ("reserved", reserved),
    ];
    let holding: Vec<&str> = states
        .iter()
        .filter(|(_, is)| *is)
        .map(|(state, _)| *state)
        .collect();
    holding.join(",")
}

/// Returns the parameter reference of an admission policy binding: `namespace/name`, with `*` for
/// any namespace, or the selector. The selector is in the syntax of kubectl, while a real server
/// prints it as a Go value.
pub(super) fn param_reference(binding: &Value) -> Option<String> {
    let reference = binding.pointer("/spec/paramRef")?;
    match (string(reference, ".namespace"), string(reference, ".name")) {
        (_, "") => reference.get("selector").map(format_selector),
        ("", name) => Some(format!("*/{name}")),
        (namespace, name) => Some(format!("{namespace}/{name}")),
    }
}
