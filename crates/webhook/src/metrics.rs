//! Metrics of webhooks, with controller-runtime's names.

use std::time::Duration;

use opkit_servers::metrics::MetricsRegistry;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

/// Metrics of all webhooks of an operator. A clone is another handle to the same numbers.
#[derive(Debug, Clone)]
pub(crate) struct WebhookMetrics {
    latency: Family<PathLabel, Histogram, Latency>,
    requests: Family<RequestLabels, Counter>,
    in_flight: Family<PathLabel, Gauge>,
    panics: Counter,
    conversion_panics: Counter,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PathLabel {
    webhook: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    webhook: String,
    code: u32,
}

/// Constructor of the histograms, with controller-runtime's buckets: 10 ns to 1000 s.
#[derive(Debug, Clone)]
struct Latency;

impl MetricConstructor<Histogram> for Latency {
    fn new_metric(&self) -> Histogram {
        Histogram::new(exponential_buckets(10e-9, 10.0, 12))
    }
}

/// Metrics of one path.
#[derive(Debug, Clone)]
pub(crate) struct PathMetrics {
    path: String,
    latency: Histogram,
    in_flight: Gauge,
    ok: Counter,
    requests: Family<RequestLabels, Counter>,
}

impl Default for WebhookMetrics {
    fn default() -> Self {
        Self {
            latency: Family::new_with_constructor(Latency),
            requests: Family::default(),
            in_flight: Family::default(),
            panics: Counter::default(),
            conversion_panics: Counter::default(),
        }
    }
}

impl WebhookMetrics {
    pub(crate) fn register(&self, registry: &MetricsRegistry) {
        let mut registry = registry.lock();
        registry.register(
            "controller_runtime_webhook_latency_seconds",
            "Histogram of the latency of processing admission requests",
            self.latency.clone(),
        );
        registry.register(
            "controller_runtime_webhook_requests",
            "Total number of admission requests by HTTP status code",
            self.requests.clone(),
        );
        registry.register(
            "controller_runtime_webhook_requests_in_flight",
            "Current number of admission requests being served",
            self.in_flight.clone(),
        );
        registry.register(
            "controller_runtime_webhook_panics",
            "Total number of webhook panics",
            self.panics.clone(),
        );
        registry.register(
            "controller_runtime_conversion_webhook_panics",
            "Total number of conversion webhook panics",
            self.conversion_panics.clone(),
        );
    }

    /// Returns the metrics of one path. The counters of the most likely status codes exist from the
    /// start.
    pub(crate) fn path(&self, path: &str) -> PathMetrics {
        let label = PathLabel {
            webhook: path.to_owned(),
        };
        let counter = |code| {
            self.requests.get_or_create_owned(&RequestLabels {
                webhook: path.to_owned(),
                code,
            })
        };
        counter(500);
        PathMetrics {
            path: path.to_owned(),
            latency: self.latency.get_or_create_owned(&label),
            in_flight: self.in_flight.get_or_create_owned(&label),
            ok: counter(200),
            requests: self.requests.clone(),
        }
    }

    pub(crate) fn count_panic(&self) {
        self.panics.inc();
    }

    pub(crate) fn count_conversion_panic(&self) {
        self.conversion_panics.inc();
    }
}

impl PathMetrics {
    /// Counts a request that is in progress until the returned guard is dropped.
    pub(crate) fn start(&self) -> InFlight<'_> {
        self.in_flight.inc();
        InFlight(&self.in_flight)
    }

    pub(crate) fn observe(&self, code: u16, time: Duration) {
        self.latency.observe(time.as_secs_f64());
        if code == 200 {
            self.ok.inc();
            return;
        }
        let labels = RequestLabels {
            webhook: self.path.clone(),
            code: code.into(),
        };
        self.requests.get_or_create_owned(&labels).inc();
    }
}

/// Request in progress.
#[derive(Debug)]
pub(crate) struct InFlight<'a>(&'a Gauge);

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.0.dec();
    }
}
