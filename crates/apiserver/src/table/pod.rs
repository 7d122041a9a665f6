//! The cells of a Pod, which summarize its containers.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::cell::{integer, items, string, time};
use super::duration;

/// Readiness, status and restarts of a Pod.
#[derive(Debug)]
pub(super) struct Summary {
    pub(super) ready: String,
    pub(super) status: String,
    restarts: i64,
    last_restart: Option<Timestamp>,
}

/// Counters and status reason, collected over the containers of a Pod.
#[derive(Default)]
struct Tally {
    reason: String,
    ready: usize,
    restarts: i64,
    last_restart: Option<Timestamp>,
}

impl Tally {
    fn restarted(&mut self, container: &Value) {
        self.restarts = self
            .restarts
            .saturating_add(integer(container, ".restartCount"));
        let finished = time(container, ".lastState.terminated.finishedAt");
        self.last_restart = self.last_restart.max(finished);
    }
}

impl Summary {
    /// Summarizes a Pod. As in the API server, the status comes from the Pod's reason, then from
    /// the init containers, then from the containers from last to first, and then from the
    /// deletion. A later source overrides an earlier one.
    pub(super) fn of(pod: &Value) -> Self {
        let mut tally = Tally {
            reason: string(pod, ".status.phase").to_owned(),
            ..Tally::default()
        };
        if !string(pod, ".status.reason").is_empty() {
            tally.reason = string(pod, ".status.reason").to_owned();
        }
        let gated = items(pod, ".status.conditions").iter().any(|condition| {
            condition["type"] == "PodScheduled" && condition["reason"] == "SchedulingGated"
        });
        if gated {
            tally.reason = "SchedulingGated".to_owned();
        }
        let sidecars = items(pod, ".spec.initContainers")
            .iter()
            .filter(|c| is_sidecar(c))
            .count();
        let total = items(pod, ".spec.containers").len() + sidecars;
        let initializing = init_containers(pod, &mut tally);
        if !initializing || has_condition(pod, "Initialized") {
            let sidecars = sidecar_restarts(pod);
            tally.restarts = sidecars.restarts;
            tally.last_restart = sidecars.last_restart;
            containers(pod, &mut tally);
        }
        let finished = matches!(string(pod, ".status.phase"), "Succeeded" | "Failed");
        if !string(pod, ".metadata.deletionTimestamp").is_empty() {
            if string(pod, ".status.reason") == "NodeLost" {
                tally.reason = "Unknown".to_owned();
            } else if !finished {
                tally.reason = "Terminating".to_owned();
            }
        }
        Self {
            ready: format!("{}/{total}", tally.ready),
            status: tally.reason,
            restarts: tally.restarts,
            last_restart: tally.last_restart,
        }
    }

    /// Returns the number of restarts and the time since the last restart, such as `2 (3m ago)`.
    pub(super) fn restarts(&self, now: Timestamp) -> String {
        match self.last_restart {
            Some(last) if self.restarts != 0 => {
                format!("{} ({} ago)", self.restarts, duration::human(last, now))
            }
            _ => self.restarts.to_string(),
        }
    }
}

/// Counts the restarts of sidecars. After a Pod is initialized, the restarts of its other init
/// containers do not count.
fn sidecar_restarts(pod: &Value) -> Tally {
    let mut tally = Tally::default();
    for container in items(pod, ".status.initContainerStatuses") {
        if is_sidecar_status(pod, container) {
            tally.restarted(container);
        }
    }
    tally
}

/// Adds the init containers to `tally`, up to the first init container that has not finished.
/// Reports whether there is such an init container.
fn init_containers(pod: &Value, tally: &mut Tally) -> bool {
    let of_spec = items(pod, ".spec.initContainers").len();
    for (index, container) in items(pod, ".status.initContainerStatuses")
        .iter()
        .enumerate()
    {
        tally.restarted(container);
        let terminated = container.pointer("/state/terminated");
        let waiting = string(container, ".state.waiting.reason");
        if terminated.is_some() && integer(container, ".state.terminated.exitCode") == 0 {
            continue;
        }
        if is_sidecar_status(pod, container) && container["started"] == true {
            tally.ready += usize::from(container["ready"] == true);
            continue;
        }
        tally.reason = if terminated.is_some() {
            format!("Init:{}", termination(container))
        } else if !waiting.is_empty() && waiting != "PodInitializing" {
            format!("Init:{waiting}")
        } else {
            format!("Init:{index}/{of_spec}")
        };
        return true;
    }
    false
}

/// Adds the containers to `tally`, from the last to the first, so that the reason of the first
/// container remains.
fn containers(pod: &Value, tally: &mut Tally) {
    let mut running = false;
    let mut failure = None;
    for container in items(pod, ".status.containerStatuses").iter().rev() {
        tally.restarted(container);
        let waiting = string(container, ".state.waiting.reason");
        if !waiting.is_empty() {
            tally.reason = waiting.to_owned();
        } else if container.pointer("/state/terminated").is_some() {
            tally.reason = termination(container);
            if integer(container, ".state.terminated.exitCode") != 0 {
                failure = Some(tally.reason.clone());
            }
        } else if container["ready"] == true && container.pointer("/state/running").is_some() {
            running = true;
            tally.ready += 1;
        }
    }
    if tally.reason == "Completed" {
        if running && has_condition(pod, "Ready") {
            tally.reason = "Running".to_owned();
        } else if let Some(failure) = failure {
            tally.reason = failure;
        } else if running {
            tally.reason = "NotReady".to_owned();
        }
    }
}

/// Returns the reason of a container's termination.
fn termination(container: &Value) -> String {
    match string(container, ".state.terminated.reason") {
        "" => match integer(container, ".state.terminated.signal") {
            0 => format!(
                "ExitCode:{}",
                integer(container, ".state.terminated.exitCode")
            ),
            signal => format!("Signal:{signal}"),
        },
        reason => reason.to_owned(),
    }
}

fn is_sidecar(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

fn is_sidecar_status(pod: &Value, status: &Value) -> bool {
    let containers = items(pod, ".spec.initContainers").iter();
    containers
        .filter(|container| container["name"] == status["name"])
        .any(is_sidecar)
}

fn has_condition(object: &Value, type_: &str) -> bool {
    items(object, ".status.conditions")
        .iter()
        .any(|condition| condition["type"] == type_ && condition["status"] == "True")
}

/// Returns the number of readiness gates that are true and the number of all readiness gates, such
/// as `1/2`.
pub(super) fn readiness_gates(pod: &Value) -> Option<String> {
    let gates = items(pod, ".spec.readinessGates");
    let open = gates
        .iter()
        .filter(|gate| has_condition(pod, string(gate, ".conditionType")))
        .count();
    (!gates.is_empty()).then(|| format!("{open}/{}", gates.len()))
}

/// Returns the condition `Completed` for the Table row of a finished Pod, so that clients can hide
/// the row.
pub(super) fn row_conditions(object: &Value) -> Option<Value> {
    if object["kind"] != "Pod" || object["apiVersion"] != "v1" {
        return None;
    }
    let phase = string(object, ".status.phase");
    let message = match phase {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    Some(json!([{"type": "Completed", "status": "True", "reason": phase, "message": message}]))
}
