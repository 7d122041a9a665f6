//! Messages of an operator to the command: those of its debug endpoint, and its plan.
//!
//! The operator serializes the messages; `opkit explain` and `opkit dev` decode them. A message of
//! another version of the operator may lack fields, which then have their default values. The
//! endpoint serves [`Activity`] at [`RECONCILES_PATH`], and [`Explanation`] at [`EXPLAIN_PATH`]. A
//! query at [`EXPLAIN_PATH`] that fails has an error status and a [`Refusal`] as its body.

mod plan;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

pub use plan::{
    FailedReconcile, ObjectName, OperatorPlan, PlannedEffect, PlannedObject, ReconciledKind,
};

/// Path of the endpoint that returns the latest reconciles of all objects.
pub const RECONCILES_PATH: &str = "/debug/reconciles";

/// Path of the endpoint that returns the latest reconciles of one object. The query parameters are
/// the `kind`, the `name` and optionally the `namespace` of the object.
pub const EXPLAIN_PATH: &str = "/debug/explain";

/// Latest reconciles of an operator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Activity {
    /// Name of the operator.
    pub operator: String,
    /// Names of the operator's controllers.
    pub controllers: Vec<String>,
    /// Whether the operator has filled its caches and started its workers.
    pub running: bool,
    /// Number of reconciles since the operator started.
    pub total: u64,
    /// Latest reconciles of all objects, oldest first.
    pub reconciles: Vec<Reconcile>,
    /// Last reconcile of each object.
    pub last_of_each: Vec<Reconcile>,
    /// Requests in the queues of the controllers.
    pub queue: Vec<QueuedRequest>,
    /// Calls of the operator's webhooks.
    pub webhooks: Vec<WebhookCalls>,
}

/// A request in the queue of a controller.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct QueuedRequest {
    /// Name of the controller.
    pub controller: String,
    /// Namespace of the object; `None` if the object is cluster-scoped.
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: String,
    /// Whether the object is being reconciled.
    pub in_work: bool,
    /// Time for which the object has been reconciled or, if it is not being reconciled, ready, in
    /// seconds.
    pub age_seconds: f64,
    /// Time until the request is ready, in seconds; `None` if the request is not delayed.
    pub due_seconds: Option<f64>,
    /// Number of failures since the last success.
    pub failures: u32,
}

/// Calls of one webhook since the operator started.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct WebhookCalls {
    /// Path of the webhook, such as `/validate-robot-opkit-dev-v1-robot`.
    pub path: String,
    /// Number of requests.
    pub requests: u64,
    /// Number of requests that are in progress.
    pub in_flight: u64,
    /// Mean duration of a request in seconds.
    pub mean_seconds: f64,
}

/// Latest reconciles of the objects that match a query.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Explanation {
    /// Name of the operator.
    pub operator: String,
    /// Latest reconciles of each object, oldest first.
    pub objects: Vec<Vec<Reconcile>>,
    /// Owners of the objects, if the operator is sharded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub owners: Vec<Owner>,
}

/// Replica of a sharded operator that owns an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Owner {
    /// Namespace of the object; `None` if the object is cluster-scoped.
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: String,
    /// Hash of the object's UID or namespace, in hexadecimal.
    pub hash: String,
    /// Number of the object's slot, from 0.
    pub slot: u32,
    /// Number of all slots.
    pub of: u32,
    /// Identity of the replica that owns the slot; `None` if no replica does at present.
    pub replica: Option<String>,
}

/// Response to a query that failed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    /// Message of the error.
    pub error: String,
    /// Kinds that the operator reconciles, if the query asked for another kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
}

/// Record of one reconcile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reconcile {
    /// Name of the controller.
    pub controller: String,
    /// Kind of the object.
    pub kind: String,
    /// Name of the cluster that has the object, if the operator works on several clusters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Namespace of the object; `None` if the object is cluster-scoped.
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: String,
    /// Number of this reconcile among the reconciles of the object, from 1.
    pub number: u64,
    /// Causes of the reconcile, one sentence each.
    pub causes: Vec<String>,
    /// Number of objects or lists that the reconcile read from the cache.
    pub cache_reads: u32,
    /// Number of objects or lists that the reconcile read from the API server.
    pub live_reads: u32,
    /// Writes to the API server, in the order in which they were sent.
    pub writes: Vec<Write>,
    /// Time at which the reconcile started.
    pub started: Timestamp,
    /// Duration of the reconcile in seconds.
    pub duration_seconds: f64,
    /// Result of the reconcile.
    pub result: Outcome,
    /// Loop of reconciles that this reconcile is part of, if any.
    pub hot_loop: Option<HotLoop>,
}

/// One write of a reconcile to the API server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Write {
    /// Verb of the request, such as `apply`.
    pub verb: String,
    /// Kind of the object.
    pub kind: String,
    /// Namespace of the object; `None` if the object is cluster-scoped.
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: String,
    /// Name of the subresource, such as `status`; empty if the object itself was written.
    pub subresource: String,
}

/// Result of a reconcile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "outcome",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
pub enum Outcome {
    /// The reconcile succeeded. The object is reconciled again at the next change.
    Ok,
    /// The reconcile succeeded. The object is reconciled again after a delay, or at the next
    /// change.
    Requeue {
        /// Delay until the next reconcile, in seconds.
        after_seconds: f64,
    },
    /// The reconcile failed.
    Error {
        /// The error and its causes in one line.
        message: String,
        /// Delay until the retry in seconds; `None` if the object is retried only at the next
        /// change.
        retry_seconds: Option<f64>,
    },
}

/// Reconciles of one object that follow each other without a pause, such as because a field keeps
/// changing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HotLoop {
    /// Object whose change causes the next reconcile, such as `Deployment robot-one`.
    pub object: String,
    /// Path of the field that keeps changing; empty if the field is unknown.
    pub field: String,
    /// Field manager that keeps changing the field; `None` if the field manager is unknown.
    pub manager: Option<String>,
    /// Cause of the last reconcile, if the field is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// Whether the object is a child that one reconcile creates and the next reconcile deletes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_created_and_pruned: bool,
    /// Number of reconciles in the loop so far.
    pub count: u32,
}

#[cfg(test)]
mod tests;
