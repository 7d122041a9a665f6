//! The warehouse: a system outside of the cluster that reports no changes.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// Numbers of items by product, in memory. A clone is another handle to the same warehouse.
#[derive(Debug, Clone, Default)]
pub struct Warehouse {
    stock: Arc<Mutex<HashMap<String, i64>>>,
}

impl Warehouse {
    /// Returns the number of items of a product.
    pub fn stock(&self, product: &str) -> i64 {
        self.stock.lock().get(product).copied().unwrap_or_default()
    }

    /// Sets the number of items of a product.
    pub fn set_stock(&self, product: impl Into<String>, items: i64) {
        self.stock.lock().insert(product.into(), items);
    }
}
