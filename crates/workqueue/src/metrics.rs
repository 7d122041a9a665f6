//! client-go's workqueue metrics, with controller-runtime's names.
//!
//! A queue counts under a lock that it holds anyway. All values are computed when the metrics are
//! collected, so that no task has to refresh gauges.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use crate::engine::{Histogram, Stats};

/// Largest number of values of the label `priority` per queue, as in controller-runtime.
const MAX_PRIORITIES: usize = 25;

/// Value of the label `priority` for all priorities beyond the first [`MAX_PRIORITIES`].
const OTHER_PRIORITIES: &str = "exceeded_cardinality_limit";

/// Metrics of several queues, which share their metric names:
///
/// - `workqueue_depth`, also by `priority`: keys that can be handed out. The first 25 priorities of
///   a queue have their own label values; all others share `exceeded_cardinality_limit`.
/// - `workqueue_adds_total`: keys that became ready, or were added while in work.
/// - `workqueue_queue_duration_seconds`: time that keys were ready before they were handed out.
/// - `workqueue_work_duration_seconds`: duration of the work on a key.
/// - `workqueue_unfinished_work_seconds`: total duration of the work in progress.
/// - `workqueue_longest_running_processor_seconds`: duration of the longest work in progress.
/// - `workqueue_retries_total`: keys that were added with a delay.
/// - `opkit_workqueue_oldest_key_age_seconds`: longest time that a ready key has been at its
///   position in the queue; raising its priority starts the time again.
/// - `opkit_workqueue_failing_keys`: keys whose last work failed.
/// - `opkit_workqueue_failures_max`: largest number of times in a row that the work on one key has
///   failed.
///
/// The labels `name` and `controller` both have the name of the queue as value. The metrics of a
/// queue end when the queue is dropped. Of two queues with the same name, the later queue is shown.
///
/// # Examples
/// ```
/// use opkit_workqueue::{MetricsProvider, Queue, QueueOptions};
/// use prometheus_client::registry::Registry;
///
/// let (mut registry, metrics) = (Registry::default(), MetricsProvider::default());
/// metrics.register(&mut registry);
/// let queue = Queue::<&str, ()>::new(QueueOptions {
///     metrics: Some(metrics.queue("robot")),
///     ..QueueOptions::default()
/// });
/// queue.add("robot-one", ());
/// let mut text = String::new();
/// prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
/// assert!(text.contains(r#"workqueue_adds_total{name="robot",controller="robot"} 1"#));
/// ```
#[derive(Clone, Default)]
pub struct MetricsProvider {
    queues: Arc<Mutex<BTreeMap<String, Observed>>>,
}

/// Metrics of one queue; see [`MetricsProvider`].
///
/// # Examples
/// ```
/// use opkit_workqueue::{Queue, QueueMetrics, QueueOptions};
/// let metrics = QueueMetrics::new("robot");
/// metrics.register(&mut prometheus_client::registry::Registry::default());
/// let queue = Queue::<&str, ()>::new(QueueOptions {
///     metrics: Some(metrics),
///     ..QueueOptions::default()
/// });
/// # drop(queue);
/// ```
#[derive(Debug, Clone)]
pub struct QueueMetrics {
    name: String,
    provider: MetricsProvider,
}

/// Queue whose counters and current values the metrics can read.
pub(crate) trait StatsSource: Send + Sync {
    fn stats(&self) -> Stats;
}

struct Observed {
    queue: Weak<dyn StatsSource>,
    /// Priorities that have their own value of the label `priority`.
    priorities: BTreeSet<i32>,
}

impl MetricsProvider {
    /// Returns the metrics of the queue with the name `name`.
    pub fn queue(&self, name: impl Into<String>) -> QueueMetrics {
        QueueMetrics {
            name: name.into(),
            provider: self.clone(),
        }
    }

    /// Registers the metrics of all queues of this provider, including queues created later, with
    /// `registry`. Call this method only once.
    pub fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(self.clone()));
    }

    fn rows(&self) -> Vec<Row> {
        let mut queues = self.queues.lock();
        queues.retain(|_, observed| observed.queue.strong_count() > 0);
        let row = |(name, observed): (&String, &mut Observed)| {
            let stats = observed.queue.upgrade()?.stats();
            Some(Row {
                depths: observed.depths(&stats),
                labels: [("name", name.clone()), ("controller", name.clone())],
                stats,
            })
        };
        queues.iter_mut().filter_map(row).collect()
    }
}

impl fmt::Debug for MetricsProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MetricsProvider").finish_non_exhaustive()
    }
}

impl QueueMetrics {
    /// Creates the metrics of a single queue. Several queues of one registry need a
    /// [`MetricsProvider`].
    pub fn new(name: impl Into<String>) -> Self {
        MetricsProvider::default().queue(name)
    }

    /// Registers the metrics of this queue, and of all other queues of the same provider, with
    /// `registry`. Call this method only once.
    pub fn register(&self, registry: &mut Registry) {
        self.provider.register(registry);
    }

    /// Includes `queue` in the metrics from now on.
    pub(crate) fn observe(&self, queue: Weak<dyn StatsSource>) {
        let observed = Observed {
            queue,
            priorities: BTreeSet::new(),
        };
        let mut queues = self.provider.queues.lock();
        queues.insert(self.name.clone(), observed);
    }
}

impl Observed {
    /// Returns the number of ready keys for each value of the label `priority`. A priority that was
    /// returned once is always returned.
    fn depths(&mut self, stats: &Stats) -> Vec<(String, usize)> {
        let mut depths: BTreeMap<i32, usize> = self.priorities.iter().map(|p| (*p, 0)).collect();
        let mut others = None;
        for (priority, depth) in &stats.depths {
            if self.priorities.len() < MAX_PRIORITIES {
                self.priorities.insert(*priority);
            }
            if self.priorities.contains(priority) {
                depths.insert(*priority, *depth);
            } else {
                others = Some(others.unwrap_or(0usize).saturating_add(*depth));
            }
        }
        let own = depths.into_iter().map(|(p, depth)| (p.to_string(), depth));
        own.chain(others.map(|depth| (OTHER_PRIORITIES.to_owned(), depth)))
            .collect()
    }
}

struct Row {
    labels: [(&'static str, String); 2],
    depths: Vec<(String, usize)>,
    stats: Stats,
}

type Family<T> = (&'static str, &'static str, fn(&Stats) -> T);

const COUNTERS: [Family<u64>; 2] = [
    (
        "workqueue_adds",
        "Total number of adds handled by workqueue",
        |stats| stats.counts.adds,
    ),
    (
        "workqueue_retries",
        "Total number of keys added with a delay",
        |stats| stats.counts.retries,
    ),
];

const GAUGES: [Family<f64>; 5] = [
    (
        "workqueue_unfinished_work_seconds",
        "Total seconds of work that is in progress and not yet observed by work_duration",
        |stats| stats.unfinished.as_secs_f64(),
    ),
    (
        "workqueue_longest_running_processor_seconds",
        "How long the longest running processor has been running",
        |stats| stats.longest_running.as_secs_f64(),
    ),
    (
        "opkit_workqueue_oldest_key_age_seconds",
        "Longest time in seconds that a ready key has been at its position in the queue",
        |stats| stats.oldest_key.as_secs_f64(),
    ),
    (
        "opkit_workqueue_failing_keys",
        "Number of keys whose last work failed",
        |stats| stats.failing as f64,
    ),
    (
        "opkit_workqueue_failures_max",
        "Largest number of times in a row that the work on one key has failed",
        |stats| f64::from(stats.most_failures),
    ),
];

type HistogramFamily = (&'static str, &'static str, fn(&Stats) -> &Histogram);

const HISTOGRAMS: [HistogramFamily; 2] = [
    (
        "workqueue_queue_duration_seconds",
        "How long in seconds a key stays in workqueue before being requested",
        |stats| &stats.counts.queue_duration,
    ),
    (
        "workqueue_work_duration_seconds",
        "How long in seconds processing a key from workqueue takes",
        |stats| &stats.counts.work_duration,
    ),
];

impl Collector for MetricsProvider {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let rows = self.rows();
        let help = "Current depth of workqueue by workqueue and priority";
        let mut depth =
            encoder.encode_descriptor("workqueue_depth", help, None, MetricType::Gauge)?;
        for row in &rows {
            for (priority, value) in &row.depths {
                let mut labels = row.labels.to_vec();
                labels.push(("priority", priority.clone()));
                let gauge = ConstGauge::new(i64::try_from(*value).unwrap_or(i64::MAX));
                gauge.encode(depth.encode_family(&labels)?)?;
            }
        }
        for (name, help, value) in COUNTERS {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for row in &rows {
                let counter = ConstCounter::new(value(&row.stats));
                counter.encode(family.encode_family(&row.labels)?)?;
            }
        }
        for (name, help, value) in GAUGES {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for row in &rows {
                let gauge = ConstGauge::new(value(&row.stats));
                gauge.encode(family.encode_family(&row.labels)?)?;
            }
        }
        for (name, help, value) in HISTOGRAMS {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
            for row in &rows {
                let value = value(&row.stats);
                family
                    .encode_family(&row.labels)?
                    .encode_histogram::<NoLabelSet>(
                        value.sum(),
                        value.count(),
                        &value.buckets(),
                        None,
                    )?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
