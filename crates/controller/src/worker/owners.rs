//! Which replica of a sharded operator owns an object.

use std::sync::{Arc, OnceLock};

use opkit_apimachinery::shard::ShardKey;

use super::slots::Slots;

/// Owner of an object of a sharded operator, as this replica last read the ring; see
/// [`ShardOwners`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardOwner {
    /// Hash of the object's UID or namespace.
    pub hash: u64,
    /// Number of the object's slot, from 0.
    pub slot: u32,
    /// Number of slots of the ring.
    pub of: u32,
    /// Identity of the replica that owns the slot; `None` if no replica does at present.
    pub replica: Option<String>,
}

/// Handle to the owners of the objects of a manager; see
/// [`ManagerOptions::owners`](crate::ManagerOptions::owners). A clone is another handle to the same
/// owners.
///
/// # Examples
/// ```
/// use opkit_controller::ManagerOptions;
///
/// let owners = ManagerOptions::default().owners;
/// assert_eq!(owners.by(), None); // the operator does not run, or it is not sharded
/// ```
#[derive(Debug, Clone, Default)]
pub struct ShardOwners {
    slots: Arc<OnceLock<Arc<Slots>>>,
}

impl ShardOwners {
    /// Sets the slots of this replica.
    pub(crate) fn set(&self, slots: &Arc<Slots>) {
        self.slots.get_or_init(|| slots.clone());
    }

    /// Returns the field by which the replicas divide the objects; `None` if they do not.
    pub fn by(&self) -> Option<ShardKey> {
        self.slots.get().map(|slots| slots.by)
    }

    /// Returns the owner of the object with this UID in this namespace. Only the one of them by
    /// which the replicas divide the objects is used. Returns `None` if they do not divide them, or
    /// if the ring was not read yet.
    pub fn of(&self, uid: &str, namespace: Option<&str>) -> Option<ShardOwner> {
        let slots = self.slots.get()?;
        let hash = slots.hash_of(uid, namespace);
        let assignments = slots.owned.subscribe();
        let assignment = assignments.borrow();
        let (slot, replica) = assignment.owner_of(hash)?;
        Some(ShardOwner {
            hash,
            slot,
            of: u32::try_from(assignment.owners.len()).unwrap_or(u32::MAX),
            replica: replica.map(str::to_owned),
        })
    }

    /// Reports whether this process reconciles the object with this UID in this namespace, if it
    /// leads: always, if the operator is not sharded.
    pub(crate) fn owns(&self, uid: &str, namespace: Option<&str>) -> bool {
        let slots = self.slots.get();
        slots.is_none_or(|slots| slots.owned.serves(slots.hash_of(uid, namespace)))
    }
}
