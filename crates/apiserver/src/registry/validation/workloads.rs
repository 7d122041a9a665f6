//! Validation of Deployments, ReplicaSets, ReplicationControllers, StatefulSets and DaemonSets.

use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::{claims, format, pods, selectors};
use crate::object;

const MISMATCH: &str = "`selector` does not match template `labels`";
const RANGE: &str = "must be greater than or equal to 0";

/// Adds the errors in a Deployment.
pub(super) fn deployment(object: &Field<'_>, errors: &mut Errors) {
    let spec = object.get("spec");
    errors.not_negative(&spec.get("replicas"));
    selector(&spec, "deployment", errors);
    replica_template(&spec, errors);
    strategy(&spec.get("strategy"), errors);
    errors.not_negative(&spec.get("minReadySeconds"));
    errors.not_negative(&spec.get("revisionHistoryLimit"));
    let deadline = spec.get("progressDeadlineSeconds");
    if deadline.is_set() {
        errors.not_negative(&deadline);
        if deadline.int() <= spec.get("minReadySeconds").int() {
            errors.invalid(&deadline, "must be greater than minReadySeconds");
        }
    }
}

/// Adds the errors in a ReplicaSet.
pub(super) fn replica_set(object: &Field<'_>, errors: &mut Errors) {
    let spec = object.get("spec");
    errors.not_negative(&spec.get("replicas"));
    errors.not_negative(&spec.get("minReadySeconds"));
    // The name of the workload in this message is a mistake of Kubernetes.
    selector(&spec, "deployment", errors);
    replica_template(&spec, errors);
}

/// Adds the errors in the selector of a workload.
fn selector(spec: &Field<'_>, workload: &str, errors: &mut Errors) {
    let selector = spec.get("selector");
    if !selector.is_set() {
        return errors.required(&selector, "");
    }
    selectors::selector(&selector, errors);
    if selectors::is_empty(&selector) {
        let detail = format!("empty selector is invalid for {workload}");
        errors.invalid(&selector, &detail);
    }
}

/// Adds the errors in the Pod template of a Deployment or ReplicaSet.
fn replica_template(spec: &Field<'_>, errors: &mut Errors) {
    let (selector, template) = (spec.get("selector"), spec.get("template"));
    match selects(spec) {
        None => return errors.invalid(&selector, "invalid label selector"),
        Some(false) => mismatch(&template, errors),
        Some(true) => {}
    }
    pods::template(&template, None, errors);
    always_restarts(&template, "ReplicaSet", errors);
}

/// Reports whether the selector of a workload matches the labels of its Pod template, or selects
/// every Pod. Returns `None` if the selector is malformed.
fn selects(spec: &Field<'_>) -> Option<bool> {
    let selector = spec.get("selector");
    let labels = spec.at(&["template", "metadata", "labels"]);
    let matches = selectors::matches(&selector, &labels)?;
    Some(matches || selector.is_set() && selectors::is_empty(&selector))
}

fn mismatch(template: &Field<'_>, errors: &mut Errors) {
    errors.invalid(&template.at(&["metadata", "labels"]), MISMATCH);
}

/// Adds errors if the Pods of a workload would end on their own.
fn always_restarts(template: &Field<'_>, workload: &str, errors: &mut Errors) {
    let spec = template.get("spec");
    if !spec.is_set() {
        return;
    }
    errors.supported(&spec.get("restartPolicy"), &["Always"]);
    let deadline = spec.get("activeDeadlineSeconds");
    if deadline.is_set() {
        let detail = format!("activeDeadlineSeconds in {workload} is not Supported");
        errors.forbidden(&deadline, &detail);
    }
}

fn strategy(strategy: &Field<'_>, errors: &mut Errors) {
    if !strategy.is_set() {
        return;
    }
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").text() {
        "Recreate" => {
            if rolling.is_set() {
                let detail = "may not be specified when strategy `type` is 'Recreate'";
                errors.forbidden(&rolling, detail);
            }
        }
        "RollingUpdate" => {
            if !rolling.is_set() {
                let detail = "this should be defaulted and never be nil";
                return errors.required(&rolling, detail);
            }
            let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
            bound(&unavailable, errors);
            bound(&surge, errors);
            if amount(&unavailable) == 0 && amount(&surge) == 0 {
                errors.invalid(&unavailable, "may not be 0 when `maxSurge` is 0");
            }
            at_most_all(&unavailable, errors);
        }
        _ => {
            let value = printed_strategy(strategy);
            unsupported(strategy, &value, &["Recreate", "RollingUpdate"], errors);
        }
    }
}

/// Adds an error with a value that is printed as the internal type of Kubernetes.
fn unsupported(field: &Field<'_>, printed: &str, supported: &[&str], errors: &mut Errors) {
    errors.not_supported(field, supported);
    if let Some(error) = errors.0.last_mut() {
        error.detail = error.detail.replacen("\"\"", printed, 1);
    }
}

fn printed_strategy(strategy: &Field<'_>) -> String {
    let rolling = strategy.get("rollingUpdate");
    let rolling = match rolling.is_set() {
        true => format!(
            "{{\"MaxUnavailable\":{},\"MaxSurge\":{}}}",
            rolling.get("maxUnavailable").value,
            rolling.get("maxSurge").value
        ),
        false => "null".to_owned(),
    };
    let type_ = json!(strategy.get("type").text());
    format!("{{\"Type\":{type_},\"RollingUpdate\":{rolling}}}")
}

/// Adds the errors in a number of Pods, which is an integer or a percentage.
pub(super) fn bound(field: &Field<'_>, errors: &mut Errors) {
    match field.value {
        Value::String(text) => {
            for rule in format::percent(text) {
                errors.invalid(field, &rule);
            }
        }
        _ if field.int() < 0 => errors.invalid_int(field, RANGE),
        _ => {}
    }
}

/// Adds an error if a percentage is greater than 100%.
pub(super) fn at_most_all(field: &Field<'_>, errors: &mut Errors) {
    if format::percentage(field.text()).is_some_and(|percent| percent > 100) {
        errors.invalid(field, "must not be greater than 100%");
    }
}

/// Returns the number of an integer or percentage.
fn amount(field: &Field<'_>) -> i64 {
    match field.value.as_str() {
        Some(text) => format::percentage(text)
            .or_else(|| text.parse().ok())
            .unwrap_or_default(),
        None => field.int(),
    }
}

/// Adds the errors in a ReplicationController.
pub(super) fn replication_controller(object: &Field<'_>, errors: &mut Errors) {
    let spec = object.get("spec");
    let (selector, template) = (spec.get("selector"), spec.get("template"));
    let labels = template.at(&["metadata", "labels"]);
    errors.not_negative(&spec.get("minReadySeconds"));
    if selector.is_empty() {
        errors.required(&selector, "");
    }
    errors.not_negative(&spec.get("replicas"));
    if !template.is_set() {
        return errors.required(&template, "");
    }
    let mut selected = selector.entries();
    if !selected.all(|(key, value)| labels.get(key).value == value.value) {
        mismatch(&template, errors);
    }
    pods::template(&template, None, errors);
    always_restarts(&template, "ReplicationController", errors);
}

/// Adds the errors in a StatefulSet. An update does not validate the name of the Service and the
/// claim templates, which cannot change.
pub(super) fn stateful_set(object: &Field<'_>, is_update: bool, errors: &mut Errors) {
    let spec = object.get("spec");
    let management = spec.get("podManagementPolicy");
    match management.text() {
        _ if !spec.is_set() => {}
        "" => errors.required(&management, ""),
        "OrderedReady" | "Parallel" => {}
        _ => errors.invalid(&management, "must be 'OrderedReady' or 'Parallel'"),
    }
    stateful_strategy(&spec.get("updateStrategy"), errors);
    let retention = spec.get("persistentVolumeClaimRetentionPolicy");
    for name in ["whenDeleted", "whenScaled"] {
        if retention.is_set() {
            errors.supported(&retention.get(name), &["Retain", "Delete"]);
        }
    }
    let templates = spec.get("volumeClaimTemplates");
    if !is_update {
        for claim in templates.items() {
            claims::spec(&claim.get("spec"), errors);
        }
    }
    errors.not_negative(&spec.get("replicas"));
    errors.not_negative(&spec.get("minReadySeconds"));
    errors.not_negative(&spec.at(&["ordinals", "start"]));
    let service = spec.get("serviceName");
    if !is_update && !service.is_empty() {
        errors.rules(&service, format::dns_label(service.text()));
    }
    selector(&spec, "statefulset", errors);
    let template = spec.get("template");
    match selects(&spec) {
        None => errors.invalid(&spec.get("selector"), ""),
        Some(is_selected) => {
            if !is_selected {
                mismatch(&template, errors);
            }
            stateful_template(&template, &templates, errors);
        }
    }
    always_restarts(&template, "StatefulSet", errors);
}

/// Adds the errors in the Pod template of a StatefulSet, which sets the host name of its Pods.
fn stateful_template(template: &Field<'_>, claims: &Field<'_>, errors: &mut Errors) {
    let mut value = template.value.clone();
    for field in ["hostname", "subdomain"] {
        object::set(&mut value, &["spec", field], Value::Null);
    }
    let template = Field::new(template.path.clone(), &value);
    pods::template(&template, Some(claims), errors);
    // Kubernetes validates these fields twice.
    let metadata = template.get("metadata");
    let labels = metadata.get("labels").renamed(template.join("labels"));
    selectors::labels(&labels, errors);
    let notes = metadata.get("annotations");
    selectors::annotations(&notes.renamed(template.join("annotations")), errors);
}

fn stateful_strategy(strategy: &Field<'_>, errors: &mut Errors) {
    let rolling = strategy.get("rollingUpdate");
    let (partition, unavailable) = (rolling.get("partition"), rolling.get("maxUnavailable"));
    let printed = format!(
        "{{\"Partition\":{},\"MaxUnavailable\":{}}}",
        partition.int(),
        unavailable.value
    );
    match strategy.get("type").text() {
        "" if strategy.is_set() => errors.required(strategy, ""),
        "" => {}
        "OnDelete" => {
            if rolling.is_set() {
                let detail = "only allowed for updateStrategy 'RollingUpdate'";
                errors.invalid_printed(&rolling.path, &printed, detail);
            }
        }
        "RollingUpdate" => {
            // `maxUnavailable` belongs to a feature that is disabled by default.
            errors.not_negative(&partition);
        }
        type_ => {
            let rolling = match rolling.is_set() {
                true => printed.as_str(),
                false => "null",
            };
            let value = format!("{{\"Type\":{},\"RollingUpdate\":{rolling}}}", json!(type_));
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            errors.invalid_printed(&strategy.path, &value, detail);
        }
    }
}

/// Adds the errors in a DaemonSet.
pub(super) fn daemon_set(object: &Field<'_>, errors: &mut Errors) {
    let spec = object.get("spec");
    let (selector, template) = (spec.get("selector"), spec.get("template"));
    selectors::selector(&selector, errors);
    let labels = template.at(&["metadata", "labels"]);
    if selectors::matches(&selector, &labels) == Some(false) {
        mismatch(&template, errors);
    }
    if selector.is_set() && selectors::is_empty(&selector) {
        errors.invalid(&selector, "empty selector is invalid for daemonset");
    }
    pods::template(&template, None, errors);
    always_restarts(&template, "DaemonSet", errors);
    errors.not_negative(&spec.get("minReadySeconds"));
    daemon_strategy(&spec.get("updateStrategy"), errors);
    errors.not_negative(&spec.get("revisionHistoryLimit"));
}

fn daemon_strategy(strategy: &Field<'_>, errors: &mut Errors) {
    if !strategy.is_set() {
        return;
    }
    let rolling = strategy.get("rollingUpdate");
    match strategy.get("type").text() {
        "OnDelete" => {}
        "RollingUpdate" => {
            if !rolling.is_set() {
                return errors.required(&rolling, "");
            }
            let (unavailable, surge) = (rolling.get("maxUnavailable"), rolling.get("maxSurge"));
            bound(&unavailable, errors);
            bound(&surge, errors);
            at_most_all(&unavailable, errors);
            at_most_all(&surge, errors);
            match (amount(&unavailable) != 0, amount(&surge) != 0) {
                (true, true) => {
                    let detail = "may not be set when maxUnavailable is non-zero";
                    errors.invalid(&surge, detail);
                }
                (false, false) => {
                    errors.required(&unavailable, "cannot be 0 when maxSurge is 0");
                }
                _ => {}
            }
        }
        _ => {
            let value = printed_strategy(strategy);
            unsupported(strategy, &value, &["RollingUpdate", "OnDelete"], errors);
        }
    }
}
