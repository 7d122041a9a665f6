//! The cells of Jobs, autoscalers and controller revisions.

use jiff::Timestamp;
use serde_json::Value;

use super::cell::{integer, items, print, string, time};
use super::duration;

/// Returns the completions of a Job, such as `1/3`. For a Job with `parallelism: 2` and without
/// `completions`, the form is `1/1 of 2`.
pub(super) fn job_completions(job: &Value) -> String {
    let succeeded = integer(job, ".status.succeeded");
    match job.pointer("/spec/completions").and_then(Value::as_i64) {
        Some(completions) => format!("{succeeded}/{completions}"),
        None => match integer(job, ".spec.parallelism") {
            parallelism @ 2.. => format!("{succeeded}/1 of {parallelism}"),
            _ => format!("{succeeded}/1"),
        },
    }
}

/// Returns the duration of a Job from its start to its completion, or to `now` if the Job is not
/// completed.
pub(super) fn job_duration(job: &Value, now: Timestamp) -> Option<String> {
    let start = time(job, ".status.startTime")?;
    Some(duration::human(
        start,
        time(job, ".status.completionTime").unwrap_or(now),
    ))
}

/// Returns the most specific condition of a Job.
pub(super) fn job_status(job: &Value) -> &'static str {
    let has = |type_: &str| {
        let conditions = items(job, ".status.conditions").iter();
        conditions
            .filter(|condition| condition["status"] == "True")
            .any(|c| c["type"] == type_)
    };
    let deleted = !string(job, ".metadata.deletionTimestamp").is_empty();
    match () {
        () if has("Complete") => "Complete",
        () if has("Failed") => "Failed",
        () if deleted => "Terminating",
        () if has("Suspended") => "Suspended",
        () if has("FailureTarget") => "FailureTarget",
        () if has("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

/// Returns the controller of an object, such as `statefulset.apps/web`.
pub(super) fn controller(object: &Value) -> Option<String> {
    let owners = items(object, ".metadata.ownerReferences");
    let owner = owners.iter().find(|owner| owner["controller"] == true)?;
    let (kind, name) = (
        string(owner, ".kind").to_lowercase(),
        string(owner, ".name"),
    );
    Some(match string(owner, ".apiVersion").split_once('/') {
        Some((group, _)) => format!("{kind}.{group}/{name}"),
        None => format!("{kind}/{name}"),
    })
}

/// Returns the current and the target value of the first two metrics of an autoscaler.
pub(super) fn hpa_targets(hpa: &Value) -> String {
    const SHOWN: usize = 2;
    // autoscaling/v1 has one metric only, in other fields.
    if let Some(target) = hpa.pointer("/spec/targetCPUUtilizationPercentage") {
        let current = hpa.pointer("/status/currentCPUUtilizationPercentage");
        return format!(
            "cpu: {}/{target}%",
            current.map_or(UNKNOWN.to_owned(), |c| format!("{c}%"))
        );
    }
    let metrics = items(hpa, ".spec.metrics");
    if metrics.is_empty() {
        return "<none>".to_owned();
    }
    let statuses = items(hpa, ".status.currentMetrics");
    let shown: Vec<String> = metrics
        .iter()
        .enumerate()
        .take(SHOWN)
        .map(|(index, metric)| hpa_metric(metric, statuses.get(index).unwrap_or(&Value::Null)))
        .collect();
    match metrics.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} + {more} more...", shown.join(", ")),
    }
}

const UNKNOWN: &str = "<unknown>";

fn hpa_metric(metric: &Value, status: &Value) -> String {
    let source = match string(metric, ".type") {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let target = |field: &str| {
        metric
            .pointer(&format!("/{source}/target/{field}"))
            .map(print)
    };
    let current = |field: &str| {
        let current = status.pointer(&format!("/{source}/current/{field}"));
        current.map_or_else(|| UNKNOWN.to_owned(), print)
    };
    let average = target("averageValue");
    match source {
        "resource" | "containerResource" => {
            let name = string(metric, &format!(".{source}.name"));
            match (average, target("averageUtilization")) {
                (Some(target), _) => format!("{name}: {}/{target}", current("averageValue")),
                (None, target) => {
                    let current = match current("averageUtilization") {
                        unknown if unknown == UNKNOWN => unknown,
                        percent => format!("{percent}%"),
                    };
                    let target = target.map_or("<auto>".to_owned(), |target| format!("{target}%"));
                    format!("{name}: {current}/{target}")
                }
            }
        }
        "pods" => format!(
            "{}/{}",
            current("averageValue"),
            average.unwrap_or_default()
        ),
        _ => match average {
            Some(target) => format!("{}/{target} (avg)", current("averageValue")),
            None => format!(
                "{}/{}",
                current("value"),
                target("value").unwrap_or_default()
            ),
        },
    }
}
