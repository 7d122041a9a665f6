//! Slots of a sharded operator. The objects of an operator are divided into slots by a hash, and a
//! replica reconciles the objects of the slots that it serves.

use std::collections::HashMap;
use std::sync::Arc;

use opkit_apimachinery::shard::{ShardKey, ShardSelector, hash};
use opkit_client::Fence;
use opkit_leaderelection::{OwnedSlots, SlotAssignment, SlotPermit};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::RunningController;
use crate::object::Request;

/// The slots of this replica, and the reconciles that run in them.
#[derive(Debug)]
pub(crate) struct Slots {
    /// Field whose hash determines the slot of an object.
    pub(crate) by: ShardKey,
    pub(crate) owned: OwnedSlots,
    /// Number of running reconciles for each hash.
    running: Mutex<HashMap<u64, u32>>,
    /// Notified when a reconcile ends.
    ended: Notify,
    /// Notified when slots are served.
    served: watch::Sender<()>,
}

/// Permit for the reconcile of one object. The slot of the object is not given to another replica
/// before the permit is dropped, unless this replica loses its Lease.
#[derive(Debug)]
pub(crate) struct Permit {
    slot: SlotPermit,
    _running: Running,
}

/// A running reconcile in the count of [`Slots`].
#[derive(Debug)]
struct Running {
    slots: Arc<Slots>,
    hash: u64,
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut running = self.slots.running.lock();
        if let Some(count) = running.get_mut(&self.hash) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                running.remove(&self.hash);
            }
        }
        drop(running);
        self.slots.ended.notify_waiters();
    }
}

impl Permit {
    /// Returns the number of the grant of the slot; see [`SlotPermit::grant`].
    pub(super) fn grant(&self) -> u64 {
        self.slot.grant()
    }

    /// Returns the fence that refuses writes after the slot is lost.
    pub(crate) fn fence(&self) -> &Fence {
        self.slot.fence()
    }

    /// Returns the token that is cancelled when the slot is lost.
    pub(crate) fn lost(&self) -> &CancellationToken {
        self.slot.lost()
    }
}

impl Slots {
    pub(crate) fn new(by: ShardKey, owned: OwnedSlots) -> Arc<Self> {
        Arc::new(Self {
            by,
            owned,
            running: Mutex::default(),
            ended: Notify::new(),
            served: watch::Sender::new(()),
        })
    }

    /// Starts work on an object with this hash. Returns `None` if this replica does not serve the
    /// slot of the object.
    pub(crate) fn begin(self: &Arc<Self>, hash: u64) -> Option<Permit> {
        // Counted first, so that the cache of a slot is not dropped while the work begins.
        *self.running.lock().entry(hash).or_default() += 1;
        let running = Running {
            slots: self.clone(),
            hash,
        };
        let slot = self.owned.begin(hash)?;
        Some(Permit {
            slot,
            _running: running,
        })
    }

    /// Allows work to begin in the slots of an assignment.
    pub(crate) fn serve(&self, assignment: &SlotAssignment) {
        self.owned.serve(assignment);
        self.served.send_replace(());
    }

    /// Returns a receiver that is notified when slots are served.
    pub(crate) fn served(&self) -> watch::Receiver<()> {
        self.served.subscribe()
    }

    /// Reports whether work runs on an object whose hash is not in `part`.
    pub(crate) fn runs_outside(&self, part: &ShardSelector) -> bool {
        let running = self.running.lock();
        running.keys().any(|hash| !part.contains(*hash))
    }

    /// Waits until no work runs on objects whose hash is not in `part`.
    pub(crate) async fn idle_outside(&self, part: &ShardSelector) {
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            ended.as_mut().enable();
            if !self.runs_outside(part) {
                return;
            }
            ended.await;
        }
    }

    /// Returns the hash of an object by its UID and namespace.
    pub(crate) fn hash_of(&self, uid: &str, namespace: Option<&str>) -> u64 {
        hash(match self.by {
            ShardKey::Uid => uid,
            ShardKey::Namespace => namespace.unwrap_or_default(),
        })
    }
}

impl RunningController {
    /// Returns a permit for the reconcile of a request. Returns `None` if another replica
    /// reconciles the object, or if the object is not in the cache and its slot is not known.
    pub(super) fn begin(&self, slots: &Arc<Slots>, request: &Request) -> Option<Permit> {
        let hash = match slots.by {
            ShardKey::Namespace => slots.hash_of("", request.namespace.as_deref()),
            ShardKey::Uid => {
                let stored = self.cluster(request)?.primary().stored(request.key());
                match stored.as_ref().and_then(|stored| stored.meta().uid()) {
                    Some(uid) => hash(&uid),
                    None => self.sources.deleted.as_ref()?.get(request)?,
                }
            }
        };
        slots.begin(hash)
    }
}
