//! Validation of Jobs.

mod policies;

use serde_json::{Value, json};

use super::field::{Errors, Field};
use super::{format, pods, selectors};
use crate::object;

/// Limits of a Job whose Pods have indexes.
const PARALLELISM_MAX: i64 = 100_000;
const FAILED_INDEXES_MAX: i64 = 100_000;
/// Number of completions above which the limits for parallelism and failed indexes are lower.
const COMPLETIONS_SOFT_MAX: i64 = 100_000;
const SOFT_MAX: i64 = 10_000;
const INDEXED: &str = "requires indexed completion mode";

/// Adds the errors in a Job.
pub(super) fn job(object: &Field<'_>, errors: &mut Errors) {
    let (metadata, spec) = (object.get("metadata"), object.get("spec"));
    generated_selector(&metadata, &spec, errors);
    job_spec(&spec, errors);
    let selector = spec.get("selector");
    if selector.is_set() {
        selectors::selector(&selector, errors);
    } else {
        errors.required(&selector, "");
    }
    let labels = spec.at(&["template", "metadata", "labels"]);
    if selectors::matches(&selector, &labels) == Some(false) {
        errors.invalid(&labels, "`selector` does not match template `labels`");
    }
    let completions = spec.get("completions").int();
    if spec.get("completionMode").text() == "Indexed" && completions > 0 {
        let name = metadata.get("name");
        let host = format!("{}-{}", name.text(), completions - 1);
        if !format::dns_label(&host).is_empty() {
            let detail = format!("will not able to create pod with invalid DNS label: {host}");
            errors.invalid_text(&name, &detail);
        }
    }
}

/// Adds the errors in a selector that the server should have generated.
fn generated_selector(metadata: &Field<'_>, spec: &Field<'_>, errors: &mut Errors) {
    let selector = spec.get("selector");
    if spec.get("manualSelector").is_true() || !selector.is_set() {
        return;
    }
    let labels = spec.at(&["template", "metadata", "labels"]);
    let (uid, name) = (metadata.get("uid").text(), metadata.get("name").text());
    let expected = [
        ("controller-uid", uid),
        ("job-name", name),
        ("batch.kubernetes.io/controller-uid", uid),
        ("batch.kubernetes.io/job-name", name),
    ];
    for (key, value) in expected {
        let label = labels.get(key);
        let path = format!("{}[{key}]", labels.path);
        let detail = format!("must be '{value}'");
        if !label.is_set() {
            errors.required(&label.renamed(path), &detail);
        } else if label.text() != value {
            errors.invalid_value(path, labels.value.clone(), &detail);
        }
    }
    let expected: serde_json::Map<String, Value> = expected
        .iter()
        .map(|(key, value)| ((*key).to_owned(), json!(value)))
        .collect();
    let expected = Value::Object(expected);
    if selectors::matches(&selector, &Field::root(&expected)) == Some(false) {
        errors.invalid(&selector, "`selector` not auto-generated");
    }
}

/// Adds the errors in the spec of a Job, or in that of the Jobs of a CronJob.
pub(super) fn job_spec(spec: &Field<'_>, errors: &mut Errors) {
    for name in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        errors.not_negative(&spec.get(name));
    }
    let (per_index, failed) = (
        spec.get("backoffLimitPerIndex"),
        spec.get("maxFailedIndexes"),
    );
    if failed.is_set() && !per_index.is_set() {
        errors.required(&per_index, "when maxFailedIndexes is specified");
    }
    let manager = spec.get("managedBy");
    if manager.is_set() {
        format::domain_prefixed_path(&manager, errors);
        errors.not_longer(&manager, 63);
    }
    completion_mode(spec, errors);
    let policy = spec.get("podFailurePolicy");
    if policy.is_set() {
        policies::pod_failure_policy(spec, &policy, errors);
    }
    let success = spec.get("successPolicy");
    if success.is_set() {
        match spec.get("completionMode").text() {
            "Indexed" => policies::success_policy(spec, &success, errors),
            _ => {
                let printed = policies::printed_success_policy(&success);
                errors.invalid_printed(&success.path, &printed, INDEXED);
            }
        }
    }
    let replacement = spec.get("podReplacementPolicy");
    match policy.is_set() {
        true => errors.supported_if_set(&replacement, &["Failed"]),
        false => errors.supported_if_set(&replacement, &["Failed", "TerminatingOrFailed"]),
    }
    let template = spec.get("template");
    pods::template(&template, None, errors);
    let restart = template.at(&["spec", "restartPolicy"]);
    match restart.text() {
        "Always" | "" => {
            errors.required(&restart, "valid values: \"OnFailure\", \"Never\"");
        }
        "OnFailure" if policy.is_set() => {
            let detail = "only \"Never\" is supported when podFailurePolicy is specified";
            errors.invalid(&restart, detail);
        }
        _ => errors.supported(&restart, &["OnFailure", "Never"]),
    }
}

fn completion_mode(spec: &Field<'_>, errors: &mut Errors) {
    let mode = spec.get("completionMode");
    let (parallelism, completions) = (spec.get("parallelism"), spec.get("completions"));
    let (per_index, failed) = (
        spec.get("backoffLimitPerIndex"),
        spec.get("maxFailedIndexes"),
    );
    errors.supported_if_set(&mode, &["NonIndexed", "Indexed"]);
    if mode.text() == "Indexed" {
        if !completions.is_set() {
            errors.required(&completions, "when completion mode is Indexed");
        }
        if parallelism.int() > PARALLELISM_MAX {
            let detail = format!(
                "must be less than or equal to {PARALLELISM_MAX} when completion mode is Indexed"
            );
            errors.invalid(&parallelism, &detail);
        }
        if completions.is_set() && failed.int() > completions.int() {
            errors.invalid(&failed, "must be less than or equal to completions");
        }
        if failed.int() > FAILED_INDEXES_MAX {
            let detail = format!("must be less than or equal to {FAILED_INDEXES_MAX}");
            errors.invalid(&failed, &detail);
        }
        if completions.int() > COMPLETIONS_SOFT_MAX && per_index.is_set() {
            if !failed.is_set() {
                let detail =
                    format!("must be specified when completions is above {COMPLETIONS_SOFT_MAX}");
                errors.required(&failed, &detail);
            }
            let detail = format!(
                "must be less than or equal to {SOFT_MAX} when completions are above \
                 {COMPLETIONS_SOFT_MAX} and used with backoff limit per index"
            );
            for field in [&parallelism, &failed] {
                if field.int() > SOFT_MAX {
                    errors.invalid(field, &detail);
                }
            }
        }
    }
    if matches!(mode.text(), "" | "NonIndexed") {
        for field in [&per_index, &failed] {
            if field.is_set() {
                errors.invalid(field, INDEXED);
            }
        }
    }
}

/// Adds the errors in the change of a Job.
pub(super) fn job_update(live: &Field<'_>, new: &Field<'_>, errors: &mut Errors) {
    let (before, after) = (live.get("spec"), new.get("spec"));
    let completions = after.get("completions");
    if after.get("completionMode").text() != "Indexed" {
        errors.immutable(&completions, before.get("completions").value);
    } else if completions.is_set()
        && completions.value != before.get("completions").value
        && completions.int() != after.get("parallelism").int()
    {
        let detail = "can only be modified in tandem with spec.parallelism";
        errors.invalid(&completions, detail);
    }
    errors.immutable(&after.get("selector"), before.get("selector").value);
    template_update(&before, &after, errors);
    for field in [
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ] {
        errors.immutable(&after.get(field), before.get(field).value);
    }
}

/// Adds an error if the Pod template of a Job changes. What decides about the nodes of Pods, and
/// the resources of containers, can change while the Job is suspended.
fn template_update(before: &Field<'_>, after: &Field<'_>, errors: &mut Errors) {
    let template = after.get("template");
    let mut old = before.get("template").value.clone();
    if !before.get("suspend").is_true() {
        if old != *template.value {
            let printed = template.value.to_string();
            errors.invalid_printed(&template.path, &printed, "field is immutable");
        }
        return;
    }
    for path in [
        &["spec", "affinity", "nodeAffinity"] as &[&str],
        &["spec", "nodeSelector"],
        &["spec", "tolerations"],
        &["spec", "schedulingGates"],
        &["metadata", "labels"],
        &["metadata", "annotations"],
    ] {
        object::set(&mut old, path, object::at(template.value, path).clone());
    }
    for list in ["containers", "initContainers"] {
        let new = object::items(template.value, &["spec", list]);
        let containers = old.get_mut("spec").and_then(|spec| spec.get_mut(list));
        let containers = containers.and_then(Value::as_array_mut);
        for (old, new) in containers.into_iter().flatten().zip(new) {
            let resources = object::at(new, &["resources"]).clone();
            object::set(old, &["resources"], resources);
        }
    }
    let spec = template.get("spec");
    if object::at(&old, &["spec"]) != spec.value {
        errors.invalid(&spec, "field is immutable");
    }
}
