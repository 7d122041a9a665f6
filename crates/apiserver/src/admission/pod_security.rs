//! The plugin `PodSecurity`: checks Pods by the Pod Security Standards that the labels of their
//! namespace select.
//!
//! As in a server without a configuration of the plugin, a namespace without labels is
//! `privileged`, and no user, namespace or runtime class is exempt.

mod checks;
mod policy;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use opkit_apimachinery::structural::FieldError;
use serde_json::Value;

use crate::kinds::Kind;
use crate::object;
use checks::{Pod, Violation, evaluate};
use policy::{Level, LevelVersion, PREFIX, Policy};

/// Maximum number of Pods that are checked when a namespace gets a stricter level.
const PODS_MAX: usize = 3000;

/// Subresources of a Pod whose requests contain no Pod.
const IGNORED: &[&str] = &[
    "exec",
    "attach",
    "binding",
    "eviction",
    "log",
    "portforward",
    "proxy",
    "status",
];

/// The result of a check: the reason for which a request is refused, warnings for the client, and
/// audit annotations.
#[derive(Debug, Default, Eq, PartialEq)]
pub(super) struct Outcome {
    pub(super) forbidden: Option<String>,
    pub(super) warnings: Vec<String>,
    pub(super) annotations: Vec<(String, String)>,
}

impl Outcome {
    fn annotate(&mut self, key: &str, value: impl Into<String>) {
        self.annotations
            .push((format!("{PREFIX}{key}"), value.into()));
    }
}

/// Reports whether the objects of a kind are Pods or have a template of Pods.
pub(super) fn applies_to(kind: &Kind) -> bool {
    matches!(
        (kind.group.as_str(), kind.plural.as_str()),
        ("", "pods" | "podtemplates" | "replicationcontrollers")
            | (
                "apps",
                "replicasets" | "deployments" | "statefulsets" | "daemonsets"
            )
            | ("batch", "jobs" | "cronjobs")
    )
}

/// Returns the Pod of a Pod or of an object with a template, and whether the levels that the
/// namespace enforces apply to it. Returns `None` if the object has no Pod.
fn pod_of<'a>(kind: &Kind, object: &'a Value) -> Option<(Pod<'a>, bool)> {
    let (holder, is_pod): (&Value, bool) = match (kind.group.as_str(), kind.plural.as_str()) {
        ("", "pods") => (object, true),
        ("", "podtemplates") => (object::at(object, &["template"]), false),
        ("", "replicationcontrollers")
        | ("apps", "replicasets" | "deployments" | "statefulsets" | "daemonsets")
        | ("batch", "jobs") => (object::at(object, &["spec", "template"]), false),
        ("batch", "cronjobs") => {
            let path = ["spec", "jobTemplate", "spec", "template"];
            (object::at(object, &path), false)
        }
        _ => return None,
    };
    let pod = Pod {
        metadata: object::at(holder, &["metadata"]),
        spec: object::at(holder, &["spec"]),
    };
    holder.is_object().then_some((pod, is_pod))
}

/// Checks a Pod or an object with a template that is to be stored in `namespace`.
pub(super) fn check(
    kind: &Kind,
    subresource: &str,
    namespace: &Value,
    object: &Value,
    old: Option<&Value>,
) -> Outcome {
    let mut outcome = Outcome::default();
    let Some((pod, is_pod)) = pod_of(kind, object) else {
        return outcome;
    };
    let is_ignored = match is_pod {
        true => IGNORED.contains(&subresource),
        false => !subresource.is_empty(),
    };
    if is_ignored {
        return outcome;
    }
    let (policy, errors) = Policy::of_labels(object::labels(namespace));
    let is_privileged = |mode: LevelVersion| mode.level == Level::Privileged;
    let is_open = errors.is_empty() && is_privileged(policy.audit) && is_privileged(policy.warn);
    if is_open && !is_pod {
        return outcome;
    }
    if is_open && is_privileged(policy.enforce) {
        outcome.annotate("enforce-policy", "privileged:latest");
        return outcome;
    }
    if is_pod && old.is_some_and(|old| !changes_images(object, old)) {
        return outcome;
    }
    if !errors.is_empty() {
        let errors = aggregate(&errors);
        outcome.annotate("error", format!("Failed to parse policy: {errors}"));
    }
    if is_pod {
        outcome.annotate("enforce-policy", policy.enforce.to_string());
        if let Some(details) = details(&evaluate(policy.enforce, &pod)) {
            let level = policy.enforce;
            outcome.forbidden = Some(format!("violates PodSecurity \"{level}\": {details}"));
        }
    }
    if let Some(details) = details(&evaluate(policy.audit, &pod)) {
        let level = policy.audit;
        let text = format!("would violate PodSecurity \"{level}\": {details}");
        outcome.annotate("audit-violations", text);
    }
    if outcome.forbidden.is_none()
        && let Some(details) = details(&evaluate(policy.warn, &pod))
    {
        let level = policy.warn;
        let text = format!("would violate PodSecurity \"{level}\": {details}");
        outcome.warnings.push(text);
    }
    outcome
}

/// Checks the labels of a namespace that is to be stored. Returns the errors in the labels, or
/// warnings about the Pods in the namespace that violate the level that the namespace enforces from
/// now on.
pub(super) fn check_namespace(
    new: &Value,
    old: Option<&Value>,
    pods: impl FnOnce() -> Vec<Arc<Value>>,
) -> Result<Vec<String>, Vec<FieldError>> {
    let (policy, errors) = Policy::of_labels(object::labels(new));
    let Some(old) = old else {
        return match errors.is_empty() {
            true => Ok(Vec::new()),
            false => Err(errors),
        };
    };
    let (before, old_errors) = Policy::of_labels(object::labels(old));
    let texts =
        |errors: &[FieldError]| -> Vec<String> { errors.iter().map(ToString::to_string).collect() };
    if !errors.is_empty() && texts(&errors) != texts(&old_errors) {
        return Err(errors);
    }
    let (enforce, before) = (policy.enforce, before.enforce);
    let is_relaxed = enforce.version == before.version && enforce.level <= before.level;
    if enforce.level == Level::Privileged || is_relaxed {
        return Ok(Vec::new());
    }
    Ok(violating_pods(object::name(new), enforce, pods()))
}

/// Returns warnings about the Pods of a namespace that violate a level.
fn violating_pods(namespace: &str, enforce: LevelVersion, pods: Vec<Arc<Value>>) -> Vec<String> {
    let pods = prioritized(pods);
    let mut warnings = Vec::new();
    // The first name and the number of the Pods with the same violations.
    let mut violations: BTreeMap<String, (&str, usize)> = BTreeMap::new();
    for pod in pods.iter().take(PODS_MAX) {
        let found = evaluate(
            enforce,
            &Pod {
                metadata: object::at(pod, &["metadata"]),
                spec: object::at(pod, &["spec"]),
            },
        );
        if found.is_empty() {
            continue;
        }
        let reasons: Vec<&str> = found.iter().map(|found| found.reason.as_str()).collect();
        let name = object::name(pod);
        let entry = violations.entry(reasons.join(", ")).or_insert((name, 0));
        entry.0 = entry.0.min(name);
        entry.1 += 1;
    }
    if pods.len() > PODS_MAX {
        warnings.push(format!(
            "new PodSecurity enforce level only checked against the first {PODS_MAX} of {} existing \
             pods",
            pods.len()
        ));
    }
    if !violations.is_empty() {
        warnings.push(format!(
            "existing pods in namespace {namespace:?} violate the new PodSecurity enforce level \
             \"{enforce}\""
        ));
    }
    let mut texts: Vec<String> = violations
        .into_iter()
        .map(|(reasons, (name, count))| match count {
            1 => format!("{name}: {reasons}"),
            2 => format!("{name} (and 1 other pod): {reasons}"),
            count => format!("{name} (and {} other pods): {reasons}", count - 1),
        })
        .collect();
    texts.sort();
    warnings.extend(texts);
    warnings
}

/// Returns the Pods, in an order in which one Pod of each controller comes before the other Pods of
/// the same controllers.
fn prioritized(pods: Vec<Arc<Value>>) -> Vec<Arc<Value>> {
    let mut controllers: HashSet<String> = HashSet::new();
    let (mut first, rest): (Vec<_>, Vec<_>) = pods.into_iter().partition(|pod| {
        let mut owners = object::items(pod, &["metadata", "ownerReferences"]).iter();
        let controller = owners.find(|owner| object::at(owner, &["controller"]) == true);
        controller.is_none_or(|owner| {
            let uid = object::text(owner, &["uid"]);
            controllers.insert(uid.to_owned())
        })
    });
    first.extend(rest);
    first
}

/// Reports whether an update of a Pod changes an image or adds a container.
fn changes_images(new: &Value, old: &Value) -> bool {
    let images = |pod: &Value, list: &str| -> Vec<String> {
        let containers = object::items(pod, &["spec", list]).iter();
        containers
            .map(|container| object::text(container, &["image"]).to_owned())
            .collect()
    };
    let lists = ["containers", "initContainers"];
    if lists
        .iter()
        .any(|list| images(new, list) != images(old, list))
    {
        return true;
    }
    let path = ["spec", "ephemeralContainers"];
    object::items(new, &path).iter().any(|container| {
        let field = |container, field: &str| object::text(container, &[field]).to_owned();
        let mut before = object::items(old, &path).iter();
        let before = before.find(|before| field(before, "name") == field(container, "name"));
        before.is_none_or(|before| field(before, "image") != field(container, "image"))
    })
}

/// Returns the violations as one text, or `None` if there are none.
fn details(violations: &[Violation]) -> Option<String> {
    if violations.is_empty() {
        return None;
    }
    let texts: Vec<String> = violations
        .iter()
        .map(|violation| match violation.detail.as_str() {
            "" => violation.reason.clone(),
            detail => format!("{} ({detail})", violation.reason),
        })
        .collect();
    Some(texts.join(", "))
}

/// Returns several errors as the text of one.
fn aggregate(errors: &[FieldError]) -> String {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    super::aggregate(&texts)
}

#[cfg(test)]
mod tests;
