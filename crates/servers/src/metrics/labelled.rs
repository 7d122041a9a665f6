//! Metrics of an operator's own, with labels: no dependency on the crate that encodes them.

use std::fmt;
use std::sync::atomic::AtomicU64;

use prometheus_client::metrics::counter::Counter as PlainCounter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge as PlainGauge;
use prometheus_client::metrics::histogram::Histogram as PlainHistogram;
use prometheus_client::registry::{Metric, Registry};

use super::{DURATION_BUCKETS, MetricsRegistry};

/// Names and values of the labels of one time series.
type Series = Vec<(String, String)>;
type F64 = PlainGauge<f64, AtomicU64>;

/// Name, help text and label names of a metric.
#[derive(Debug, Clone)]
struct Named<const N: usize> {
    name: String,
    help: String,
    labels: [String; N],
}

impl<const N: usize> Named<N> {
    fn new(name: &str, help: &str, labels: [&str; N]) -> Self {
        Self {
            name: valid(name, ":"),
            help: help.to_owned(),
            labels: labels.map(|label| valid(label, "")),
        }
    }

    fn series(&self, values: [&str; N]) -> Series {
        let labels = self.labels.iter().cloned();
        labels.zip(values.map(str::to_owned)).collect()
    }

    fn register(&self, registry: &mut Registry, metric: impl Metric) {
        registry.register(self.name.clone(), self.help.clone(), metric);
    }
}

/// A name that Prometheus can read: one character that it does not allow would make it refuse all
/// metrics of the process.
fn valid(name: &str, also: &str) -> String {
    let is_valid = |(n, c): (usize, char)| {
        c == '_' || also.contains(c) || c.is_ascii_alphabetic() || n > 0 && c.is_ascii_digit()
    };
    let characters = name.chars().enumerate();
    characters
        .map(|(n, c)| if is_valid((n, c)) { c } else { '_' })
        .collect()
}

/// A metric that an operator registers; see [`MetricsRegistry::register`].
pub trait Labelled: sealed::Sealed + Clone + Send + 'static {}

mod sealed {
    use prometheus_client::registry::Registry;

    pub trait Sealed {
        fn register(&self, registry: &mut Registry);
    }
}

impl MetricsRegistry {
    /// Registers a metric, so that it is served with the others.
    pub fn register(&self, metric: &impl Labelled) {
        metric.register(&mut self.lock());
    }
}

/// A number that only grows, one for each combination of the values of its labels. Cloning gives
/// another handle on the same numbers. It is served with `_total` after its name.
///
/// A combination of values is kept as long as the process runs, so a label has few values: an
/// engine or a result, never the name of an object. Characters that are not allowed in a name
/// become `_`.
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
    named: Named<N>,
    family: Family<Series, PlainCounter>,
}

impl<const N: usize> Counter<N> {
    /// Returns a counter with these labels; `[]` for none.
    pub fn new(name: &str, help: &str, labels: [&str; N]) -> Self {
        Self {
            named: Named::new(name, help, labels),
            family: Family::default(),
        }
    }

    /// Returns the number for these values of the labels, in their order.
    pub fn with(&self, values: [&str; N]) -> PlainCounter {
        self.family.get_or_create_owned(&self.named.series(values))
    }
}

impl<const N: usize> sealed::Sealed for Counter<N> {
    fn register(&self, registry: &mut Registry) {
        self.named.register(registry, self.family.clone());
    }
}

impl<const N: usize> Labelled for Counter<N> {}

/// A number that grows and shrinks, one for each combination of the values of its labels. Otherwise
/// as [`Counter`].
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
    named: Named<N>,
    family: Family<Series, F64>,
}

impl<const N: usize> Gauge<N> {
    /// Returns a gauge with these labels; `[]` for none.
    pub fn new(name: &str, help: &str, labels: [&str; N]) -> Self {
        Self {
            named: Named::new(name, help, labels),
            family: Family::default(),
        }
    }

    /// Returns the number for these values of the labels, in their order.
    pub fn with(&self, values: [&str; N]) -> F64 {
        self.family.get_or_create_owned(&self.named.series(values))
    }
}

impl<const N: usize> sealed::Sealed for Gauge<N> {
    fn register(&self, registry: &mut Registry) {
        self.named.register(registry, self.family.clone());
    }
}

impl<const N: usize> Labelled for Gauge<N> {}

/// How often which values were observed, such as durations in seconds; one for each combination of
/// the values of its labels. Otherwise as [`Counter`].
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
    named: Named<N>,
    family: Family<Series, PlainHistogram, Bounds>,
}

impl<const N: usize> fmt::Debug for Histogram<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Histogram")
            .field("named", &self.named)
            .finish_non_exhaustive()
    }
}

/// The upper bounds of buckets.
#[derive(Clone)]
struct Bounds(Vec<f64>);

impl MetricConstructor<PlainHistogram> for Bounds {
    fn new_metric(&self) -> PlainHistogram {
        PlainHistogram::new(self.0.iter().copied())
    }
}

impl<const N: usize> Histogram<N> {
    /// Returns a histogram with these labels, and with controller-runtime's buckets for durations
    /// of reconciles: 5 ms to 60 s.
    pub fn new(name: &str, help: &str, labels: [&str; N]) -> Self {
        Self::with_buckets(name, help, labels, DURATION_BUCKETS)
    }

    /// Returns a histogram with these labels and upper bounds of buckets.
    pub fn with_buckets(
        name: &str,
        help: &str,
        labels: [&str; N],
        buckets: impl IntoIterator<Item = f64>,
    ) -> Self {
        Self {
            named: Named::new(name, help, labels),
            family: Family::new_with_constructor(Bounds(buckets.into_iter().collect())),
        }
    }

    /// Returns the histogram for these values of the labels, in their order.
    pub fn with(&self, values: [&str; N]) -> PlainHistogram {
        self.family.get_or_create_owned(&self.named.series(values))
    }
}

impl<const N: usize> sealed::Sealed for Histogram<N> {
    fn register(&self, registry: &mut Registry) {
        self.named.register(registry, self.family.clone());
    }
}

impl<const N: usize> Labelled for Histogram<N> {}

#[cfg(test)]
mod tests;
