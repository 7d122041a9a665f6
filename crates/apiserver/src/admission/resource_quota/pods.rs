//! The resources that Pods use, and the scopes to which Pods belong.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::evaluator::{Scope, one};
use crate::admission::resource_list::{self, Field, ResourceList};
use crate::kinds::defaults::qos_class;
use crate::object;

/// Resources of Pods that a quota can limit.
const RESOURCES: &[&str] = &[
    "count/pods",
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
];

/// Resources that each container must set if a quota limits them.
const REQUIRED: &[&str] = &[
    "cpu",
    "memory",
    "requests.cpu",
    "requests.memory",
    "limits.cpu",
    "limits.memory",
];

const HUGE_PAGES: &str = "hugepages-";
const REQUESTS: &str = "requests.";
/// The prefix of the names of devices that are requested like an extended resource.
const DEVICE_CLASS: &str = "deviceclass.resource.kubernetes.io/";

/// Reports whether `name` is the name of a resource that Pods use.
pub(super) fn counts(name: &str) -> bool {
    let requested = name.strip_prefix(REQUESTS);
    RESOURCES.contains(&name)
        || name.starts_with(HUGE_PAGES)
        || requested.is_some_and(|name| name.starts_with(HUGE_PAGES) || is_extended(name))
}

/// Reports whether a name is that of a resource that Kubernetes itself does not define.
fn is_extended(name: &str) -> bool {
    let is_foreign = name.contains('/') && !name.contains("kubernetes.io/");
    is_foreign || name.starts_with(DEVICE_CLASS)
}

/// Reports whether the run time of a Pod is limited.
pub(super) fn is_terminating(pod: &Value) -> bool {
    let deadline = object::at(pod, &["spec", "activeDeadlineSeconds"]).as_i64();
    deadline.is_some_and(|deadline| deadline >= 0)
}

/// Reports whether a Pod belongs to a scope.
pub(super) fn is_in_scope(scope: &Scope<'_>, pod: &Value) -> bool {
    let is_best_effort = || {
        let class = match object::text(pod, &["status", "qosClass"]) {
            "" => qos_class(pod),
            class => class,
        };
        class == "BestEffort"
    };
    match scope.name {
        "Terminating" => is_terminating(pod),
        "NotTerminating" => !is_terminating(pod),
        "BestEffort" => is_best_effort(),
        "NotBestEffort" => !is_best_effort(),
        "PriorityClass" => {
            let class = object::text(pod, &["spec", "priorityClassName"]);
            scope.selects(Some(class).filter(|class| !class.is_empty()))
        }
        "CrossNamespacePodAffinity" => has_cross_namespace_affinity(pod),
        _ => false,
    }
}

/// Reports whether an affinity of the Pod selects Pods of other namespaces.
fn has_cross_namespace_affinity(pod: &Value) -> bool {
    let is_cross = |term: &Value| {
        !object::items(term, &["namespaces"]).is_empty()
            || !object::at(term, &["namespaceSelector"]).is_null()
    };
    ["podAffinity", "podAntiAffinity"].into_iter().any(|kind| {
        let affinity = object::at(pod, &["spec", "affinity", kind]);
        let required = ["requiredDuringSchedulingIgnoredDuringExecution"];
        let preferred = ["preferredDuringSchedulingIgnoredDuringExecution"];
        let weighted = object::items(affinity, &preferred).iter();
        let mut weighted = weighted.map(|term| object::at(term, &["podAffinityTerm"]));
        object::items(affinity, &required).iter().any(is_cross) || weighted.any(is_cross)
    })
}

/// Checks that each container sets those of the limited resources that must be set.
pub(super) fn check_constraints(names: &[&str], pod: &Value) -> Result<(), String> {
    let has_pod_level = |field| {
        let list = object::at(pod, &["spec", "resources", field]).as_object();
        let mut names = list.into_iter().flatten();
        names.any(|(name, _)| resource_list::is_pod_level(name))
    };
    if has_pod_level("requests") || has_pod_level("limits") {
        return Ok(());
    }
    let mut missing: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for list in ["containers", "initContainers"] {
        for container in object::items(pod, &["spec", list]) {
            let of =
                |field: &str| resource_list::parse(object::at(container, &["resources", field]));
            let set = compute_usage(&of("requests"), &of("limits"));
            let required = names.iter().filter(|name| REQUIRED.contains(name));
            for name in required.filter(|name| !set.contains_key(**name)) {
                let containers = missing.entry(name).or_default();
                containers.insert(object::text(container, &["name"]));
            }
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let texts = missing.into_iter().map(|(name, containers)| {
        let containers: Vec<&str> = containers.into_iter().collect();
        format!("{name} for: {}", containers.join(","))
    });
    let texts: Vec<String> = texts.collect();
    Err(format!("must specify {}", texts.join("; ")))
}

/// Returns the resources that a Pod uses. A Pod that has ended counts only as an object.
pub(super) fn usage(pod: &Value, now: Timestamp) -> ResourceList {
    let mut usage = ResourceList::from([("count/pods".to_owned(), one())]);
    if !has_ended(pod, now) {
        let requests = resource_list::of_pod(pod, Field::Requests);
        let limits = resource_list::of_pod(pod, Field::Limits);
        usage.extend(compute_usage(&requests, &limits));
    }
    usage
}

/// Reports whether a Pod has ended, or should have ended and waits for a node that does not
/// respond.
fn has_ended(pod: &Value, now: Timestamp) -> bool {
    if matches!(
        object::text(pod, &["status", "phase"]),
        "Failed" | "Succeeded"
    ) {
        return true;
    }
    let deleted: Option<Timestamp> = object::meta(pod, "deletionTimestamp").parse().ok();
    let grace = object::at(pod, &["metadata", "deletionGracePeriodSeconds"]).as_i64();
    let end = deleted.zip(grace).and_then(|(deleted, grace)| {
        let grace = SignedDuration::from_secs(grace);
        deleted.checked_add(grace).ok()
    });
    end.is_some_and(|end| now > end)
}

/// Returns the resources for these requests and limits, by the names in quotas.
fn compute_usage(requests: &ResourceList, limits: &ResourceList) -> ResourceList {
    let mut usage = ResourceList::from([("pods".to_owned(), one())]);
    for name in ["cpu", "memory", "ephemeral-storage"] {
        if let Some(request) = requests.get(name) {
            usage.insert(name.to_owned(), *request);
            usage.insert(format!("{REQUESTS}{name}"), *request);
        }
        if let Some(limit) = limits.get(name) {
            usage.insert(format!("limits.{name}"), *limit);
        }
    }
    for (name, request) in requests {
        let is_huge_page = name.starts_with(HUGE_PAGES);
        if is_huge_page {
            usage.insert(name.clone(), *request);
        }
        if is_huge_page || is_extended(name) {
            usage.insert(format!("{REQUESTS}{name}"), *request);
        }
    }
    usage
}
