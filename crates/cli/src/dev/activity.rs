//! What a running operator does, from its debug endpoint.

use anyhow::Result;
use jiff::Timestamp;
use serde::Deserialize;

use crate::endpoint;

/// One run of a reconcile function.
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

/// How it ended.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Outcome {
    /// What went wrong, if anything.
    pub(crate) message: Option<String>,
}

/// What the endpoint answers, as far as it is needed here.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Activity {
    pub(crate) controllers: Vec<String>,
    /// Whether the operator has filled its caches and works.
    pub(crate) running: bool,
    /// The last reconcile of each object.
    pub(crate) last_of_each: Vec<Reconcile>,
}

/// Asks the endpoint at `address`.
pub(crate) async fn fetch(address: &str) -> Result<Activity> {
    let answer = endpoint::get(address, "/debug/reconciles").await?;
    Ok(serde_json::from_slice(&answer.body)?)
}
