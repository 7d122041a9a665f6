//! The kind `Shop`.

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
    /// Number of web servers to run.
    #[opkit(default = 1, min = 1, max = 50)]
    pub replicas: i32,
    /// Whether there is a sale, which doubles the number of web servers.
    #[opkit(default = false)]
    pub sale: bool,
    /// ConfigMap with the environment of the web servers, in the same namespace.
    pub config_map: String,
    /// Database of the shop; without one, orders are not stored.
    pub database: Option<Database>,
    /// Host name of the shop; without one, it is reachable only inside the cluster.
    #[opkit(printcolumn = "Host")]
    pub host: Option<String>,
}

/// Database of a shop.
#[opkit::schema]
pub struct Database {
    /// Image of the database.
    pub image: String,
}

/// Observed state of a shop.
#[opkit::status]
pub struct ShopStatus {
    /// Number of web servers that are ready.
    pub ready_replicas: i32,
    /// Generation of the spec that this status belongs to.
    pub observed_generation: Option<i64>,
    /// `Ready`: whether the shop is open; `Scaled`: whether the number of web servers is right.
    pub conditions: Conditions,
}
