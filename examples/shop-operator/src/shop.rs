//! The kind.

use opkit::prelude::*;

/// A web shop.
#[opkit::kind(group = "shop.opkit.dev", version = "v1", namespaced, status = ShopStatus)]
#[opkit(
    printcolumn("Ready", condition = "Ready"),
    printcolumn("Reason", path = ".status.conditions[?(@.type=='Ready')].reason")
)]
pub struct ShopSpec {
    /// Image of the web servers.
    pub image: String,
    /// How many web servers to keep.
    #[opkit(default = 1, min = 1, max = 50)]
    pub replicas: i32,
    /// Whether there is a sale: then there are twice as many.
    #[opkit(default = false)]
    pub sale: bool,
    /// The ConfigMap with the environment of the web servers, in the same namespace.
    pub config_map: String,
    /// The database; without one, orders are forgotten.
    pub database: Option<Database>,
    /// Under which name the world sees the shop; without one, only the cluster does.
    #[opkit(printcolumn = "Host")]
    pub host: Option<String>,
}

/// The database of a shop.
#[opkit::schema]
pub struct Database {
    /// Its image.
    pub image: String,
}

/// What is known of a shop.
#[opkit::status]
pub struct ShopStatus {
    /// How many web servers are ready.
    pub ready_replicas: i32,
    /// The generation of the spec that this status is about.
    pub observed_generation: Option<i64>,
    /// Whether the shop is open (`Ready`), and has its web servers (`Scaled`).
    pub conditions: Conditions,
}
