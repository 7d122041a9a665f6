//! The kind.

use opkit::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Something with a size and a type, written down in a ConfigMap.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(
    group = "demo.opkit.dev",
    version = "v1",
    kind = "Demo",
    namespaced,
    status = "DemoStatus"
)]
#[kube(printcolumn(name = "Size", type_ = "integer", json_path = ".spec.size"))]
#[kube(printcolumn(name = "Type", type_ = "string", json_path = ".spec.type"))]
#[kube(printcolumn(
    name = "Ready",
    type_ = "string",
    json_path = ".status.conditions[?(@.type=='Ready')].status"
))]
#[kube(printcolumn(
    name = "Reason",
    type_ = "string",
    json_path = ".status.conditions[?(@.type=='Ready')].reason"
))]
#[kube(printcolumn(
    name = "Age",
    type_ = "date",
    json_path = ".metadata.creationTimestamp"
))]
#[serde(rename_all = "camelCase")]
pub struct DemoSpec {
    /// How big it is.
    pub size: i32,
    /// What it is.
    #[serde(rename = "type")]
    pub type_: String,
    /// The name of the ConfigMap to write.
    pub config_map_name: String,
}

/// What is known of a demo.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct DemoStatus {
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// Whether the ConfigMap is written, and why not.
    pub conditions: Conditions,
}
