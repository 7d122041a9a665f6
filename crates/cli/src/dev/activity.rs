//! Activity of a running operator, read from its debug endpoint.

use anyhow::Result;
use jiff::Timestamp;
use serde::Deserialize;

use crate::endpoint;

/// One reconcile.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Reconcile {
    pub(crate) kind: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    pub(crate) causes: Vec<String>,
    pub(crate) started: Timestamp,
    pub(crate) duration_seconds: f64,
    pub(crate) result: Outcome,
}

/// Result of a reconcile.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Outcome {
    /// Error text, if the reconcile failed.
    pub(crate) message: Option<String>,
}

/// Response of the endpoint, limited to the fields that are used here.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Activity {
    pub(crate) controllers: Vec<String>,
    /// Whether the operator has filled its caches and started its workers.
    pub(crate) running: bool,
    /// Last reconcile of each object.
    pub(crate) last_of_each: Vec<Reconcile>,
}

/// Requests the activity from the endpoint at `address`.
pub(crate) async fn fetch(address: &str) -> Result<Activity> {
    let response = endpoint::get(address, "/debug/reconciles").await?;
    Ok(serde_json::from_slice(&response.body)?)
}
