//! The metrics of controllers. They have controller-runtime's names, so that existing dashboards
//! work.

use std::time::Duration;

use opkit_servers::metrics::{DURATION_BUCKETS, MetricsRegistry};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

type Labels = Vec<(&'static str, String)>;
type Counters = Family<Labels, Counter>;
type Gauges = Family<Labels, Gauge>;
type Histograms = Family<Labels, Histogram, Buckets>;

#[derive(Clone)]
struct Buckets;

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(DURATION_BUCKETS)
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
    exhausted: Counters,
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
            exhausted: Counters::default(),
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
            "opkit_retries_exhausted",
            "Total number of times that an object was not retried any more, per controller",
            metrics.exhausted.clone(),
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

    /// Returns the metrics of one controller. All of its metrics exist from the start, with the
    /// value 0.
    pub(crate) fn of(
        &self,
        controller: &str,
        max_concurrent_reconciles: usize,
    ) -> ControllerMetrics {
        let labels = vec![("controller", controller.to_owned())];
        let result = |result: &str| {
            let labels = vec![
                ("controller", controller.to_owned()),
                ("result", result.to_owned()),
            ];
            self.total.get_or_create_owned(&labels)
        };
        // This result does not occur in opkit, but dashboards expect its series.
        result("requeue");
        let max = i64::try_from(max_concurrent_reconciles).unwrap_or(i64::MAX);
        self.max.get_or_create(&labels).set(max);
        ControllerMetrics {
            success: result("success"),
            error: result("error"),
            requeue_after: result("requeue_after"),
            errors: self.errors.get_or_create_owned(&labels),
            terminal: self.terminal.get_or_create_owned(&labels),
            panics: self.panics.get_or_create_owned(&labels),
            timeouts: self.timeouts.get_or_create_owned(&labels),
            hot_loops: self.hot_loops.get_or_create_owned(&labels),
            exhausted: self.exhausted.get_or_create_owned(&labels),
            time: self.time.get_or_create_owned(&labels),
            active: self.active.get_or_create_owned(&labels),
        }
    }
}

/// The metrics of one controller.
#[derive(Debug, Clone)]
pub(crate) struct ControllerMetrics {
    pub(crate) success: Counter,
    pub(crate) error: Counter,
    pub(crate) requeue_after: Counter,
    pub(crate) errors: Counter,
    pub(crate) terminal: Counter,
    pub(crate) panics: Counter,
    pub(crate) timeouts: Counter,
    pub(crate) hot_loops: Counter,
    pub(crate) exhausted: Counter,
    time: Histogram,
    pub(crate) active: Gauge,
}

impl ControllerMetrics {
    pub(crate) fn took(&self, duration: Duration) {
        self.time.observe(duration.as_secs_f64());
    }
}
