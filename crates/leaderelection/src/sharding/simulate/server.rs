//! The simulated server: the Leases of one ring with optimistic locking.

use std::collections::BTreeMap;

use super::{CELLS, RING};
use crate::engine::{LeaseRecord, LeaseRequest, LeaseResponse, StoredRecord};
use crate::sharding::engine::{MemberLease, RingRequest, RingResponse, Snapshot};
use crate::sharding::ring::{Ring, hashes};

/// Server that stores the ring and the member Leases.
#[derive(Debug, Default)]
pub(super) struct Server {
    ring: Option<(Ring, String)>,
    leases: BTreeMap<String, StoredRecord>,
    version: u64,
    /// Number of rings that were created, which is the UID of the last one.
    rings: u64,
    /// Identity of the last owner of each cell.
    last_owners: Vec<Option<String>>,
    /// Number of cells that got another owner.
    pub(super) moved: u32,
}

/// Returns the name of a member Lease.
pub(super) fn lease_of(_: &str, identity: &str) -> String {
    format!("{RING}-{identity}")
}

impl Server {
    pub(super) fn ring(&self) -> Option<&Ring> {
        self.ring.as_ref().map(|(ring, _)| ring)
    }

    fn next_version(&mut self) -> String {
        self.version += 1;
        self.version.to_string()
    }

    /// Executes a request for the member Lease `name`.
    pub(super) fn handle(&mut self, name: &str, request: LeaseRequest) -> LeaseResponse {
        let present = self.leases.get(name).map(|lease| lease.version.clone());
        let record = match request {
            LeaseRequest::Get => return LeaseResponse::Read(self.leases.get(name).cloned()),
            LeaseRequest::Create(record) if present.is_none() => record,
            LeaseRequest::Update(record, version) if present == Some(version.clone()) => record,
            _ => return LeaseResponse::Conflict,
        };
        LeaseResponse::Written(self.store(name, record))
    }

    fn store(&mut self, name: &str, record: LeaseRecord) -> StoredRecord {
        let version = self.next_version();
        let stored = StoredRecord { record, version };
        self.leases.insert(name.to_owned(), stored.clone());
        stored
    }

    /// Executes a request for the ring. Also returns whether the ring has changed.
    pub(super) fn handle_ring(&mut self, request: RingRequest) -> (RingResponse, bool) {
        let present = self.ring.as_ref().map(|(_, version)| version.clone());
        match request {
            RingRequest::List => {
                let leases = self.leases.iter().map(|(name, stored)| MemberLease {
                    name: name.clone(),
                    record: stored.record.clone(),
                    version: stored.version.clone(),
                });
                let snapshot = Snapshot {
                    ring: self.ring.clone(),
                    ring_uid: self.rings.to_string(),
                    leases: leases.collect(),
                };
                (RingResponse::Listed(snapshot), false)
            }
            RingRequest::Create(ring) if present.is_none() => {
                self.rings += 1;
                (self.store_ring(ring), true)
            }
            RingRequest::Update(ring, version) if present == Some(version.clone()) => {
                (self.store_ring(ring), true)
            }
            RingRequest::RemoveHolder(lease) if self.is_at(&lease) => {
                self.store(&lease.name, lease.record);
                (RingResponse::Written, false)
            }
            RingRequest::Delete(lease) if self.is_at(&lease) => {
                self.leases.remove(&lease.name);
                (RingResponse::Written, false)
            }
            _ => (RingResponse::Conflict, false),
        }
    }

    fn is_at(&self, lease: &MemberLease) -> bool {
        let stored = self.leases.get(&lease.name);
        stored.is_some_and(|stored| stored.version == lease.version)
    }

    fn store_ring(&mut self, ring: Ring) -> RingResponse {
        assert_eq!(Ring::parse(&ring.to_text()), Ok(ring.clone()));
        self.last_owners.resize(CELLS as usize, None);
        for (slot, owner) in (0..).zip(ring.owners()) {
            let Some(owner) = owner else { continue };
            for cell in cells(slot, ring.len()) {
                let last = &mut self.last_owners[cell as usize];
                if last.as_ref().is_some_and(|last| *last != owner.identity) {
                    self.moved += 1;
                }
                *last = Some(owner.identity.clone());
            }
        }
        let version = self.next_version();
        self.ring = Some((ring, version));
        RingResponse::Written
    }

    /// Deletes the ring. Returns false if there is none, or if it is documented that a deletion now
    /// may lead to two owners: a replica of the ring has not renewed its Lease yet.
    pub(super) fn delete_ring(&mut self) -> bool {
        let is_renewed = |identity: &str| {
            let lease = self.leases.get(&lease_of(RING, identity));
            lease.is_some_and(|it| {
                it.record.holder == identity && it.record.renew_time != it.record.acquire_time
            })
        };
        let members = self.ring().into_iter().flat_map(|ring| ring.members());
        if !members.into_iter().all(|it| is_renewed(&it.identity)) {
            return false;
        }
        self.ring.take().is_some()
    }

    /// Deletes a member Lease.
    pub(super) fn delete_lease(&mut self, identity: &str) {
        self.leases.remove(&lease_of(RING, identity));
    }

    /// Changes the `resourceVersion` of the ring, as if another client had changed a label.
    pub(super) fn touch(&mut self) {
        let version = self.next_version();
        if let Some((_, present)) = &mut self.ring {
            *present = version;
        }
    }
}

/// Returns the cells in a slot.
pub(super) fn cells(slot: u32, of: u32) -> std::ops::Range<u32> {
    assert!(of <= CELLS, "{of} slots");
    let hashes = hashes(slot, of);
    let cell = |hash: u128| u32::try_from((hash * u128::from(CELLS)) >> 64).unwrap();
    cell(hashes.start)..cell(hashes.end)
}
