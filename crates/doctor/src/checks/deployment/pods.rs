//! The Pods of the operator: why they are not ready, why they have restarted, and failing probes.

use serde_json::Value;

use crate::value::{
    condition, duration, has_condition, int, items, name, seconds, short, text, time,
};
use crate::{Facts, Finding};

/// Age up to which an event counts, in seconds.
const RECENT: i64 = 10 * 60;
/// Number of failures of a probe that counts although the Pod is ready.
const FAILURES_MIN: i64 = 3;

/// Returns the findings about single Pods.
pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for pod in facts.pods() {
        findings.extend(restarts(facts, pod));
        findings.extend(probe(facts, pod));
    }
    findings
}

/// Returns why a Pod is not ready, or `None` if it is.
pub(super) fn reason(pod: &Value) -> Option<String> {
    if has_condition(pod, "Ready", "True") {
        return None;
    }
    let what = format!("pod/{}", name(pod));
    if text(pod, "/status/phase") == "Failed" {
        let (reason, message) = (text(pod, "/status/reason"), text(pod, "/status/message"));
        return Some(detail(
            &what,
            if reason.is_empty() { "Failed" } else { reason },
            message,
        ));
    }
    let containers = ["/status/initContainerStatuses", "/status/containerStatuses"];
    let mut containers = containers.iter().flat_map(|list| items(pod, list));
    if let Some(found) = containers.find_map(|container| waiting(&what, container)) {
        return Some(found);
    }
    if has_condition(pod, "PodScheduled", "False") {
        let scheduled = condition(pod, "PodScheduled").unwrap_or(&Value::Null);
        let (reason, message) = (text(scheduled, "/reason"), text(scheduled, "/message"));
        return Some(detail(&what, reason, message));
    }
    Some(format!("{what} is not ready"))
}

/// Returns why a container waits, with the result of its last run.
fn waiting(what: &str, container: &Value) -> Option<String> {
    let last = text(container, "/lastState/terminated/reason");
    let now = text(container, "/state/terminated/reason");
    match text(container, "/state/waiting/reason") {
        "" | "ContainerCreating" | "PodInitializing" if now.is_empty() => None,
        "" => Some(format!("{what} {now}")),
        reason if last.is_empty() || last == "Completed" => Some(detail(
            what,
            reason,
            text(container, "/state/waiting/message"),
        )),
        reason => {
            let code = int(container, "/lastState/terminated/exitCode");
            Some(format!(
                "{what} {reason}, after {last} with exit code {code}"
            ))
        }
    }
}

fn detail(what: &str, reason: &str, message: &str) -> String {
    match short(message) {
        message if message.is_empty() => format!("{what} {reason}"),
        message => format!("{what} {reason}: {message}"),
    }
}

/// Finds a container that runs now and had to be restarted because of its memory.
fn restarts(facts: &Facts, pod: &Value) -> Option<Finding> {
    let mut containers = items(pod, "/status/containerStatuses").iter();
    containers.find_map(|container| {
        let last = container.pointer("/lastState/terminated")?;
        let is_running = container.pointer("/state/running").is_some();
        if text(last, "/reason") != "OOMKilled" || !is_running {
            return None;
        }
        let message = format!(
            "pod/{} was restarted {} times, the last time because it used more than its memory limit (OOMKilled)",
            name(pod),
            int(container, "/restartCount")
        );
        let namespace = &facts.manifests.namespace;
        let command = format!("kubectl -n {namespace} top pod {} --containers", name(pod));
        Some(Finding::warning("operator", message).about(pod).command(command))
    })
}

/// Finds a probe that fails.
fn probe(facts: &Facts, pod: &Value) -> Option<Finding> {
    let events = facts.all("Event").filter(|event| {
        let uid = text(event, "/involvedObject/uid");
        text(event, "/reason") == "Unhealthy"
            && text(event, "/involvedObject/name") == name(pod)
            && (uid.is_empty() || uid == text(pod, "/metadata/uid"))
    });
    let seen = |event: &Value| {
        let times = ["/series/lastObservedTime", "/lastTimestamp", "/eventTime"];
        times.iter().find_map(|field| time(event, field))
    };
    let recent = events.filter_map(|event| {
        let age = seconds(seen(event)?, facts.now);
        (age <= RECENT).then_some((age, event))
    });
    let (age, event) = recent.min_by_key(|(age, _)| *age)?;
    let is_ready = has_condition(pod, "Ready", "True");
    let count = int(event, "/count").max(int(event, "/series/count")).max(1);
    if is_ready && count < FAILURES_MIN {
        return None;
    }
    let message = format!(
        "pod/{}: {}, {count} times, last {} ago",
        name(pod),
        short(text(event, "/message")),
        duration(age)
    );
    let finding = match is_ready {
        true => Finding::warning("probe", message),
        false => Finding::fail("probe", message),
    };
    let namespace = &facts.manifests.namespace;
    Some(
        finding
            .about(pod)
            .command(format!("kubectl -n {namespace} logs {}", name(pod))),
    )
}
