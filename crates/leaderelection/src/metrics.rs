//! Metrics of leader elections, with client-go's names.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

type Labels = Vec<(&'static str, String)>;

/// Metrics of leader elections. `leader_election_master_status{name}` is 1 while this process is
/// the leader. `leader_election_slowpath_total{name}` counts how many times a leader had to read
/// its Lease before it could renew it. `name` is the name of the Lease. A clone is another handle
/// to the same metrics.
///
/// The replicas of a sharded operator also have, by the name of the ring:
/// `opkit_shard_slots{name,member}` is the number of slots of each replica,
/// `opkit_shard_ring_slots{name}` that of all slots, and `opkit_shard_members{name}` that of the
/// replicas. All replicas report the ring as they last read it.
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
    slots: Family<Labels, Gauge>,
    ring_slots: Family<Labels, Gauge>,
    members: Family<Labels, Gauge>,
}

impl LeaderElectionMetrics {
    /// Adds the metrics to a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "leader_election_master_status",
            "Whether this process holds the lease of this name: 1 for the leader, 0 for a standby",
            self.status.clone(),
        );
        // The encoder appends `_total`.
        registry.register(
            "leader_election_slowpath",
            "Number of times that a leader had to read the lease of this name before it could renew it",
            self.slow_paths.clone(),
        );
        registry.register(
            "opkit_shard_slots",
            "Number of slots of each replica in the ring of this name",
            self.slots.clone(),
        );
        registry.register(
            "opkit_shard_ring_slots",
            "Number of slots of the ring of this name",
            self.ring_slots.clone(),
        );
        registry.register(
            "opkit_shard_members",
            "Number of replicas in the ring of this name",
            self.members.clone(),
        );
    }

    /// Sets the metrics of the ring `name`. `left` are replicas that are no longer in the ring.
    pub(crate) fn set_ring<'a>(
        &self,
        name: &str,
        of: u32,
        members: &[(String, u32)],
        left: impl Iterator<Item = &'a str>,
    ) {
        let of_member = |member: &str| {
            let mut labels = labels(name);
            labels.push(("member", member.to_owned()));
            labels
        };
        for member in left {
            self.slots.remove(&of_member(member));
        }
        for (member, count) in members {
            let slots = self.slots.get_or_create(&of_member(member));
            slots.set(i64::from(*count));
        }
        let count = i64::try_from(members.len()).unwrap_or(i64::MAX);
        self.members.get_or_create(&labels(name)).set(count);
        self.ring_slots.get_or_create(&labels(name)).set(of.into());
    }

    /// Sets `leader_election_master_status` of the Lease `name` to 1.
    pub(crate) fn set_leading(&self, name: &str) {
        self.status.get_or_create(&labels(name)).set(1);
    }

    /// Sets `leader_election_master_status` of the Lease `name` to 0.
    pub(crate) fn set_standby(&self, name: &str) {
        self.status.get_or_create(&labels(name)).set(0);
    }

    /// Adds `count` to `leader_election_slowpath_total` of the Lease `name`.
    pub(crate) fn add_slow_paths(&self, name: &str, count: u64) {
        if count > 0 {
            self.slow_paths.get_or_create(&labels(name)).inc_by(count);
        }
    }
}

fn labels(name: &str) -> Labels {
    vec![("name", name.to_owned())]
}
