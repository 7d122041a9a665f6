//! The kind.

use opkit::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A bucket in the object store, of the same name as the object.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(
    group = "bucket.opkit.dev",
    version = "v1",
    kind = "Bucket",
    namespaced,
    status = "BucketStatus"
)]
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
#[kube(printcolumn(name = "URL", type_ = "string", json_path = ".status.url"))]
#[serde(rename_all = "camelCase")]
pub struct BucketSpec {
    /// Whether former versions of its objects are kept.
    #[serde(default)]
    pub versioning: bool,
    /// How much may be in it.
    #[serde(default = "ten")]
    #[schemars(range(min = 1))]
    pub quota_gib: i32,
}

fn ten() -> i32 {
    10
}

/// What is known of a bucket.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct BucketStatus {
    /// Where it is.
    pub url: Option<String>,
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// Whether the bucket is as asked for, and why not.
    pub conditions: Conditions,
}
