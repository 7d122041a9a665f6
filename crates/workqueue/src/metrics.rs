//! client-go's workqueue metrics, as controller-runtime names them.
//!
//! A queue counts under the lock that it holds anyway; everything is put together when the metrics
//! are asked for, so that no task refreshes gauges.

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

/// How many values the label `priority` may have for one queue, as in controller-runtime.
const MAX_PRIORITIES: usize = 25;

/// The value of the label `priority` for all others.
const OTHER_PRIORITIES: &str = "exceeded_cardinality_limit";

/// The metrics of several queues, which share their names:
///
/// - `workqueue_depth`, also by `priority`: keys that can be handed out. The first 25 priorities of
///   a queue have values of their own, the others are one, `exceeded_cardinality_limit`.
/// - `workqueue_adds_total`: keys that became ready, or were marked while in work.
/// - `workqueue_queue_duration_seconds`: how long keys were ready before they were handed out.
/// - `workqueue_work_duration_seconds`: how long the work on them took.
/// - `workqueue_unfinished_work_seconds`: how long the work in progress takes, in sum.
/// - `workqueue_longest_running_processor_seconds`: how long the longest of it takes.
/// - `workqueue_retries_total`: keys that were added with a delay.
/// - `opkit_workqueue_oldest_key_age_seconds`: how long the key that waits longest in its place in
///   the queue has been there; one whose priority was raised counts from then.
///
/// The labels `name` and `controller` both hold the name of the queue. A queue that is dropped
/// takes its metrics along; of two queues with one name the later one is shown.
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

/// The metrics of one queue; see [`MetricsProvider`].
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

/// A queue that can be asked.
pub(crate) trait Source: Send + Sync {
    fn stats(&self) -> Stats;
}

struct Observed {
    queue: Weak<dyn Source>,
    /// Priorities that have a value of the label.
    priorities: BTreeSet<i32>,
}

impl MetricsProvider {
    /// The metrics of the queue `name`.
    pub fn queue(&self, name: impl Into<String>) -> QueueMetrics {
        QueueMetrics {
            name: name.into(),
            provider: self.clone(),
        }
    }

    /// Makes all queues of this provider, those to come included, part of `registry`. Once only.
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
    /// The metrics of one queue alone. Several queues of one registry need a [`MetricsProvider`].
    pub fn new(name: impl Into<String>) -> Self {
        MetricsProvider::default().queue(name)
    }

    /// Makes the metrics part of `registry`, with all others of the same provider. Once only.
    pub fn register(&self, registry: &mut Registry) {
        self.provider.register(registry);
    }

    /// Shows `queue` from now on.
    pub(crate) fn observe(&self, queue: Weak<dyn Source>) {
        let observed = Observed {
            queue,
            priorities: BTreeSet::new(),
        };
        let mut queues = self.provider.queues.lock();
        queues.insert(self.name.clone(), observed);
    }
}

impl Observed {
    /// The depth for each value of the label. A value that was shown once stays.
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

const GAUGES: [Family<f64>; 3] = [
    (
        "workqueue_unfinished_work_seconds",
        "How long the work takes that is in progress and not yet in work_duration, in sum",
        |stats| stats.unfinished.as_secs_f64(),
    ),
    (
        "workqueue_longest_running_processor_seconds",
        "How long the longest running processor has been running",
        |stats| stats.longest_running.as_secs_f64(),
    ),
    (
        "opkit_workqueue_oldest_key_age_seconds",
        "How long the key that waits longest has been waiting",
        |stats| stats.oldest_key.as_secs_f64(),
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
