//! The slots that a replica owns, and the work that runs in them.

mod table;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use opkit_apimachinery::shard::slot;
use opkit_client::Fence;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use self::table::{Grant, Publication, SlotTable};
use super::engine::SlotView;

/// Slots that the ring gives to a replica. Slot `i` of `of` contains the objects whose hash is in
/// the part `i` of `of` equal parts of all hashes.
///
/// # Examples
/// ```
/// use opkit_leaderelection::SlotAssignment;
/// assert!(SlotAssignment::default().owned.is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SlotAssignment {
    /// Term in which this replica holds its Lease; `None` if it does not, or if it does not know
    /// the ring, and then it owns no slot.
    pub term: Option<u64>,
    /// Number of slots of the ring; 0 before the ring is known.
    pub of: u32,
    /// Slots of this replica, without those that it is giving to others.
    pub owned: BTreeSet<u32>,
    /// Identity of each replica in the ring, with the number of its slots.
    pub members: Vec<(String, u32)>,
    /// Index in `members` of the owner of each slot of the ring.
    pub owners: Vec<Option<usize>>,
}

impl SlotAssignment {
    /// Returns the slot of an object with this [hash](opkit_apimachinery::shard::hash), and the
    /// identity of the replica that owns the slot; `None` if the ring was not read yet.
    ///
    /// # Examples
    /// ```
    /// use opkit_leaderelection::SlotAssignment;
    /// assert_eq!(SlotAssignment::default().owner_of(7), None);
    /// ```
    pub fn owner_of(&self, hash: u64) -> Option<(u32, Option<&str>)> {
        let of = u32::try_from(self.owners.len()).ok().filter(|of| *of > 0)?;
        let slot = slot(hash, of);
        let owner = self.owners.get(slot as usize).copied().flatten();
        let owner = owner.and_then(|index| self.members.get(index));
        Some((slot, owner.map(|(identity, _)| identity.as_str())))
    }
}

/// Handle to the slots of a replica; a clone is another handle to the same slots. See
/// [`ShardMember`](crate::ShardMember).
///
/// # Examples
/// ```
/// use opkit_leaderelection::OwnedSlots;
///
/// fn reconcile(slots: &OwnedSlots, hash: u64) {
///     let Some(permit) = slots.begin(hash) else {
///         return; // another replica reconciles the object
///     };
///     // Work with a client behind `permit.fence()`.
///     drop(permit);
/// }
/// ```
#[derive(Debug, Clone)]
pub struct OwnedSlots {
    shared: Arc<Shared>,
}

/// Replicas of the ring, and the owner of each slot; see [`SlotAssignment`].
#[derive(Debug, Default)]
pub(super) struct Owners {
    pub(super) members: Vec<(String, u32)>,
    pub(super) owners: Vec<Option<usize>>,
}

#[derive(Debug)]
struct Shared {
    table: Mutex<SlotTable>,
    /// Fence of the replica's own Lease.
    fence: Fence,
    assignment: watch::Sender<SlotAssignment>,
    /// Notified when the last work of a slot that is given away has ended.
    idle: Notify,
    objects: AtomicU64,
    /// Number of the ring of the last assignment.
    ring: AtomicU64,
    drain_limit: Duration,
}

impl OwnedSlots {
    /// Creates the slots of a replica whose own Lease has the fence `fence`. Work may run for
    /// `drain_limit` in a slot that is to be given away.
    pub(super) fn new(fence: Fence, drain_limit: Duration) -> Self {
        Self {
            shared: Arc::new(Shared {
                table: Mutex::default(),
                fence,
                assignment: watch::Sender::default(),
                idle: Notify::new(),
                objects: AtomicU64::new(0),
                ring: AtomicU64::new(0),
                drain_limit,
            }),
        }
    }

    /// Returns a receiver of the slots that the ring gives to this replica.
    pub fn subscribe(&self) -> watch::Receiver<SlotAssignment> {
        self.shared.assignment.subscribe()
    }

    /// Allows work to begin in those slots of `assignment` that this replica still owns. Call this
    /// when the caches contain the objects of the slots.
    pub fn serve(&self, assignment: &SlotAssignment) {
        let now = self.shared.fence.now();
        self.shared.table.lock().serve(assignment, now);
    }

    /// Starts work on an object with this [hash](opkit_apimachinery::shard::hash). Returns `None`
    /// if this replica does not serve the slot of the object, or if its own Lease was not renewed
    /// in time.
    pub fn begin(&self, hash: u64) -> Option<SlotPermit> {
        self.shared.fence.check().ok()?;
        let now = self.shared.fence.now();
        let grant = self.shared.table.lock().begin(hash, now)?;
        Some(SlotPermit {
            grant,
            shared: self.shared.clone(),
        })
    }

    /// Reports whether this replica serves the slot of an object with this hash.
    pub fn serves(&self, hash: u64) -> bool {
        self.shared.table.lock().serves(hash)
    }

    /// Sets the number of objects that this replica has in its caches. The ring gets more slots if
    /// there are many objects.
    pub fn set_objects(&self, objects: u64) {
        self.shared.objects.store(objects, Relaxed);
    }

    /// Returns the number of objects of all replicas, as this replica estimates it.
    pub(super) fn objects(&self) -> u64 {
        let assignment = self.shared.assignment.borrow();
        let (own, all) = (assignment.owned.len() as u64, u64::from(assignment.of));
        let objects = self.shared.objects.load(Relaxed);
        objects.saturating_mul(all).checked_div(own).unwrap_or(0)
    }

    /// Reports whether no work runs or may begin in a slot.
    pub(super) fn is_idle(&self, slot: u32, of: u32) -> bool {
        self.shared.table.lock().is_idle(slot, of)
    }

    /// Waits until the last work of a slot that is given away has ended.
    pub(super) async fn idle(&self) {
        self.shared.idle.notified().await;
    }

    /// Publishes the slots of this replica. Work in slots that are not among them can no longer
    /// begin; a change of the term or of the ring also ends the work that runs.
    pub(super) fn publish(&self, term: Option<u64>, view: &SlotView, owners: Owners) {
        let assignment = SlotAssignment {
            term: term.filter(|_| view.of > 0),
            of: view.of,
            owned: view.owned.clone(),
            members: owners.members,
            owners: owners.owners,
        };
        self.shared.table.lock().publish(&Publication {
            assignment: &assignment,
            ring: view.ring,
            until: view.until,
            now: self.shared.fence.now(),
            drain_limit: self.shared.drain_limit,
        });
        let is_new_ring = self.shared.ring.swap(view.ring, Relaxed) != view.ring;
        if is_new_ring || *self.shared.assignment.borrow() != assignment {
            self.shared.assignment.send_replace(assignment);
        }
    }

    /// Ends the work that runs for too long in slots that are to be given away. Returns the time
    /// until there is such work.
    pub(super) fn end_late(&self) -> Option<Duration> {
        let now = self.shared.fence.now();
        let next = self.shared.table.lock().end_late(now);
        next.map(|next| next.saturating_sub(now))
    }
}

/// Permit for work on an object of a slot. The slot is not given to another replica before all its
/// permits are dropped, unless this replica loses its Lease.
///
/// # Examples
/// ```
/// use opkit_client::RestClient;
/// use opkit_leaderelection::SlotPermit;
///
/// fn client(permit: &SlotPermit, client: &RestClient) -> RestClient {
///     RestClient::new(permit.fence().layer(client.kube()))
/// }
/// ```
#[derive(Debug)]
pub struct SlotPermit {
    grant: Arc<Grant>,
    shared: Arc<Shared>,
}

impl SlotPermit {
    /// Returns a number that is unique in this process for the time in which this replica owns the
    /// slot without a break.
    pub fn grant(&self) -> u64 {
        self.grant.id
    }

    /// Returns the fence of the slot, which refuses writes after this replica has given the slot
    /// away or lost it. Writes must also pass the [fence](crate::ShardMember::fence) of the
    /// replica's Lease.
    pub fn fence(&self) -> &Fence {
        &self.grant.fence
    }

    /// Returns a token that is cancelled when this replica loses the slot while work runs in it, or
    /// when the work runs for longer than the Lease's duration in a slot that another replica is to
    /// get. The work must end then; the fence refuses its writes.
    pub fn lost(&self) -> &CancellationToken {
        &self.grant.lost
    }
}

impl Drop for SlotPermit {
    fn drop(&mut self) {
        if self.shared.table.lock().end(&self.grant) {
            self.shared.idle.notify_one();
        }
    }
}

#[cfg(test)]
mod tests;
