//! Counters, gauges and histograms with labels, for operators that do not depend on
//! `prometheus_client`.

use std::fmt;
use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter as PlainCounter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge as PlainGauge;
use prometheus_client::metrics::histogram::Histogram as PlainHistogram;
use prometheus_client::registry::{Metric, Registry};

use super::{DURATION_BUCKETS, MetricsRegistry};

/// Label names and values of one time series.
type LabelSet = Vec<(String, String)>;
/// Gauge of one time series.
type F64Gauge = PlainGauge<f64, AtomicU64>;

/// Name, help text and label names of a metric.
#[derive(Debug, Clone)]
struct Descriptor<const N: usize> {
    name: String,
    help: String,
    labels: [String; N],
}

impl<const N: usize> Descriptor<N> {
    fn new(name: &str, help: &str, labels: [&str; N]) -> Self {
        Self {
            name: sanitize(name, ":"),
            help: help.to_owned(),
            labels: labels.map(|label| sanitize(label, "")),
        }
    }

    /// Returns the label names with these values.
    fn label_set(&self, values: [&str; N]) -> LabelSet {
        let labels = self.labels.iter().cloned();
        labels.zip(values.map(str::to_owned)).collect()
    }

    fn register(&self, registry: &mut Registry, metric: impl Metric) {
        registry.register(self.name.clone(), self.help.clone(), metric);
    }
}

/// Replaces characters that are not valid in a Prometheus name with `_`, because one invalid
/// character would make Prometheus reject all metrics of the process. `also` lists further valid
/// characters.
fn sanitize(name: &str, also: &str) -> String {
    let is_valid = |(n, c): (usize, char)| {
        c == '_' || also.contains(c) || c.is_ascii_alphabetic() || n > 0 && c.is_ascii_digit()
    };
    let characters = name.chars().enumerate();
    characters
        .map(|(n, c)| if is_valid((n, c)) { c } else { '_' })
        .collect()
}

/// Metric with labels that can be [registered](MetricsRegistry::register).
pub trait Labelled: sealed::Sealed + Clone + Send + 'static {}

mod sealed {
    use prometheus_client::registry::Registry;

    pub trait Sealed {
        fn register(&self, registry: &mut Registry);
    }
}

impl MetricsRegistry {
    /// Registers a metric, so that the metrics server serves it.
    pub fn register(&self, metric: &impl Labelled) {
        metric.register(&mut self.lock());
    }
}

/// Counter with labels: a number that only increases, for each combination of label values. A clone
/// is another handle to the same numbers. `_total` is appended to the name.
///
/// A combination of label values is kept as long as the process runs. So a label must have few
/// values, such as an engine or a result, and never names of objects. Characters that are not valid
/// in a name are replaced with `_`.
///
/// # Examples
/// ```
/// # use opkit_servers as opkit;
/// use opkit::metrics::{Counter, MetricsRegistry};
///
/// let backups = Counter::new("database_backups", "Backups that ended", ["engine", "result"]);
/// let registry = MetricsRegistry::default(); // an operator has one: `Operator::metric`
/// registry.register(&backups);
/// backups.with(["postgres", "ok"]).inc();
/// let text = registry.encode();
/// assert!(text.contains(r#"database_backups_total{engine="postgres",result="ok"} 1"#));
/// ```
#[derive(Debug, Clone)]
pub struct Counter<const N: usize = 0> {
    descriptor: Descriptor<N>,
    family: Family<LabelSet, PlainCounter>,
}

impl<const N: usize> Counter<N> {
    /// Creates a counter with these label names; `[]` creates a counter without labels.
    pub fn new(name: &str, help: &str, labels: [&str; N]) -> Self {
        Self {
            descriptor: Descriptor::new(name, help, labels),
            family: Family::default(),
        }
    }

    /// Returns the counter for these label values, in the order of the label names.
    pub fn with(&self, values: [&str; N]) -> PlainCounter {
        self.family
            .get_or_create_owned(&self.descriptor.label_set(values))
    }
}

impl<const N: usize> sealed::Sealed for Counter<N> {
    fn register(&self, registry: &mut Registry) {
        self.descriptor.register(registry, self.family.clone());
    }
}

impl<const N: usize> Labelled for Counter<N> {}

/// Gauge with labels: a number that increases and decreases, for each combination of label values.
/// The rules for names and labels are those of a [`Counter`], but `_total` is not appended.
///
/// # Examples
/// ```
/// # use opkit_servers as opkit;
/// use opkit::metrics::{Gauge, MetricsRegistry};
///
/// let sessions = Gauge::new("database_sessions", "Open sessions", ["engine"]);
/// let registry = MetricsRegistry::default();
/// registry.register(&sessions);
/// sessions.with(["mysql"]).set(7.0);
/// assert!(registry.encode().contains(r#"database_sessions{engine="mysql"} 7.0"#));
/// ```
#[derive(Debug, Clone)]
pub struct Gauge<const N: usize = 0> {
    descriptor: Descriptor<N>,
    family: Family<LabelSet, F64Gauge>,
}

impl<const N: usize> Gauge<N> {
    /// Creates a gauge with these label names; `[]` creates a gauge without labels.
    pub fn new(name: &str, help: &str, labels: [&str; N]) -> Self {
        Self {
            descriptor: Descriptor::new(name, help, labels),
            family: Family::default(),
        }
    }

    /// Returns the gauge for these label values, in the order of the label names.
    pub fn with(&self, values: [&str; N]) -> F64Gauge {
        self.family
            .get_or_create_owned(&self.descriptor.label_set(values))
    }
}

impl<const N: usize> sealed::Sealed for Gauge<N> {
    fn register(&self, registry: &mut Registry) {
        self.descriptor.register(registry, self.family.clone());
    }
}

impl<const N: usize> Labelled for Gauge<N> {}

/// Histogram with labels: the distribution of observed values, such as durations in seconds, for
/// each combination of label values. The rules for names and labels are those of a [`Counter`], but
/// `_total` is not appended.
///
/// # Examples
/// ```
/// # use opkit_servers as opkit;
/// use opkit::metrics::{Histogram, MetricsRegistry};
///
/// let durations = Histogram::new("backup_duration_seconds", "Duration of backups", ["engine"]);
/// let registry = MetricsRegistry::default();
/// registry.register(&durations);
/// durations.with(["mysql"]).observe(0.7);
/// assert!(registry.encode().contains(r#"backup_duration_seconds_count{engine="mysql"} 1"#));
/// ```
#[derive(Clone)]
pub struct Histogram<const N: usize = 0> {
    descriptor: Descriptor<N>,
    family: Family<LabelSet, PlainHistogram, BucketBounds>,
}

impl<const N: usize> fmt::Debug for Histogram<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram")
            .field("descriptor", &self.descriptor)
            .finish_non_exhaustive()
    }
}

/// Upper bounds of the buckets of a histogram.
#[derive(Clone)]
struct BucketBounds(Vec<f64>);

impl MetricConstructor<PlainHistogram> for BucketBounds {
    fn new_metric(&self) -> PlainHistogram {
        PlainHistogram::new(self.0.iter().copied())
    }
}

impl<const N: usize> Histogram<N> {
    /// Creates a histogram with these label names and with controller-runtime's buckets for
    /// durations of reconciles, 5 ms to 60 s.
    pub fn new(name: &str, help: &str, labels: [&str; N]) -> Self {
        Self::with_buckets(name, help, labels, DURATION_BUCKETS)
    }

    /// Creates a histogram with these label names and upper bounds of buckets.
    pub fn with_buckets(
        name: &str,
        help: &str,
        labels: [&str; N],
        buckets: impl IntoIterator<Item = f64>,
    ) -> Self {
        Self {
            descriptor: Descriptor::new(name, help, labels),
            family: Family::new_with_constructor(BucketBounds(buckets.into_iter().collect())),
        }
    }

    /// Returns the histogram for these label values, in the order of the label names.
    pub fn with(&self, values: [&str; N]) -> PlainHistogram {
        self.family
            .get_or_create_owned(&self.descriptor.label_set(values))
    }
}

impl<const N: usize> sealed::Sealed for Histogram<N> {
    fn register(&self, registry: &mut Registry) {
        self.descriptor.register(registry, self.family.clone());
    }
}

impl<const N: usize> Labelled for Histogram<N> {}

#[cfg(test)]
mod tests;
