//! The registry of metrics and its text formats, and counters, gauges and histograms with labels
//! for an operator's own metrics.

mod labelled;
mod text;

use std::fmt;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use prometheus_client::encoding::text as openmetrics;
use prometheus_client::registry::Registry;

pub use self::labelled::{Counter, Gauge, Histogram, Labelled};

/// Registry of opkit's metrics and of an operator's own metrics. A clone is another handle to the
/// same registry.
///
/// # Examples
/// ```
/// # use opkit_servers as opkit;
/// use opkit::metrics::{Counter, MetricsRegistry};
///
/// let registry = MetricsRegistry::default();
/// let orders = Counter::new("shop_orders", "Orders taken", ["shop"]);
/// registry.register(&orders);
/// orders.with(["web"]).inc();
/// assert!(registry.encode().contains(r#"shop_orders_total{shop="web"} 1"#));
/// ```
#[derive(Clone, Default)]
pub struct MetricsRegistry {
    registry: Arc<Mutex<Registry>>,
}

impl fmt::Debug for MetricsRegistry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricsRegistry").finish_non_exhaustive()
    }
}

impl MetricsRegistry {
    /// Locks and returns the `prometheus_client` registry, to register metrics of that crate.
    pub fn lock(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock()
    }

    /// Returns all metrics in the OpenMetrics text format, which ends with `# EOF`.
    pub fn encode(&self) -> String {
        let mut encoded = String::new();
        // Writing to a string does not fail.
        let _ = openmetrics::encode(&mut encoded, &self.registry.lock());
        text::merge_families(encoded)
    }

    /// Returns all metrics in Prometheus' text format 0.0.4.
    pub fn encode_prometheus(&self) -> String {
        text::to_prometheus(&self.encode())
    }
}

/// Upper bounds in seconds of histogram buckets for durations; controller-runtime's values.
pub const DURATION_BUCKETS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9,
    1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0,
    25.0, 30.0, 40.0, 50.0, 60.0,
];
