//! Messages of an operator's debug endpoint.
//!
//! The operator serializes them, `opkit explain` and `opkit dev` decode them. A message of another
//! version may lack fields, which then have their default. The endpoint serves
//! [`Activity`] at [`RECONCILES_PATH`], and [`Explanation`] or, with an error status, [`Refusal`]
//! at [`EXPLAIN_PATH`].

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Path of the latest reconciles of all objects.
pub const RECONCILES_PATH: &str = "/debug/reconciles";

/// Path of the latest reconciles of one object. The query has its `kind`, its `name` and, as an
/// option, its `namespace`.
pub const EXPLAIN_PATH: &str = "/debug/explain";

/// Latest reconciles of an operator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Activity {
    /// Name of the operator.
    pub operator: String,
    /// Names of its controllers.
    pub controllers: Vec<String>,
    /// Whether the operator has filled its caches and started its workers.
    pub running: bool,
    /// Number of reconciles since the start.
    pub total: u64,
    /// Latest reconciles, oldest first.
    pub reconciles: Vec<Reconcile>,
    /// Last reconcile of each object.
    pub last_of_each: Vec<Reconcile>,
}

/// Latest reconciles of the objects that match a query.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Explanation {
    /// Name of the operator.
    pub operator: String,
    /// Reconciles of each object, oldest first.
    pub objects: Vec<Vec<Reconcile>>,
}

/// Error of a query.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    /// Text of the error.
    pub error: String,
    /// Kinds that the operator reconciles, if the query asked for another one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
}

/// One reconcile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reconcile {
    /// Name of the controller.
    pub controller: String,
    /// Kind of the object.
    pub kind: String,
    /// Name of the object's cluster, if the operator works on several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// Namespace of the object.
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: String,
    /// Number of this reconcile among those of the object, from 1.
    pub number: u64,
    /// Causes, one sentence each.
    pub causes: Vec<String>,
    /// Number of reads from the cache.
    pub cache_reads: u32,
    /// Number of reads from the server.
    pub live_reads: u32,
    /// Writes, in their order.
    pub writes: Vec<Write>,
    /// Time of the start.
    pub started: Timestamp,
    /// Duration in seconds.
    pub duration_seconds: f64,
    /// Result.
    pub result: Outcome,
    /// Loop that the reconcile is part of.
    pub hot_loop: Option<HotLoop>,
}

/// Write of a reconcile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Write {
    /// Verb, such as `apply`.
    pub verb: String,
    /// Kind of the object.
    pub kind: String,
    /// Namespace of the object.
    pub namespace: Option<String>,
    /// Name of the object.
    pub name: String,
    /// Name of the subresource; empty for the object itself.
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
    /// Success; the next change leads to the next reconcile.
    Ok,
    /// Success; the object is reconciled again after a delay.
    Requeue {
        /// Delay in seconds.
        after_seconds: f64,
    },
    /// Failure.
    Error {
        /// Error and its causes in one line.
        message: String,
        /// Delay until the retry in seconds; `None` if the retry waits for the next change.
        retry_seconds: Option<f64>,
    },
}

/// Loop of reconciles that cause each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HotLoop {
    /// Object whose change leads to the next reconcile, such as `Deployment robot-one`.
    pub object: String,
    /// Path of the field that keeps changing; empty if it is unknown.
    pub field: String,
    /// Field manager that keeps changing the field; `None` if it is unknown.
    pub manager: Option<String>,
    /// Cause of the last reconcile, if the field is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// Whether the object is a child that one reconcile creates and the next one prunes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_created_and_pruned: bool,
    /// Number of reconciles of the loop so far.
    pub count: u32,
}

#[cfg(test)]
mod tests;
