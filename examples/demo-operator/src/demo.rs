//! The kind `Demo`.

use opkit::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A size and a type that the operator writes to a ConfigMap.
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
    /// Size to write.
    pub size: i32,
    /// Type to write.
    #[serde(rename = "type")]
    pub type_: String,
    /// Name of the ConfigMap to write.
    pub config_map_name: String,
}

/// Observed state of a demo.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct DemoStatus {
    /// Generation of the spec that this status belongs to.
    pub observed_generation: Option<i64>,
    /// `Ready`: whether the ConfigMap is written, with a reason.
    pub conditions: Conditions,
}
