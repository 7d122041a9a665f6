//! Objects of the operator's kinds that the operator does not observe, or that are not ready for
//! long.

use jiff::Timestamp;
use serde_json::Value;

use crate::value::{duration, int, items, kind, located, seconds, short, text, time};
use crate::{Facts, Finding};

/// Time until a change is observed, in seconds.
const OBSERVED_MAX: i64 = 5 * 60;
/// Time that an object may be not ready, in seconds.
const READY_MAX: i64 = 10 * 60;

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let objects = facts.instances.iter();
    let objects = objects.filter(|it| text(it, "/metadata/deletionTimestamp").is_empty());
    let findings = objects.filter_map(|object| {
        let finding = not_observed(facts, object).or_else(|| not_ready(facts, object))?;
        let logs = super::logs_about(facts, object);
        Some(finding.about(object).command(logs))
    });
    super::limited("status", findings.collect())
}

fn not_observed(facts: &Facts, object: &Value) -> Option<Finding> {
    let observed = object.pointer("/status/observedGeneration");
    if observed.is_none() && !has_field(facts, object) {
        return None;
    }
    let (generation, observed) = (
        int(object, "/metadata/generation"),
        observed.and_then(Value::as_i64).unwrap_or_default(),
    );
    let since = seconds(last_change(object)?, facts.now);
    if observed >= generation || since <= OBSERVED_MAX {
        return None;
    }
    let (object, since) = (located(object), duration(since));
    Some(Finding::warning(
        "status",
        match observed {
            0 => format!(
                "{object} has not been reconciled for {since}: it has no observedGeneration"
            ),
            _ => format!(
                "{object} was changed {since} ago, and the operator has not observed it: generation {generation}, observed {observed}"
            ),
        },
    ))
}

/// Reports whether the operator's CRD has the field `status.observedGeneration`.
fn has_field(facts: &Facts, object: &Value) -> bool {
    let api_version = text(object, "/apiVersion");
    let (group, version) = api_version.split_once('/').unwrap_or_default();
    let mut crds = facts.manifests.all("CustomResourceDefinition");
    let crd = crds.find(|crd| {
        text(crd, "/spec/group") == group && text(crd, "/spec/names/kind") == kind(object)
    });
    let mut versions = crd
        .map_or(&[][..], |crd| items(crd, "/spec/versions"))
        .iter();
    versions.any(|it| {
        let field = "/schema/openAPIV3Schema/properties/status/properties/observedGeneration";
        text(it, "/name") == version && it.pointer(field).is_some()
    })
}

/// Returns the time of the last write that was not to the status.
fn last_change(object: &Value) -> Option<Timestamp> {
    let entries = items(object, "/metadata/managedFields").iter();
    let writes = entries.filter(|entry| text(entry, "/subresource").is_empty());
    let last = writes.filter_map(|entry| time(entry, "/time")).max();
    last.or_else(|| time(object, "/metadata/creationTimestamp"))
}

fn not_ready(facts: &Facts, object: &Value) -> Option<Finding> {
    let mut conditions = items(object, "/status/conditions").iter();
    conditions.find_map(|condition| {
        let (type_, status) = (text(condition, "/type"), text(condition, "/status"));
        let is_problem = matches!(
            (type_, status),
            ("Ready", "False" | "Unknown") | ("Stalled" | "Degraded", "True")
        );
        let since = seconds(time(condition, "/lastTransitionTime")?, facts.now);
        (is_problem && since > READY_MAX).then(|| {
            let reason = text(condition, "/reason");
            let message = match short(text(condition, "/message")) {
                message if message.is_empty() => String::new(),
                message => format!(" {message:?}"),
            };
            let (object, since) = (located(object), duration(since));
            Finding::warning(
                "status",
                format!("{object} has had {type_}={status} for {since}: {reason}{message}"),
            )
        })
    })
}
