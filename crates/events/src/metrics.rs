//! Counters of dropped events.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

/// The metric `opkit_events_dropped_total{reason}`: number of events that were not posted, by
/// reason. A clone is another handle to the same counters.
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

/// Values of the label `reason`. In this order: the queue was full; there were too many events
/// about one object; the server rejected the event; the server could not be reached in 12 attempts;
/// the process was no longer the leader.
const DROP_REASONS: [&str; 5] = ["full", "spam", "refused", "unreachable", "fenced"];

impl Default for EventMetrics {
    fn default() -> Self {
        let family = Family::default();
        for reason in DROP_REASONS {
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

    /// Counts one dropped event.
    fn count(&self, reason: &'static str) {
        self.family.get_or_create(&[("reason", reason)]).inc();
    }

    /// Returns the number of events that were dropped for `reason`.
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

    /// Returns the number of all dropped events.
    pub(crate) fn total(&self) -> u64 {
        DROP_REASONS.iter().map(|reason| self.dropped(reason)).sum()
    }
}
