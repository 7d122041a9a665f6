//! What leader elections tell Prometheus, with client-go's names.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

type Labels = Vec<(&'static str, String)>;

/// `leader_election_master_status{name}`, 1 while this process leads, and
/// `leader_election_slowpath_total{name}`, how often a leader had to read its lease before it could
/// renew it. The name is that of the lease. Cloning gives another handle on the same figures.
///
/// # Examples
/// ```
/// use opkit_leaderelection::{LeaderElectionMetrics, LeaderElectionOptions};
/// use prometheus_client::registry::Registry;
///
/// let options = LeaderElectionOptions::new("shop-operator.opkit.dev");
/// let mut registry = Registry::default();
/// options.metrics.register(&mut registry);
/// ```
#[derive(Debug, Clone, Default)]
pub struct LeaderElectionMetrics {
    status: Family<Labels, Gauge>,
    slow_paths: Family<Labels, Counter>,
}

impl LeaderElectionMetrics {
    /// Adds the figures to a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "leader_election_master_status",
            "Whether this process holds the lease of this name: 1 for the leader, 0 for a standby",
            self.status.clone(),
        );
        // The encoder appends `_total`.
        registry.register(
            "leader_election_slowpath",
            "How often a leader had to read the lease of this name before it could renew it",
            self.slow_paths.clone(),
        );
    }

    pub(crate) fn on(&self, name: &str) {
        self.status.get_or_create(&labels(name)).set(1);
    }

    pub(crate) fn off(&self, name: &str) {
        self.status.get_or_create(&labels(name)).set(0);
    }

    pub(crate) fn slow_path(&self, name: &str, times: u64) {
        if times > 0 {
            self.slow_paths.get_or_create(&labels(name)).inc_by(times);
        }
    }
}

fn labels(name: &str) -> Labels {
    vec![("name", name.to_owned())]
}
