//! The next request of a replica, which follows from its last list.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{InFlight, MemberLease, Observed, RingEngine, RingRequest, Unconfirmed};
use crate::engine::LeaseRecord;
use crate::sharding::ring::{Member, Ring};

impl RingEngine {
    /// Returns the next request to send.
    pub(super) fn next_request(
        &mut self,
        now: Duration,
        wall_micros: i64,
        is_idle: &dyn Fn(u32, u32) -> bool,
    ) -> Option<RingRequest> {
        if now < self.not_before {
            return None;
        }
        if self.is_stale || now >= self.next_list || self.has_expiry_since_list(now) {
            self.in_flight = Some(InFlight::List);
            return Some(RingRequest::List);
        }
        if self.is_settled {
            return None;
        }
        let request = self.write(wall_micros, is_idle);
        match &request {
            Some(RingRequest::Create(_)) => self.in_flight = Some(InFlight::Create),
            Some(_) => self.in_flight = Some(InFlight::Write),
            None => self.is_settled = self.draining.is_empty(),
        }
        request
    }

    /// Reports whether a member Lease has expired since the last list, so that a list is needed to
    /// know whether it was renewed.
    fn has_expiry_since_list(&self, now: Duration) -> bool {
        let mut observed = self.observed.values();
        self.term.is_some()
            && observed.any(|it| {
                let expiry = it.expiry(self.timing.lease_seconds);
                expiry.is_some_and(|expiry| expiry > self.listed && expiry <= now)
            })
    }

    /// Reports whether a member Lease was not renewed for its duration.
    fn is_expired(&self, name: &str) -> bool {
        let observed = self.observed.get(name);
        let expiry = observed.and_then(|it| it.expiry(self.timing.lease_seconds));
        expiry.is_some_and(|expiry| expiry <= self.listed)
    }

    /// Returns the write that follows from the last list, if one is needed.
    fn write(
        &mut self,
        wall_micros: i64,
        is_idle: &dyn Fn(u32, u32) -> bool,
    ) -> Option<RingRequest> {
        let (snapshot, own) = (self.snapshot.as_ref()?, self.incarnation()?);
        let leases = &snapshot.leases;
        let held = leases.iter().find(|it| it.name == self.own_lease);
        if held.is_none_or(|lease| lease.record.holder != self.identity) {
            return None;
        }
        let in_ring = |lease: &MemberLease| {
            let mut members = snapshot.ring.iter().flat_map(|(ring, _)| ring.members());
            members.any(|it| (self.lease_of)(&self.ring_name, &it.identity) == lease.name)
        };
        let mut others = leases.iter().filter(|it| it.name != self.own_lease);
        let expired = others
            .clone()
            .find(|it| !it.record.holder.is_empty() && self.is_expired(&it.name));
        if let Some(lease) = expired {
            return Some(match in_ring(lease) {
                true => RingRequest::RemoveHolder(without_holder(lease, wall_micros)),
                false => RingRequest::Delete(lease.clone()),
            });
        }
        let Some((ring, version)) = &snapshot.ring else {
            let creates = !self.is_stopping && self.may_create(&snapshot.leases);
            let ring = creates.then(|| self.first_ring(own));
            return ring.map(RingRequest::Create);
        };
        let (mut next, given) = self.next_ring(ring, &own, is_idle);
        if next != *ring || self.unconfirmed.is_some() {
            let (revision, version) = (ring.revision, version.clone());
            next.revision = revision.saturating_add(1);
            let earlier = self.unconfirmed.take().map(|it| it.slots);
            let slots: BTreeSet<u32> = earlier.into_iter().flatten().chain(given).collect();
            if !slots.is_empty() {
                self.unconfirmed = Some(Unconfirmed { revision, slots });
            }
            return Some(RingRequest::Update(next, version));
        }
        let is_first = (ring.members().first()).is_some_and(|it| it.identity == self.identity);
        let left = others.find(|it| it.record.holder.is_empty() && !in_ring(it));
        left.filter(|_| is_first)
            .map(|lease| RingRequest::Delete(lease.clone()))
    }

    /// Reports whether this replica may create the ring that the last list did not find: no other
    /// replica can still own slots of a ring that was deleted.
    fn may_create(&self, leases: &[MemberLease]) -> bool {
        let others = || leases.iter().filter(|it| it.name != self.own_lease);
        let seconds = others().map(|it| it.record.lease_seconds);
        let seconds = seconds.fold(self.timing.lease_seconds, Ord::max);
        let wait = Duration::from_secs(seconds.into());
        let has_passed = |since: Duration| self.listed >= since.saturating_add(wait);
        // The Lease of the ring exists, but the list does not show it: it has lost its label.
        let is_refused = self.refused.is_some_and(|it| !has_passed(it));
        let are_new = |it: &MemberLease| {
            it.record.holder.is_empty() || it.record.renew_time == it.record.acquire_time
        };
        let is_first_start = self.ring_uid.is_none() && others().all(are_new);
        !is_refused && (is_first_start || self.missing.is_some_and(has_passed))
    }

    fn member(&self, incarnation: String) -> Member {
        Member {
            identity: self.identity.clone(),
            incarnation,
            leaving: false,
        }
    }

    /// Returns a ring of this replica alone.
    fn first_ring(&self, own: String) -> Ring {
        let mut ring = Ring::default();
        ring.join(self.member(own));
        ring.resize(self.objects, true);
        ring.assign();
        ring.revision = 1;
        ring
    }

    /// Returns the ring as this replica would change it, and the slots that it gives to others.
    fn next_ring(
        &self,
        ring: &Ring,
        own: &str,
        is_idle: &dyn Fn(u32, u32) -> bool,
    ) -> (Ring, BTreeSet<u32>) {
        let mut next = ring.clone();
        next.remove(|member| self.is_gone(member));
        match self.is_stopping {
            false if !next.contains(own) => next.join(self.member(own.to_owned())),
            false => {}
            true => {
                next.remove(|it| it.identity == self.identity && it.incarnation != own);
                next.leave(own);
            }
        }
        next.assign();
        let drained: BTreeSet<u32> = (self.draining.intersection(&self.announced))
            .copied()
            .filter(|slot| is_idle(*slot, ring.len()))
            .collect();
        next.hand_over(own, &drained);
        let kept: BTreeSet<u32> = next.slots_of(own).into_iter().collect();
        if self.is_stopping && kept.is_subset(&drained) {
            next.remove(|it| it.incarnation == own);
            next.assign();
        }
        let kept: BTreeSet<u32> = next.slots_of(own).into_iter().collect();
        let given = drained.difference(&kept).copied().collect();
        let first = next.members().first();
        let is_first = first.is_some_and(|it| it.identity == self.identity);
        if !self.is_stopping {
            match is_first {
                true => next.resize(self.objects, true),
                false => next.resize(0, false),
            }
        }
        (next, given)
    }

    /// Reports whether a member has died or released its Lease, as the last list shows.
    fn is_gone(&self, member: &Member) -> bool {
        if member.identity == self.identity {
            return false;
        }
        let name = (self.lease_of)(&self.ring_name, &member.identity);
        let leases = self.snapshot.iter().flat_map(|it| &it.leases);
        match leases.into_iter().find(|it| it.name == name) {
            Some(lease) => lease.record.holder != member.identity,
            None => self.is_expired(&name),
        }
    }
}

impl Observed {
    /// Returns the time at which the Lease expires, or `None` if it has no holder. A Lease that is
    /// missing expires after `default` seconds, because its holder may create it again.
    pub(super) fn expiry(&self, default: u32) -> Option<Duration> {
        let seconds = match &self.record {
            Some(record) if record.holder.is_empty() => return None,
            Some(record) => record.lease_seconds,
            None => default,
        };
        Some(
            self.changed
                .saturating_add(Duration::from_secs(seconds.into())),
        )
    }
}

/// Returns the Lease without its holder.
fn without_holder(lease: &MemberLease, wall_micros: i64) -> MemberLease {
    MemberLease {
        record: LeaseRecord {
            holder: String::new(),
            // The API server rejects 0 s.
            lease_seconds: 1,
            acquire_time: wall_micros,
            renew_time: wall_micros,
            transitions: lease.record.transitions,
        },
        ..lease.clone()
    }
}
