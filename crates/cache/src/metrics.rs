//! Prometheus metrics of the informers of a factory.
//!
//! The metrics read the informers' counters when they are collected; nothing is counted a second
//! time.

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use tokio::time::Instant;

use crate::factory::Informers;
use crate::reflector::Counters;
use crate::{Informer, Stats};

/// Counters of one reflector. The reflector writes the counters; they are read when statistics or
/// metrics are requested.
#[derive(Debug, Default)]
pub(crate) struct WatchStats {
    /// Start of the reflector.
    origin: OnceLock<Instant>,
    pub(crate) lists: AtomicU64,
    pub(crate) events: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) unreadable: AtomicU64,
    /// Start of the open watch, in milliseconds since `origin` plus one; 0 if no watch is open.
    watching_since: AtomicU64,
    /// Time of the last event or response, in milliseconds since `origin` plus one; 0 if nothing
    /// was received.
    last_received: AtomicU64,
}

impl WatchStats {
    pub(crate) fn set(&self, now: Duration, counters: &Counters) {
        self.origin
            .get_or_init(|| Instant::now().checked_sub(now).unwrap_or_else(Instant::now));
        self.lists.store(counters.lists, Relaxed);
        self.events.store(counters.events, Relaxed);
        self.failures.store(counters.failures, Relaxed);
        self.unreadable.store(counters.unreadable, Relaxed);
        self.watching_since
            .store(stamp(counters.watching_since), Relaxed);
        self.last_received
            .store(stamp(counters.last_received), Relaxed);
    }

    /// Returns the age of the open watch.
    pub(crate) fn age(&self) -> Option<Duration> {
        self.since(self.watching_since.load(Relaxed))
    }

    /// Returns the time since the last event or response of the server.
    pub(crate) fn silence(&self) -> Option<Duration> {
        self.since(self.last_received.load(Relaxed))
    }

    fn since(&self, stamp: u64) -> Option<Duration> {
        let at = Duration::from_millis(stamp.checked_sub(1)?);
        Some(self.origin.get()?.elapsed().saturating_sub(at))
    }
}

fn stamp(at: Option<Duration>) -> u64 {
    let millis = |at: Duration| u64::try_from(at.as_millis()).unwrap_or(u64::MAX);
    at.map_or(0, |at| millis(at).saturating_add(1))
}

/// Metrics of all informers of a factory, to be registered with
/// [`register_collector`](prometheus_client::registry::Registry::register_collector); see
/// [`InformerFactory::metrics`](crate::InformerFactory::metrics).
///
/// The labels are `group`, `version`, `kind` and `selector`, which is empty for an informer of all
/// objects:
///
/// - `opkit_cache_objects`, `opkit_cache_bytes`, `opkit_cache_pool_bytes`: number and memory of the
///   cached objects.
/// - `opkit_cache_decode_errors_total`: objects that did not match their type, or had no name.
/// - `opkit_cache_watch_age_seconds`: age of the youngest open watch.
/// - `opkit_cache_lag_seconds`: longest time since a watch delivered its last event or bookmark.
///   Bookmarks arrive every minute, so a lag of several minutes means that the cache is stale.
/// - `opkit_cache_events_total`, `opkit_cache_relists_total`, `opkit_cache_failures_total`: watch
///   events, lists after the first of each watch, and failed requests or watches.
#[derive(Clone)]
pub struct CacheMetrics {
    informers: Informers,
}

impl fmt::Debug for CacheMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CacheMetrics").finish_non_exhaustive()
    }
}

type Labels = Vec<(&'static str, String)>;
type Value = fn(&Stats) -> Option<f64>;

const GAUGES: [(&str, &str, Value); 5] = [
    ("opkit_cache_objects", "Objects in the cache", |stats| {
        Some(stats.objects as f64)
    }),
    (
        "opkit_cache_bytes",
        "Approximate memory of the stored objects, in bytes",
        |stats| Some(stats.bytes as f64),
    ),
    (
        "opkit_cache_pool_bytes",
        "Approximate memory of the decoded objects in the pool, in bytes",
        |stats| Some(stats.pool_bytes as f64),
    ),
    (
        "opkit_cache_watch_age_seconds",
        "Age of the youngest open watch",
        |stats| stats.watch_age.map(|age| age.as_secs_f64()),
    ),
    (
        "opkit_cache_lag_seconds",
        "Longest time since a watch delivered its last event or bookmark",
        |stats| stats.lag.map(|lag| lag.as_secs_f64()),
    ),
];

const COUNTERS: [(&str, &str, Value); 4] = [
    (
        "opkit_cache_decode_errors",
        "Objects that did not match their type, or had no name",
        |stats| Some(stats.decode_errors as f64),
    ),
    (
        "opkit_cache_events",
        "Watch events, including bookmarks",
        |stats| Some(stats.events as f64),
    ),
    (
        "opkit_cache_relists",
        "Lists after the first of each watch",
        |stats| Some(stats.relists as f64),
    ),
    (
        "opkit_cache_failures",
        "Lists and watches that failed",
        |stats| Some(stats.failures as f64),
    ),
];

impl CacheMetrics {
    pub(crate) fn new(informers: Informers) -> Self {
        Self { informers }
    }

    fn rows(&self) -> Vec<(Labels, Stats)> {
        let informers: Vec<(String, Informer)> = {
            let informers = self.informers.lock();
            let known = informers.iter();
            known
                .filter_map(|(identity, handle)| {
                    Some((identity.selector(), Informer::upgrade(handle)?))
                })
                .collect()
        };
        let row = |(selector, informer): (String, Informer)| {
            let kind = informer.kind();
            let labels = vec![
                ("group", kind.group.clone()),
                ("version", kind.version.clone()),
                ("kind", kind.kind.clone()),
                ("selector", selector),
            ];
            (labels, informer.stats())
        };
        let mut rows: Vec<_> = informers.into_iter().map(row).collect();
        rows.sort_by(|(one, _), (other, _)| one.cmp(other));
        rows
    }
}

impl Collector for CacheMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let rows = self.rows();
        let families = GAUGES.map(|family| (family, MetricType::Gauge));
        let counters = COUNTERS.map(|family| (family, MetricType::Counter));
        for ((name, help, value), kind) in families.into_iter().chain(counters) {
            let is_counter = matches!(kind, MetricType::Counter);
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for (labels, stats) in &rows {
                let Some(value) = value(stats) else { continue };
                let row = family.encode_family(labels)?;
                match is_counter {
                    true => ConstCounter::new(value).encode(row)?,
                    false => ConstGauge::new(value).encode(row)?,
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
