//! The operator's Deployment and its Pods.

mod pods;

use serde_json::Value;

use crate::value::{condition, has_condition, int, kind, name, namespace, reference, short, text};
use crate::{Facts, Finding};

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let Some(expected) = facts.expected_deployment() else {
        return Vec::new();
    };
    if !facts.is_read("Deployment") {
        return Vec::new();
    }
    let Some(live) = facts.live(expected) else {
        let message = format!(
            "{} does not exist in the namespace {}: the operator is not deployed",
            reference(expected),
            facts.manifests.namespace
        );
        let finding = Finding::fail("operator", message).command("opkit deploy");
        return vec![finding.about(expected)];
    };
    let mut findings: Vec<_> = availability(facts, live).into_iter().collect();
    findings.extend(pods::check(facts));
    findings.extend(skew(facts, live, expected));
    findings.extend(services(facts));
    findings
}

/// Returns why a Pod of the operator is not ready, or `None` if all are.
pub(super) fn reason(facts: &Facts) -> Option<String> {
    facts.pods().into_iter().find_map(pods::reason)
}

/// Compares the available replicas with the wanted ones.
fn availability(facts: &Facts, live: &Value) -> Option<Finding> {
    let what = reference(live);
    let namespace = namespace(live).unwrap_or_default();
    let wanted = live.pointer("/spec/replicas").and_then(Value::as_i64);
    let wanted = wanted.unwrap_or(1);
    if wanted == 0 {
        let message = format!("{what} is scaled to 0 replicas: nothing is reconciled");
        let command = format!("kubectl -n {namespace} scale {what} --replicas 1");
        return Some(
            Finding::fail("operator", message)
                .about(live)
                .command(command),
        );
    }
    let available = int(live, "/status/availableReplicas");
    if available >= wanted {
        return None;
    }
    let mut reasons: Vec<String> = Vec::new();
    if has_condition(live, "ReplicaFailure", "True") {
        let failure = condition(live, "ReplicaFailure").unwrap_or(&Value::Null);
        reasons.push(format!(
            "no Pod can be created: {}",
            short(text(failure, "/message"))
        ));
    }
    reasons.extend(reason(facts));
    let progress = condition(live, "Progressing").map(|it| text(it, "/reason"));
    if reasons.is_empty() && progress == Some("ProgressDeadlineExceeded") {
        reasons.push("the rollout makes no progress".to_owned());
    }
    let reason = match reasons.is_empty() {
        true => String::new(),
        false => format!(": {}", reasons.join("; ")),
    };
    let message = format!("{what} has {available} of {wanted} replicas available{reason}");
    let finding = match available {
        0 => Finding::fail("operator", message),
        _ => Finding::warning("operator", message),
    };
    Some(finding.about(live).command(super::describe_operator(facts)))
}

/// Compares the image in the cluster with that of the build.
fn skew(facts: &Facts, live: &Value, expected: &Value) -> Option<Finding> {
    let (runs, built) = (Facts::image(live), Facts::image(expected));
    let (running_tag, built_tag) = (tag(runs)?, tag(built)?);
    (running_tag != built_tag).then(|| {
        let message = format!(
            "{} runs {runs}, and this build is {} {}",
            reference(live),
            facts.manifests.operator,
            facts.manifests.version
        );
        Finding::warning("version", message)
            .about(live)
            .command("opkit deploy")
    })
}

/// Returns the tag of an image, or `None` if a digest identifies it.
fn tag(image: &str) -> Option<&str> {
    if image.contains('@') {
        return None;
    }
    let last = image.rsplit('/').next().unwrap_or(image);
    Some(last.split_once(':').map_or("latest", |(_, tag)| tag))
}

/// Finds the ServiceAccount and the Services of the metrics that are missing.
fn services(facts: &Facts) -> Vec<Finding> {
    let objects = facts.manifests.objects.iter();
    let missing = objects.filter(|it| {
        matches!(kind(it), "ServiceAccount" | "Service")
            && !name(it).ends_with("-webhook-service")
            && facts.is_missing(it)
    });
    let finding = |object: &Value| {
        let effect = match kind(object) {
            "ServiceAccount" => "no Pod of the operator can be created",
            _ => "the metrics of the operator cannot be collected",
        };
        let message = format!("{} does not exist: {effect}", reference(object));
        let finding = match kind(object) {
            "ServiceAccount" => Finding::fail("operator", message),
            _ => Finding::warning("operator", message),
        };
        finding.about(object).command("opkit deploy")
    };
    missing.map(finding).collect()
}
