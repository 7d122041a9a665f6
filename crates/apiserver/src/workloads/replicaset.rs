//! Controller of ReplicaSets: creates and deletes pods until there are as many as `spec.replicas`.

use serde_json::{Value, json};

use super::{EventContent, claim, counter, owned_by, record_event, set_status};
use crate::controllers::MANAGER;
use crate::object;
use crate::registry::{DeleteOptions, Registry, Write};
use crate::status::{ApiError, ApiResult};
use crate::store::Key;
use crate::target::Target;

/// Maximum number of pods that the controller creates at once, as in Kubernetes. The events of the
/// new pods make the controller check the ReplicaSet again.
const BURST: usize = 500;
const COMPONENT: &str = "replicaset-controller";
/// The condition of a ReplicaSet whose pods cannot be created or deleted.
const REPLICA_FAILURE: &str = "ReplicaFailure";
const FAILED_CREATE: &str = "FailedCreate";

/// The next changes to the pods and the status of a ReplicaSet.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan {
    pub(super) create: usize,
    pub(super) delete: Vec<String>,
    pub(super) status: Value,
}

/// Plans the next changes for a ReplicaSet that has `pods`.
pub(super) fn plan(replica_set: &Value, pods: &[Value]) -> Plan {
    let mut active: Vec<&Value> = pods.iter().filter(|pod| is_active(pod)).collect();
    let wanted = usize::try_from(object::int(replica_set, &["spec", "replicas"])).unwrap_or(0);
    let ready = active.iter().filter(|pod| is_ready(pod)).count();
    let labels = object::at(replica_set, &["spec", "template", "metadata", "labels"]);
    let labelled = active.iter().filter(|pod| carries(pod, labels)).count();
    let status = json!({
        "replicas": active.len(), "fullyLabeledReplicas": count(labelled),
        "readyReplicas": count(ready), "availableReplicas": count(ready),
        "terminatingReplicas": count(pods.iter().filter(|pod| object::is_deleting(pod)).count()),
        "observedGeneration": object::int(replica_set, &["metadata", "generation"]),
    });
    // Pods that are not ready are deleted first, then the youngest.
    active.sort_by_key(|pod| (is_ready(pod), std::cmp::Reverse(object::revision(pod))));
    let surplus = active.len().saturating_sub(wanted);
    Plan {
        create: wanted.saturating_sub(active.len()),
        delete: active
            .iter()
            .take(surplus)
            .map(|pod| object::name(pod).to_owned())
            .collect(),
        status,
    }
}

pub(crate) async fn step(registry: &Registry, key: &Key) -> ApiResult<()> {
    let Some(replica_set) = registry.store.get("replicasets.apps", key) else {
        return Ok(());
    };
    let mut plan = plan(&replica_set, &claim(registry, &replica_set, "pods").await?);
    let managed = match object::is_deleting(&replica_set) {
        true => Ok(()),
        false => manage(registry, &replica_set, &plan).await,
    };
    let failure = failure_condition(&replica_set, &plan, managed.as_ref().err(), registry);
    if let (Some(condition), Err(error)) = (&failure, &managed)
        && find_failure(&replica_set).is_none()
    {
        let reason = object::text(condition, &["reason"]);
        let verb = if reason == FAILED_CREATE {
            "creating"
        } else {
            "deleting"
        };
        let message = format!("Error {verb}: {}", error.message());
        record(registry, &replica_set, reason, message).await;
    }
    let conditions = failure.map_or(Value::Null, |condition| json!([condition]));
    object::set_field(&mut plan.status, "conditions", conditions);
    set_status(registry, "apps", "replicasets", key, MANAGER, &plan.status).await?;
    managed
}

/// Creates and deletes the pods of a plan.
async fn manage(registry: &Registry, replica_set: &Value, plan: &Plan) -> ApiResult<()> {
    let pods = registry.builtin("", "pods")?;
    let namespace = object::namespace(replica_set);
    for _ in 0..plan.create.min(BURST) {
        let target = Target::new(&pods, namespace, "");
        let pod = registry
            .create(&target, pod_of(replica_set), &mut Write::by(MANAGER))
            .await?;
        let message = format!("Created pod: {}", object::name(&pod));
        record(registry, replica_set, "SuccessfulCreate", message).await;
    }
    for name in &plan.delete {
        let target = Target::new(&pods, namespace, name);
        registry
            .delete(&target, &DeleteOptions::default(), &Write::by(MANAGER))
            .await?;
        let message = format!("Deleted pod: {name}");
        record(registry, replica_set, "SuccessfulDelete", message).await;
    }
    Ok(())
}

async fn record(registry: &Registry, replica_set: &Value, reason: &str, message: String) {
    let content = EventContent {
        component: COMPONENT,
        reason,
        message,
    };
    record_event(registry, replica_set, &content).await;
}

/// Returns the condition `ReplicaFailure` of a ReplicaSet, if it has one.
pub(super) fn find_failure(replica_set: &Value) -> Option<&Value> {
    let mut conditions = object::items(replica_set, &["status", "conditions"]).iter();
    conditions.find(|condition| object::text(condition, &["type"]) == REPLICA_FAILURE)
}

/// Returns the condition `ReplicaFailure` after the pods of a plan were created and deleted, or
/// `None` if that did not fail. As in Kubernetes, the condition keeps the first error.
fn failure_condition(
    replica_set: &Value,
    plan: &Plan,
    error: Option<&ApiError>,
    registry: &Registry,
) -> Option<Value> {
    let error = error?;
    if let Some(present) = find_failure(replica_set) {
        return Some(present.clone());
    }
    let reason = if plan.create > 0 {
        FAILED_CREATE
    } else {
        "FailedDelete"
    };
    Some(json!({
        "type": REPLICA_FAILURE, "status": "True", "reason": reason, "message": error.message(),
        "lastTransitionTime": registry.clock.now_rfc3339(),
    }))
}

fn pod_of(replica_set: &Value) -> Value {
    let template = object::at(replica_set, &["spec", "template"]);
    let mut metadata = object::at(template, &["metadata"]).clone();
    object::set(
        &mut metadata,
        &["generateName"],
        json!(format!("{}-", object::name(replica_set))),
    );
    object::set(
        &mut metadata,
        &["ownerReferences"],
        json!([owned_by(replica_set)]),
    );
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
        "spec": object::at(template, &["spec"]),
    })
}

fn is_active(pod: &Value) -> bool {
    let phase = object::text(pod, &["status", "phase"]);
    !object::is_deleting(pod) && !matches!(phase, "Failed" | "Succeeded")
}

fn is_ready(pod: &Value) -> bool {
    object::items(pod, &["status", "conditions"])
        .iter()
        .any(|condition| {
            object::text(condition, &["type"]) == "Ready"
                && object::text(condition, &["status"]) == "True"
        })
}

fn carries(pod: &Value, labels: &Value) -> bool {
    let own = object::at(pod, &["metadata", "labels"]);
    labels
        .as_object()
        .into_iter()
        .flatten()
        .all(|(key, value)| own.get(key) == Some(value))
}

fn count(number: usize) -> Value {
    counter(i64::try_from(number).unwrap_or(i64::MAX))
}
