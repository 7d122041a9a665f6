//! The kind.

use opkit::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A fleet of identical robots.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(
    group = "robot.opkit.dev",
    version = "v1",
    kind = "Robot",
    namespaced,
    shortname = "rb",
    status = "RobotStatus"
)]
#[kube(scale(
    spec_replicas_path = ".spec.replicas",
    status_replicas_path = ".status.readyReplicas"
))]
#[kube(printcolumn(name = "Desired", type_ = "integer", json_path = ".spec.replicas"))]
#[kube(printcolumn(
    name = "Available",
    type_ = "integer",
    json_path = ".status.readyReplicas"
))]
#[kube(printcolumn(
    name = "Ready",
    type_ = "string",
    json_path = ".status.conditions[?(@.type=='Ready')].status"
))]
#[kube(printcolumn(
    name = "Age",
    type_ = "date",
    json_path = ".metadata.creationTimestamp"
))]
#[kube(printcolumn(
    name = "Image",
    type_ = "string",
    json_path = ".spec.image",
    priority = 1
))]
#[serde(rename_all = "camelCase")]
pub struct RobotSpec {
    /// Image that every robot runs.
    pub image: String,
    /// How many robots to keep.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 100))]
    pub replicas: i32,
    /// What every robot runs instead of its image's entry point.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Vec<String>>,
}

fn one() -> i32 {
    1
}

/// What is known of a fleet.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct RobotStatus {
    /// How many robots are ready.
    pub ready_replicas: i32,
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// Whether all robots are ready, and why not.
    pub conditions: Conditions,
}
