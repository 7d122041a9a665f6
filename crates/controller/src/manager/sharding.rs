//! Follows the slots that this replica of a sharded operator owns: fills the caches with the
//! objects of new slots before they are served, and drops the objects of slots that were given
//! away.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use opkit_apimachinery::shard::{ShardKey, ShardSelector, slot};
use opkit_cache::Resplit;
use opkit_leaderelection::{LeaderElectionOptions, SlotAssignment};
use tracing::{debug, warn};

use crate::reads::parts::PartInformer;
use crate::worker::RunningController;
use crate::worker::slots::Slots;

/// Time after which the number of objects is reported to the ring again.
const COUNT_INTERVAL: Duration = Duration::from_secs(10);

/// Time after which the objects of slots that were given away are dropped. Each change of what the
/// caches read lists all objects again, and slots are often given away one after the other.
const SHRINK_DELAY: Duration = Duration::from_secs(5);

/// Number of parts of all hashes in which new slots are determined. A ring has at most that many
/// slots; their number is a power of two too.
const PARTS: u32 = 1_024;

/// Options of a sharded operator, whose replicas divide the objects among them.
///
/// # Examples
/// ```
/// use opkit_controller::{LeaderElectionOptions, ManagerOptions, ShardKey, ShardingOptions};
///
/// let election = LeaderElectionOptions::new("shop-operator");
/// let mut options = ManagerOptions::default();
/// options.sharding = Some(ShardingOptions::new(ShardKey::Namespace, election));
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ShardingOptions {
    /// Field whose hash determines which replica reconciles an object.
    ///
    /// By namespace, a replica caches the objects of its namespaces, of all namespaced kinds: a
    /// change of an object in another namespace, or a reference to it, is not seen. All
    /// cluster-scoped objects are reconciled by one replica. By UID, a replica caches its objects
    /// of the reconciled kinds and their children with owner references; all other kinds are cached
    /// whole.
    ///
    /// Runnables and states read the same part. Kinds that
    /// [`Manager::reads`](crate::Manager::reads) declares are cached whole in each replica, beside
    /// the part of a controller.
    pub by: ShardKey,
    /// Options of the Leases: the name of the ring's Lease, the namespace and the times.
    pub election: LeaderElectionOptions,
}

impl ShardingOptions {
    /// Creates the options of an operator that is sharded by this field. `election.lease_name` is
    /// the name of the Lease that contains the owners of all slots.
    pub fn new(by: ShardKey, election: LeaderElectionOptions) -> Self {
        Self { by, election }
    }
}

/// The controllers and caches of a sharded operator.
pub(super) struct Sharding {
    pub(super) slots: Arc<Slots>,
    /// Controllers that reconcile only objects of served slots.
    pub(super) controllers: Vec<Arc<RunningController>>,
    pub(super) informers: Vec<PartInformer>,
    /// Time after which lists that are not complete are logged.
    pub(super) timeout: Duration,
}

/// What the caches read.
struct Reading {
    /// Hashes of the objects that the caches read.
    part: ShardSelector,
    /// The lists of that part, one for each informer.
    lists: Vec<Resplit>,
}

impl Sharding {
    /// Follows the slots until the future is dropped.
    pub(super) async fn follow(self) {
        let mut assignments = self.slots.owned.subscribe();
        let mut reading = Reading {
            part: self.selector(BTreeSet::new(), 0),
            lists: Vec::new(),
        };
        loop {
            let assignment = assignments.borrow_and_update().clone();
            tokio::select! {
                changed = assignments.changed() => if changed.is_err() { return },
                () = self.adopt(&assignment, &mut reading) => {}
            }
        }
    }

    /// Brings the caches and workers to an assignment, and then reports the number of objects until
    /// the future is dropped.
    async fn adopt(&self, assignment: &SlotAssignment, reading: &mut Reading) {
        // Without its Lease, the replica owns no slots, but may soon own the same ones again.
        if assignment.term.is_some() {
            let owned = self.selector(assignment.owned.clone(), assignment.of);
            let both = owned.union(&reading.part);
            if both != reading.part {
                // Reconciles in slots that are given away still read the objects of these slots.
                match self.slots.runs_outside(&owned) {
                    true => self.read(both, reading),
                    false => self.read(owned.clone(), reading),
                }
            }
            self.listed(reading).await;
            self.serve(assignment);
            if reading.part != owned {
                tokio::time::sleep(SHRINK_DELAY).await;
                self.slots.idle_outside(&owned).await;
                self.read(owned, reading);
                self.listed(reading).await;
            }
        }
        loop {
            let controllers = self.controllers.iter();
            let objects: usize = controllers.map(|controller| controller.objects()).sum();
            self.slots.owned.set_objects(objects as u64);
            tokio::time::sleep(COUNT_INTERVAL).await;
        }
    }

    fn selector(&self, slots: BTreeSet<u32>, of: u32) -> ShardSelector {
        ShardSelector::slots(self.slots.by, slots, of)
    }

    /// Changes the part that the caches read.
    fn read(&self, part: ShardSelector, reading: &mut Reading) {
        if reading.part == part {
            return;
        }
        debug!(ranges = part.ranges().len(), "the caches read other slots");
        let resplit = |it: &PartInformer| {
            let shards = it.selected.shards(&part).watches(it.watches);
            it.factory.resplit(&it.informer, shards)
        };
        reading.lists = self.informers.iter().map(resplit).collect();
        reading.part = part;
    }

    /// Waits until the caches contain all objects of their part.
    async fn listed(&self, reading: &Reading) {
        for list in &reading.lists {
            while let Err(error) = list.wait(self.timeout).await {
                warn!(%error, "new slots are not served until the caches are filled");
            }
        }
    }

    /// Starts the reconciles in the slots of an assignment, and queues the objects of those slots
    /// that were not served.
    fn serve(&self, assignment: &SlotAssignment) {
        // In parts of equal size that no slot is smaller than, because a slot is served in part if
        // it was made of smaller slots.
        let of = assignment.of.max(PARTS);
        let gained = (0..of).filter(|part| {
            let selector = ShardSelector::part(self.slots.by, *part, of);
            let first = selector.ranges().first().map(|range| range.start());
            first.is_some_and(|first| {
                let is_owned = assignment.owned.contains(&slot(first, assignment.of));
                is_owned && !self.slots.owned.serves(first)
            })
        });
        let gained = self.selector(gained.collect(), of);
        self.slots.serve(assignment);
        if gained.is_empty() {
            return;
        }
        // Requests for these objects were dropped until now.
        for controller in &self.controllers {
            controller.requeue_all(|stored| {
                let (uid, namespace) = (stored.meta().uid(), stored.namespace());
                let uid = uid.unwrap_or_default();
                gained.contains(self.slots.hash_of(&uid, namespace.as_deref()))
            });
        }
    }
}
