//! Controller of PodDisruptionBudgets: keeps the number of Pods that may be evicted in the status
//! of each budget.

use std::collections::BTreeMap;
use std::sync::Arc;

use opkit_apimachinery::selector::LabelSelector;
use serde_json::{Map, Value, json};

use super::{Event, MANAGER};
use crate::object;
use crate::registry::budgets::{self, RESOURCE};
use crate::registry::{Registry, Write};
use crate::status::ApiResult;
use crate::store::Key;
use crate::target::Target;

/// The numbers in the status of a budget.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Count {
    pub(super) current_healthy: i64,
    pub(super) desired_healthy: i64,
    pub(super) expected_pods: i64,
    pub(super) disruptions_allowed: i64,
}

/// Returns the keys of the budgets that a Pod counts in, or counted in before the event.
pub(super) fn budgets_of_pod(registry: &Registry, event: &Event) -> Vec<Key> {
    let namespace = event.object.namespace();
    let (all, _) = registry.store.list(RESOURCE, Some(namespace));
    if all.is_empty() {
        return Vec::new();
    }
    let versions = event.versions();
    let counts = |budget: &Value| versions.iter().any(|pod| selects(budget, pod));
    let selecting = all.iter().filter(|budget| counts(budget));
    selecting.map(|budget| Key::of(budget)).collect()
}

/// Writes the status of a budget.
pub(super) async fn step(registry: &Registry, key: &Key) -> ApiResult<()> {
    let Some(budget) = registry.store.get(RESOURCE, key) else {
        return Ok(());
    };
    let (pods, _) = registry.store.list("pods", Some(&key.namespace));
    let pods: Vec<Arc<Value>> = pods
        .into_iter()
        .filter(|pod| selects(&budget, pod))
        .collect();
    let expected = expected_scale(registry, &pods);
    let kind = registry.builtin("policy", "poddisruptionbudgets")?;
    let target = Target::new(&kind, &key.namespace, &key.name).subresource("status");
    let now = registry.clock.now_rfc3339();
    registry
        .modify(&target, &mut Write::by(MANAGER), |live| {
            let disrupted = disrupted_pods(live, &pods);
            let count = count(live, &pods, &disrupted, expected);
            let mut new = live.clone();
            let set = |new: &mut Value, field: &str, value: Value| {
                object::set(new, &["status", field], value);
            };
            set(&mut new, "currentHealthy", json!(count.current_healthy));
            set(&mut new, "desiredHealthy", json!(count.desired_healthy));
            set(&mut new, "expectedPods", json!(count.expected_pods));
            let allowed = count.disruptions_allowed;
            set(&mut new, "disruptionsAllowed", json!(allowed));
            let generation = object::at(live, &["metadata", "generation"]).clone();
            set(&mut new, "observedGeneration", generation);
            let disrupted = match disrupted.is_empty() {
                true => Value::Null,
                false => json!(disrupted),
            };
            set(&mut new, "disruptedPods", disrupted);
            budgets::set_condition(&mut new, &now);
            Ok(new)
        })
        .await?;
    Ok(())
}

fn selects(budget: &Value, pod: &Value) -> bool {
    let selector = object::at(budget, &["spec", "selector"]);
    // A budget without a selector selects no Pod, an empty selector all of them.
    !selector.is_null()
        && LabelSelector::from_object(selector)
            .is_ok_and(|selector| selector.matches(object::labels(pod)))
}

/// Returns the Pods whose eviction was requested and that are not being deleted yet.
fn disrupted_pods(budget: &Value, pods: &[Arc<Value>]) -> Map<String, Value> {
    let known = object::at(budget, &["status", "disruptedPods"]).as_object();
    let mut disrupted = known.cloned().unwrap_or_default();
    disrupted.retain(|name, _| {
        let mut pods = pods.iter();
        pods.any(|pod| object::name(pod) == name && !object::is_deleting(pod))
    });
    disrupted
}

/// Returns the sum of the replicas that the controllers of the Pods want. The ReplicaSets of a
/// Deployment count as the Deployment.
fn expected_scale(registry: &Registry, pods: &[Arc<Value>]) -> i64 {
    let controller = |object: &Value| {
        let owners = object::items(object, &["metadata", "ownerReferences"]).iter();
        let mut controllers =
            owners.filter(|owner| object::at(owner, &["controller"]) == &Value::Bool(true));
        let uid = object::text(controllers.next()?, &["uid"]);
        registry.store.by_uid(uid).map(|(_, controller)| controller)
    };
    let mut scales: BTreeMap<String, i64> = BTreeMap::new();
    for pod in pods {
        let Some(owner) = controller(pod) else {
            continue;
        };
        let owner = controller(&owner).unwrap_or(owner);
        let replicas = object::int(&owner, &["spec", "replicas"]);
        scales.insert(object::uid(&owner).to_owned(), replicas);
    }
    scales
        .values()
        .fold(0, |sum: i64, scale| sum.saturating_add(*scale))
}

/// Computes the status of a budget whose selector selects `pods`.
pub(super) fn count(
    budget: &Value,
    pods: &[Arc<Value>],
    disrupted: &Map<String, Value>,
    expected_scale: i64,
) -> Count {
    let pod_count = i64::try_from(pods.len()).unwrap_or(i64::MAX);
    let max_unavailable = object::at(budget, &["spec", "maxUnavailable"]);
    let min_available = object::at(budget, &["spec", "minAvailable"]);
    let (expected_pods, desired_healthy) = if !max_unavailable.is_null() {
        let unavailable = scaled(max_unavailable, expected_scale);
        (expected_scale, (expected_scale - unavailable).max(0))
    } else {
        match min_available {
            Value::String(_) => (expected_scale, scaled(min_available, expected_scale)),
            number => (pod_count, number.as_i64().unwrap_or_default()),
        }
    };
    let healthy = pods.iter().filter(|pod| {
        !object::is_deleting(pod) && !disrupted.contains_key(object::name(pod)) && is_ready(pod)
    });
    let current_healthy = i64::try_from(healthy.count()).unwrap_or(i64::MAX);
    let disruptions_allowed = match expected_pods {
        0 => 0,
        _ => (current_healthy - desired_healthy).max(0),
    };
    Count {
        current_healthy,
        desired_healthy,
        expected_pods,
        disruptions_allowed,
    }
}

fn is_ready(pod: &Value) -> bool {
    object::items(pod, &["status", "conditions"])
        .iter()
        .any(|condition| {
            object::text(condition, &["type"]) == "Ready"
                && object::text(condition, &["status"]) == "True"
        })
}

/// Returns a number, or a percentage of `total`, rounded up.
fn scaled(value: &Value, total: i64) -> i64 {
    let percent = value.as_str().and_then(|text| text.strip_suffix('%'));
    match percent.and_then(|percent| percent.parse::<i64>().ok()) {
        Some(percent) => total.saturating_mul(percent).saturating_add(99) / 100,
        None => value.as_i64().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
