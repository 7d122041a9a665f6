//! A replica: the election for its own Lease, and the async code around the ring's engine.

use std::time::Duration;

use futures::future::{BoxFuture, OptionFuture};
use jiff::Timestamp;
use opkit_client::{DeleteOptions, Fence, RestClient};
use opkit_random::Random;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

use super::engine::{RingEngine, RingInput, RingRequest, SlotView};
use super::leases::{LABEL, RingLeases, RingOutcome, label_of, lease_of, watch};
use super::slots::{OwnedSlots, Owners};
use crate::engine::Timing;
use crate::{
    LeaderElectionError, LeaderElectionMetrics, LeaderElectionOptions, LeaderElector,
    LeaderWatchdog, LeaderWork, Leadership,
};

/// Replica that divides the objects of an operator with other replicas.
///
/// Objects are divided by a hash into slots. One Lease, the *ring*, contains the owner of each
/// slot. Each replica holds a Lease of its own and renews it as a leader does; the replica owns its
/// slots while it holds the Lease. When a replica joins or leaves, the others give it a share of
/// their slots, or take its slots. The guarantees:
///
/// - **One owner.** No two replicas own a slot at the same time, while no clock runs more than 10 %
///   too fast or too slow. Writes pass the [`fence`](ShardMember::fence) of the Lease and the
///   [fence](crate::SlotPermit::fence) of the slot.
/// - **Orderly changes.** A slot is given away after the work in it has ended, and taken from a
///   replica that has died after its Lease has expired. Work that does not end within the duration
///   of a Lease is [ended](crate::SlotPermit::lost).
/// - **Few changes.** A replica that joins or leaves moves at most one share of the slots and one
///   slot more.
///
/// # Limits
/// Those of [`LeaderElector`]. A replica that cannot read the ring for the time in which a leader
/// must renew its Lease has no slots until it can read the ring again.
///
/// There is no need to delete the Leases. If a person deletes the Lease of the ring, or removes its
/// label, all replicas end their work at once, and they divide the slots again after the duration
/// of a Lease. Two replicas may own a slot if the ring is deleted in the first seconds of its life
/// or of all replicas, or if a replica starts in the moment in which a person deletes the Leases of
/// all replicas with that of the ring: scale to 0 replicas first. A person who deletes the Lease of
/// a replica that runs takes its slots away after the duration of a Lease, unless the replica
/// creates the Lease again.
///
/// # Examples
/// ```
/// use opkit_client::RestClient;
/// use opkit_leaderelection::{LeaderElectionError, LeaderElectionOptions, ShardMember};
/// use tokio_util::sync::CancellationToken;
///
/// async fn log_slots(client: RestClient, stop: CancellationToken) -> Result<(), LeaderElectionError> {
///     let member = ShardMember::try_new(client, LeaderElectionOptions::new("shop-operator"))?;
///     let slots = member.slots();
///     let log = async {
///         let mut assignments = slots.subscribe();
///         while assignments.changed().await.is_ok() {
///             let assignment = assignments.borrow_and_update().clone();
///             // Fill the caches with the objects of the slots here.
///             slots.serve(&assignment);
///             println!("{} of {} slots", assignment.owned.len(), assignment.of);
///         }
///     };
///     tokio::select! {
///         () = member.run(stop) => {}
///         () = log => {}
///     }
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct ShardMember {
    elector: LeaderElector,
    client: RestClient,
    namespace: String,
    ring: String,
    own_lease: String,
    timing: Timing,
    metrics: LeaderElectionMetrics,
    engine: RingEngine,
    leases: RingLeases,
    slots: OwnedSlots,
}

impl ShardMember {
    /// Creates a replica of the ring whose Lease has the name `options.lease_name`. The name of the
    /// replica's own Lease starts with that name. `client` must not write through the fence of the
    /// options, and should have no rate limit.
    ///
    /// # Errors
    /// Same as [`LeaderElector::try_new`].
    pub fn try_new(
        client: RestClient,
        options: LeaderElectionOptions,
    ) -> Result<Self, LeaderElectionError> {
        options.check()?;
        let (timing, namespace) = (options.timing()?, options.namespace()?);
        let (ring, identity) = (options.lease_name.clone(), options.identity()?);
        let own_lease = lease_of(&ring, &identity);
        let metrics = options.metrics.clone();
        let mut own = options;
        own.identity = Some(identity.clone());
        own.lease_name = own_lease.clone();
        own.labels.insert(LABEL.to_owned(), label_of(&ring));
        let elector = LeaderElector::try_new(client.clone(), own)?;
        Ok(Self {
            engine: RingEngine::new(&ring, &identity, lease_of, timing, Random::seed()),
            leases: RingLeases::new(client.clone(), &namespace, &ring),
            slots: OwnedSlots::new(elector.fence(), timing.lease()),
            elector,
            client,
            namespace,
            ring,
            own_lease,
            timing,
            metrics,
        })
    }

    /// Returns the identity of this replica.
    pub fn identity(&self) -> &str {
        self.elector.identity()
    }

    /// Returns a receiver that reports whether this replica holds its own Lease.
    pub fn leadership(&self) -> watch::Receiver<Leadership> {
        self.elector.leadership()
    }

    /// Returns the tracker of the replica's work; see [`LeaderElector::work`].
    pub fn work(&self) -> LeaderWork {
        self.elector.work()
    }

    /// Returns the fence of the replica's own Lease.
    pub fn fence(&self) -> Fence {
        self.elector.fence()
    }

    /// Returns a health check of the replica's own Lease; see [`LeaderElector::watchdog`].
    pub fn watchdog(&self, tolerance: Duration) -> LeaderWatchdog {
        self.elector.watchdog(tolerance)
    }

    /// Returns a handle to the slots of this replica.
    pub fn slots(&self) -> OwnedSlots {
        self.slots.clone()
    }

    /// Takes part in the ring until `stop` is cancelled. Then gives all slots to other replicas,
    /// each as soon as its permits are dropped, and releases the Lease.
    ///
    /// # Cancel safety
    /// Dropping the future closes all fences immediately and lets the Lease expire. Cancel `stop`
    /// to give the slots away.
    pub async fn run(self, stop: CancellationToken) {
        let release = CancellationToken::new();
        let changed = Notify::new();
        let (client, pause) = (self.client.clone(), self.timing.retry_period);
        let hints = watch(
            client,
            self.namespace.clone(),
            self.ring.clone(),
            &changed,
            pause,
        );
        let request_timeout = (self.timing.renew_deadline / 2).max(Duration::from_secs(1));
        let mut keeper = Keeper {
            leadership: self.elector.leadership(),
            clock: self.elector.fence(),
            request_timeout,
            leave_limit: self.timing.lease().saturating_add(request_timeout),
            engine: self.engine,
            leases: self.leases,
            slots: self.slots,
            metrics: self.metrics,
            ring: self.ring,
        };
        let elector = self.elector.run(release.clone());
        let keep = async {
            keeper.run(&stop, &changed).await;
            // Another replica takes the slots that are left when the Lease has no holder.
            keeper.lose();
            release.cancel();
        };
        tokio::select! {
            _ = async { tokio::join!(elector, keep) } => {}
            () = hints => {}
        }
        // The Lease has no holder any more. If this fails, another replica deletes it.
        let deleted = keeper
            .leases
            .delete(&self.own_lease, DeleteOptions::default());
        if timeout(keeper.request_timeout, deleted).await.is_err() {
            debug!(lease = self.own_lease, "the lease was not deleted");
        }
    }
}

/// Follows the term of the replica's Lease, and executes what the engine decides.
struct Keeper {
    engine: RingEngine,
    leases: RingLeases,
    slots: OwnedSlots,
    leadership: watch::Receiver<Leadership>,
    /// Fence of the replica's Lease, which also is the clock.
    clock: Fence,
    request_timeout: Duration,
    metrics: LeaderElectionMetrics,
    /// Time after which a replica that is to stop loses the slots that it could not give away.
    leave_limit: Duration,
    ring: String,
}

impl Keeper {
    /// Takes part in the ring until `stop` is cancelled and all slots are given away.
    async fn run(&mut self, stop: &CancellationToken, changed: &Notify) {
        let mut in_flight: OptionFuture<BoxFuture<'static, RingOutcome>> = None.into();
        let mut until = None;
        let mut input = RingInput::Wake;
        loop {
            let now = self.clock.now();
            let wall_micros = Timestamp::now().as_microsecond();
            let slots = self.slots.clone();
            let is_idle = |slot, of| slots.is_idle(slot, of);
            self.engine.set_objects(self.slots.objects());
            let output = self.engine.step(now, wall_micros, &is_idle, input);
            self.publish(now);
            let late_work = self.slots.end_late();
            let is_late = until.is_some_and(|until| now >= until);
            if self.engine.has_left() || is_late {
                return;
            }
            if let Some(request) = output.send {
                in_flight = Some(self.send(request)).into();
            }
            let wake = output.wake.into_iter().chain(until).min();
            let wake = wake.map(|wake| wake.saturating_sub(now));
            let wake = wake.into_iter().chain(late_work).min().map(sleep);
            input = tokio::select! {
                biased;
                // The elector has closed the fence before it reports the end of the term.
                Ok(()) = self.leadership.changed() => {
                    RingInput::Term(self.leadership.borrow_and_update().term())
                }
                () = stop.cancelled(), if until.is_none() => {
                    until = Some(now.saturating_add(self.leave_limit));
                    RingInput::Stop
                }
                Some(outcome) = &mut in_flight => {
                    in_flight = None.into();
                    RingInput::Response(self.leases.handle_outcome(outcome))
                }
                () = self.slots.idle() => RingInput::Wake,
                () = changed.notified() => RingInput::Changed,
                Some(()) = OptionFuture::from(wake) => RingInput::Wake,
            };
        }
    }

    fn publish(&self, now: Duration) {
        let view = self.engine.view(now);
        let mut owners = Owners::default();
        if let Some(ring) = self.engine.ring() {
            let names = ring.members().iter().map(|it| (it.identity.clone(), 0));
            owners.members.extend(names);
            owners.owners.extend(ring.owner_indexes());
            for index in owners.owners.iter().flatten() {
                if let Some((_, count)) = owners.members.get_mut(*index) {
                    *count = u32::saturating_add(*count, 1);
                }
            }
        }
        let before = self.slots.subscribe().borrow().clone();
        self.slots.publish(self.engine.term(), &view, owners);
        let now = self.slots.subscribe().borrow().clone();
        if before.owned != now.owned || before.of != now.of {
            let (ring, owned, of) = (&self.ring, now.owned.len(), now.of);
            info!(%ring, owned, of, members = now.members.len(), "the slots of this replica have changed");
        }
        if before.members != now.members || before.owners.len() != now.owners.len() {
            let of = u32::try_from(now.owners.len()).unwrap_or(u32::MAX);
            let left = before.members.iter().map(|(name, _)| name.as_str());
            let left = left.filter(|name| now.members.iter().all(|(it, _)| it != name));
            self.metrics.set_ring(&self.ring, of, &now.members, left);
        }
    }

    /// Publishes that this replica owns no slots.
    fn lose(&self) {
        let view = SlotView::default();
        self.slots.publish(None, &view, Owners::default());
    }

    /// Sends a request with a timeout.
    fn send(&self, request: RingRequest) -> BoxFuture<'static, RingOutcome> {
        let (limit, outcome) = (self.request_timeout, self.leases.send(request));
        Box::pin(async move {
            match timeout(limit, outcome).await {
                Ok(outcome) => outcome,
                Err(_) => RingOutcome::TimedOut(limit),
            }
        })
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.lose();
    }
}
