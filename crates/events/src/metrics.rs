//! Counters of events that were not posted.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// `opkit_events_dropped_total{reason}`: events that were not posted, by reason. Cloning gives
/// another handle on the same counters.
///
/// # Examples
/// ```
/// use opkit_events::EventMetrics;
/// use prometheus_client::registry::Registry;
///
/// let mut registry = Registry::default();
/// EventMetrics::default().register(&mut registry);
/// ```
#[derive(Debug, Clone)]
pub struct EventMetrics {
    family: Family<[(&'static str, &'static str); 1], Counter>,
}

/// The queue was full; too many about one object; the server refused; the server could not be
/// reached for too long; the process no longer led.
const REASONS: [&str; 5] = ["full", "spam", "refused", "unreachable", "fenced"];

impl Default for EventMetrics {
    fn default() -> Self {
        let family = Family::default();
        for reason in REASONS {
            let _: &Counter = &family.get_or_create(&[("reason", reason)]);
        }
        Self { family }
    }
}

impl EventMetrics {
    /// Adds the counters to a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "opkit_events_dropped",
            "Events that were not posted, by reason",
            self.family.clone(),
        );
    }

    fn count(&self, reason: &'static str) {
        self.family.get_or_create(&[("reason", reason)]).inc();
    }

    pub(crate) fn dropped(&self, reason: &'static str) -> u64 {
        self.family.get_or_create(&[("reason", reason)]).get()
    }

    pub(crate) fn full(&self) {
        self.count("full");
    }

    pub(crate) fn spam(&self) {
        self.count("spam");
    }

    pub(crate) fn refused(&self) {
        self.count("refused");
    }

    pub(crate) fn unreachable(&self) {
        self.count("unreachable");
    }

    pub(crate) fn fenced(&self) {
        self.count("fenced");
    }

    pub(crate) fn total(&self) -> u64 {
        REASONS.iter().map(|reason| self.dropped(reason)).sum()
    }
}
