//! The kind.

use opkit::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A web shop.
#[derive(CustomResource, Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[kube(
    group = "shop.opkit.dev",
    version = "v1",
    kind = "Shop",
    namespaced,
    status = "ShopStatus"
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
#[kube(printcolumn(name = "Host", type_ = "string", json_path = ".spec.host"))]
#[serde(rename_all = "camelCase")]
pub struct ShopSpec {
    /// Image of the web servers.
    pub image: String,
    /// How many web servers to keep.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 50))]
    pub replicas: i32,
    /// Whether there is a sale: then there are twice as many.
    #[serde(default)]
    pub sale: bool,
    /// The ConfigMap with the environment of the web servers, in the same namespace.
    pub config_map: String,
    /// The database; without one, orders are forgotten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<Database>,
    /// Under which name the world sees the shop; without one, only the cluster does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

/// The database of a shop.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug)]
#[serde(rename_all = "camelCase")]
pub struct Database {
    /// Its image.
    pub image: String,
}

fn one() -> i32 {
    1
}

/// What is known of a shop.
#[derive(Serialize, Deserialize, JsonSchema, Clone, Debug, Default)]
#[serde(rename_all = "camelCase", default)]
pub struct ShopStatus {
    /// How many web servers are ready.
    pub ready_replicas: i32,
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// Whether the shop is open (`Ready`), and has its web servers (`Scaled`).
    pub conditions: Conditions,
}
