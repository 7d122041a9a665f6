//! The kind `Product`.

use opkit::prelude::*;

/// A product of the catalog.
#[opkit::kind(group = "catalog.opkit.dev", version = "v1", namespaced, status = ProductStatus)]
#[opkit(
    printcolumn("Price", path = ".spec.price"),
    printcolumn("Stock", path = ".status.stock")
)]
pub struct ProductSpec {
    /// Price, in cents.
    #[opkit(min = 0)]
    pub price: i64,
}

/// Observed state of a product.
#[opkit::status]
pub struct ProductStatus {
    /// Number of items in the warehouse.
    pub stock: Option<i64>,
    /// Generation of the spec that this status belongs to.
    pub observed_generation: Option<i64>,
    /// `Ready`: whether the warehouse was asked.
    pub conditions: Conditions,
}
