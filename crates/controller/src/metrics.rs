//! Metrics: those of controllers, with controller-runtime's names, so that dashboards carry over,
//! and those of an operator's own, with labels.

mod labelled;
mod text;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use prometheus_client::encoding::text as openmetrics;
use prometheus_client::metrics::counter::Counter as PlainCounter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge as PlainGauge;
use prometheus_client::metrics::histogram::Histogram as PlainHistogram;
use prometheus_client::registry::Registry;

pub use self::labelled::{Counter, Gauge, Histogram, Labelled};

/// Where metrics are registered: opkit's, and an operator's own. Cloning gives another handle on
/// the same registry.
///
/// # Examples
/// ```
/// # use opkit_controller as opkit;
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
    /// Returns the registry itself, for metrics of `prometheus_client`.
    pub fn lock(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock()
    }

    /// All metrics as OpenMetrics text, which ends with `# EOF`.
    pub fn encode(&self) -> String {
        let mut encoded = String::new();
        // Writing to a string does not fail.
        let _ = openmetrics::encode(&mut encoded, &self.registry.lock());
        text::merged(encoded)
    }

    /// All metrics in Prometheus' text format 0.0.4.
    pub fn encode_prometheus(&self) -> String {
        text::prometheus(&self.encode())
    }
}

type Labels = Vec<(&'static str, String)>;
type Counters = Family<Labels, PlainCounter>;
type Gauges = Family<Labels, PlainGauge>;
type Histograms = Family<Labels, PlainHistogram, Buckets>;

/// controller-runtime's.
const SECONDS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9,
    1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0,
    25.0, 30.0, 40.0, 50.0, 60.0,
];

#[derive(Clone)]
struct Buckets;

impl MetricConstructor<PlainHistogram> for Buckets {
    fn new_metric(&self) -> PlainHistogram {
        PlainHistogram::new(SECONDS)
    }
}

/// The metrics of all controllers of a manager.
pub(crate) struct ReconcileMetrics {
    total: Counters,
    errors: Counters,
    terminal: Counters,
    panics: Counters,
    timeouts: Counters,
    hot_loops: Counters,
    time: Histograms,
    max: Gauges,
    active: Gauges,
}

impl ReconcileMetrics {
    pub(crate) fn new(registry: &MetricsRegistry) -> Self {
        let metrics = Self {
            total: Counters::default(),
            errors: Counters::default(),
            terminal: Counters::default(),
            panics: Counters::default(),
            timeouts: Counters::default(),
            hot_loops: Counters::default(),
            time: Histograms::new_with_constructor(Buckets),
            max: Gauges::default(),
            active: Gauges::default(),
        };
        let mut registry = registry.lock();
        // A counter's name gets `_total` when it is encoded.
        let counters = [
            (
                "reconcile",
                "Total number of reconciliations per controller",
                &metrics.total,
            ),
            (
                "reconcile_errors",
                "Total number of reconciliation errors per controller",
                &metrics.errors,
            ),
            (
                "terminal_reconcile_errors",
                "Total number of terminal reconciliation errors per controller",
                &metrics.terminal,
            ),
            (
                "reconcile_panics",
                "Total number of reconciliation panics per controller",
                &metrics.panics,
            ),
            (
                "reconcile_timeouts",
                "Total number of reconciliation timeouts per controller",
                &metrics.timeouts,
            ),
        ];
        for (name, help, family) in counters {
            registry.register(format!("controller_runtime_{name}"), help, family.clone());
        }
        registry.register(
            "opkit_hot_loop_reconciles",
            "Total number of reconciliations that were part of a loop, per controller",
            metrics.hot_loops.clone(),
        );
        registry.register(
            "controller_runtime_reconcile_time_seconds",
            "Length of time per reconciliation per controller",
            metrics.time.clone(),
        );
        registry.register(
            "controller_runtime_max_concurrent_reconciles",
            "Maximum number of concurrent reconciles per controller",
            metrics.max.clone(),
        );
        registry.register(
            "controller_runtime_active_workers",
            "Number of currently used workers per controller",
            metrics.active.clone(),
        );
        metrics
    }

    /// The metrics of one controller, all there from the start with their zeroes.
    pub(crate) fn of(&self, controller: &str, max_concurrent_reconciles: usize) -> Measured {
        let labels = vec![("controller", controller.to_owned())];
        let result = |result: &str| {
            let labels = vec![
                ("controller", controller.to_owned()),
                ("result", result.to_owned()),
            ];
            self.total.get_or_create_owned(&labels)
        };
        // Never used here; a dashboard expects it.
        result("requeue");
        let max = i64::try_from(max_concurrent_reconciles).unwrap_or(i64::MAX);
        self.max.get_or_create(&labels).set(max);
        Measured {
            success: result("success"),
            error: result("error"),
            requeue_after: result("requeue_after"),
            errors: self.errors.get_or_create_owned(&labels),
            terminal: self.terminal.get_or_create_owned(&labels),
            panics: self.panics.get_or_create_owned(&labels),
            timeouts: self.timeouts.get_or_create_owned(&labels),
            hot_loops: self.hot_loops.get_or_create_owned(&labels),
            time: self.time.get_or_create_owned(&labels),
            active: self.active.get_or_create_owned(&labels),
        }
    }
}

/// The metrics of one controller.
#[derive(Debug, Clone)]
pub(crate) struct Measured {
    pub(crate) success: PlainCounter,
    pub(crate) error: PlainCounter,
    pub(crate) requeue_after: PlainCounter,
    pub(crate) errors: PlainCounter,
    pub(crate) terminal: PlainCounter,
    pub(crate) panics: PlainCounter,
    pub(crate) timeouts: PlainCounter,
    pub(crate) hot_loops: PlainCounter,
    time: PlainHistogram,
    pub(crate) active: PlainGauge,
}

impl Measured {
    pub(crate) fn took(&self, duration: Duration) {
        self.time.observe(duration.as_secs_f64());
    }
}
