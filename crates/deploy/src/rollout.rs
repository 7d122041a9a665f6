//! The rollout of a Deployment: until all replicas have the new template and are available.

use std::fmt;
use std::time::Duration;

use opkit_client::{ListOptions, Unstructured};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cluster::{Cluster, POLL_INTERVAL};
use crate::progress::Report;
use crate::{DeployError, ObjectReference, Progress};

/// Result of a rollout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Rollout {
    /// The Deployment.
    pub deployment: ObjectReference,
    /// Number of available replicas.
    pub available: i64,
}

/// State of a rollout, as `kubectl rollout status` reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RolloutState {
    /// Number of replicas that should be available.
    pub replicas: i64,
    /// Number of replicas with the new template.
    pub updated: i64,
    /// Number of available replicas.
    pub available: i64,
    /// Number of replicas that are to stop: those with the old template, and those above the wanted
    /// number.
    pub surplus: i64,
    /// Whether the controller has seen the newest Deployment.
    pub observed: bool,
    /// Message of the controller if it has given up.
    pub failure: Option<String>,
}

impl RolloutState {
    /// Reads the state of a Deployment.
    pub(crate) fn of(deployment: &Unstructured) -> Self {
        let status = |field: &str| deployment.get_i64(&["status", field]).unwrap_or_default();
        let replicas = deployment.get_i64(&["spec", "replicas"]).unwrap_or(1);
        let updated = status("updatedReplicas");
        let failed = deployment.conditions().into_iter().find(|condition| {
            condition.type_ == "Progressing"
                && condition.status == "False"
                && condition.reason == "ProgressDeadlineExceeded"
        });
        Self {
            replicas,
            updated,
            available: status("availableReplicas"),
            surplus: status("replicas").saturating_sub(updated.min(replicas)),
            observed: status("observedGeneration") >= deployment.generation().unwrap_or_default(),
            failure: failed.map(|condition| condition.message),
        }
    }

    /// Reports whether the rollout is complete.
    pub fn is_complete(&self) -> bool {
        self.observed
            && self.updated >= self.replicas
            && self.surplus <= 0
            && self.available >= self.updated
    }
}

impl fmt::Display for RolloutState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} available", self.available, self.replicas)?;
        match self.surplus {
            surplus if surplus > 0 => write!(f, ", {surplus} to stop"),
            _ => Ok(()),
        }
    }
}

/// Waits until the rollout is complete.
pub(crate) async fn wait(
    cluster: &Cluster,
    deployment: &Value,
    timeout: Duration,
    report: Report<'_>,
) -> Result<Rollout, DeployError> {
    let reference = ObjectReference::of(deployment);
    let start = Instant::now();
    let mut last = None;
    loop {
        let found = cluster.get(deployment).await?.unwrap_or_default();
        let state = RolloutState::of(&found);
        if last.as_ref() != Some(&state) {
            report(Progress::Rollout {
                deployment: reference.clone(),
                state: state.clone(),
                elapsed: start.elapsed(),
            });
            last = Some(state.clone());
        }
        if state.is_complete() {
            return Ok(Rollout {
                deployment: reference,
                available: state.available,
            });
        }
        if state.failure.is_some() || start.elapsed() >= timeout {
            let pods = problem_of_pods(cluster, &found).await;
            let mut problem = state.to_string();
            for more in state.failure.into_iter().chain(pods) {
                problem = format!("{problem}; {more}");
            }
            return Err(DeployError::Rollout {
                deployment: Box::new(reference),
                seconds: start.elapsed().as_secs(),
                problem,
            });
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// Returns the problem of a Pod that is not ready. An error of the requests for it would hide the
/// problem of the rollout, so it is ignored.
async fn problem_of_pods(cluster: &Cluster, deployment: &Unstructured) -> Option<String> {
    let labels = deployment.get(&["spec", "selector", "matchLabels"])?;
    let labels = labels.as_object()?.iter();
    let labels: Vec<_> = labels
        .filter_map(|(name, value)| Some(format!("{name}={}", value.as_str()?)))
        .collect();
    let pod = json!({"apiVersion": "v1", "kind": "Pod"});
    let resource = cluster.resource(&pod).await.ok()??;
    let options = ListOptions::new().labels(&labels.join(","));
    let options = options.in_namespace(deployment.namespace()?);
    let pods = resource.list(&options).await.ok()?;
    pods.items.iter().find_map(problem_of_pod)
}

/// Returns why a Pod is not ready: the reason of a waiting or terminated container, or of a Pod
/// without a node.
fn problem_of_pod(pod: &Unstructured) -> Option<String> {
    let conditions = pod.get(&["status", "conditions"]).and_then(Value::as_array);
    let unscheduled = conditions.into_iter().flatten().find(|condition| {
        condition.get("type").is_some_and(|it| it == "PodScheduled")
            && condition.get("status").is_some_and(|it| it == "False")
    });
    let statuses = pod.get(&["status", "containerStatuses"]);
    let statuses = statuses.and_then(Value::as_array).into_iter().flatten();
    let states = statuses.filter_map(|status| {
        let state = status.get("state")?;
        state.get("waiting").or_else(|| state.get("terminated"))
    });
    let problem = unscheduled.into_iter().chain(states).next()?;
    let text = |field: &str| problem.get(field).and_then(Value::as_str);
    let reason = text("reason").unwrap_or("not running");
    let name = pod.name();
    Some(match text("message") {
        Some(message) => format!("pod {name}: {reason}: {message}"),
        None => format!("pod {name}: {reason}"),
    })
}

#[cfg(test)]
mod tests;
