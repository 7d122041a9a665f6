//! The state machine of a replica in a ring, without a clock, tasks or I/O.
//!
//! Each replica holds a Lease of its own, the member Lease, which an
//! [`ElectionEngine`](crate::engine::ElectionEngine) acquires and renews. The ring lists the owner
//! of each slot. A replica owns a slot while it holds its Lease *and* the ring names its current
//! incarnation as the owner. The protocol:
//!
//! - The ring is only changed by updates that fail if the ring has changed meanwhile. All reads are
//!   lists of the ring and all member Leases at one point in time.
//! - A slot that has a living owner is given away by this owner alone, after the reconciles of the
//!   slot have ended. If the result of that update is unknown, the slot stays given away until a
//!   later revision of the ring is read.
//! - The slots of a replica that has died are given to others by any replica. This replica must
//!   first have seen no renewal of the member Lease for the Lease's duration, and then have removed
//!   the holder of the Lease, so that the owner cannot renew the Lease. The owner's term has ended
//!   before, by the same calculation as in leader election.
//! - A replica that acquires its Lease again joins as a new incarnation, so a ring that it read
//!   earlier gives it no slots.
//! - A ring that was deleted, or replaced by another, gives no slots. A replica learns of that from
//!   a list, and a list counts no longer than a term after its request was sent. A replica that
//!   finds no ring creates one after the duration of a Lease in which each list found none. By the
//!   calculation of leader election, all lists with the former ring have ended to count by then. A
//!   replica that has never read a ring does not wait if no other member Lease was renewed yet, as
//!   at the first start of all replicas.

mod actions;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use opkit_random::Random;

use super::ring::Ring;
use crate::engine::{LeaseRecord, Timing};

/// Event that the engine reacts to.
#[derive(Debug, Clone)]
pub(crate) enum RingInput {
    /// The time of [`RingOutput::wake`] has come, or reconciles of a slot have ended.
    Wake,
    /// This replica holds its member Lease in this term, or does not hold it.
    Term(Option<u64>),
    /// The ring has changed.
    Changed,
    /// The request in flight has completed.
    Response(RingResponse),
    /// The replica is to give away all slots and to leave the ring.
    Stop,
}

/// Request for the Leases of a ring. At most one is in flight.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RingRequest {
    /// Reads the ring and all member Leases at one point in time.
    List,
    /// Creates the ring.
    Create(Ring),
    /// Replaces the ring if its `resourceVersion` still is the given one.
    Update(Ring, String),
    /// Removes the holder of a member Lease if its `resourceVersion` still is the given one.
    RemoveHolder(MemberLease),
    /// Deletes a member Lease if its `resourceVersion` still is the given one.
    Delete(MemberLease),
}

/// Result of a request.
#[derive(Debug, Clone)]
pub(crate) enum RingResponse {
    /// The list succeeded.
    Listed(Snapshot),
    /// The write succeeded.
    Written,
    /// The write had no effect: the Lease has changed, exists already, or was deleted.
    Conflict,
    /// The request timed out or was rejected. A write may have succeeded, or may still succeed.
    Failed,
}

/// The ring and all member Leases at one point in time.
#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshot {
    /// The ring, and the `resourceVersion` of its Lease.
    pub(crate) ring: Option<(Ring, String)>,
    /// UID of the ring's Lease.
    pub(crate) ring_uid: String,
    pub(crate) leases: Vec<MemberLease>,
}

/// Lease of a replica.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemberLease {
    /// Name of the Lease, which follows from the identity of the replica.
    pub(crate) name: String,
    pub(crate) record: LeaseRecord,
    pub(crate) version: String,
}

/// Next action of the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RingOutput {
    /// Request to send.
    pub(crate) send: Option<RingRequest>,
    /// Latest time of the next [`RingInput::Wake`]; `None` if the engine only waits for inputs.
    pub(crate) wake: Option<Duration>,
}

/// What this replica knows about slots.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct SlotView {
    /// Number of slots of the ring; 0 if this replica must not use what it knows about the ring.
    pub(crate) of: u32,
    /// Slots in which this replica reconciles objects.
    pub(crate) owned: BTreeSet<u32>,
    /// Slots of this replica in which no new reconciles start, because the slots are given away
    /// when the running ones have ended.
    pub(crate) draining: BTreeSet<u32>,
    /// Number of the ring: each ring that was deleted is followed by one with a higher number. Work
    /// in slots of an earlier ring must end.
    pub(crate) ring: u64,
    /// Time at which this view ends to count, unless the ring is read again before.
    pub(crate) until: Duration,
}

/// State of one replica of a ring.
#[derive(Debug)]
pub(crate) struct RingEngine {
    identity: String,
    /// Random number of this process, because two processes may have the same identity one after
    /// the other.
    process: u64,
    /// Name of this replica's member Lease.
    own_lease: String,
    lease_of: fn(&str, &str) -> String,
    ring_name: String,
    timing: Timing,
    random: Random,
    term: Option<u64>,
    is_stopping: bool,
    /// Number of objects of the operator, as this replica estimates it.
    objects: u64,
    snapshot: Option<Snapshot>,
    /// Whether the snapshot may be out of date, so that a list is needed before the next action.
    is_stale: bool,
    /// Whether the ring has changed since the request in flight was sent, so that its response may
    /// be older than the change.
    has_changed_since_send: bool,
    /// Whether no write follows from the snapshot.
    is_settled: bool,
    /// Time at which the last list was received.
    listed: Duration,
    next_list: Duration,
    /// Time before which no request is sent, after a failed one.
    not_before: Duration,
    in_flight: Option<InFlight>,
    /// Time at which the request in flight was sent.
    sent: Duration,
    /// Time at which the request for the last list was sent.
    asked: Duration,
    /// UID of the Lease of the last ring that was read, and the number of such rings so far.
    ring_uid: Option<String>,
    rings: u64,
    /// Time of the first of the last lists that all found no ring.
    missing: Option<Duration>,
    /// Time at which the server refused to create the ring, because its Lease exists.
    refused: Option<Duration>,
    /// Member Leases with a holder, by name.
    observed: BTreeMap<String, Observed>,
    draining: BTreeSet<u32>,
    /// Slots that were in `draining` after an earlier step, so that the caller starts no reconciles
    /// in them.
    announced: BTreeSet<u32>,
    unconfirmed: Option<Unconfirmed>,
    /// Whether the ring was read and does not contain this replica, which is stopping.
    has_left: bool,
}

/// Request in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum InFlight {
    List,
    Create,
    Write,
}

/// Last observed state of a member Lease.
#[derive(Debug, Clone)]
struct Observed {
    record: Option<LeaseRecord>,
    /// Incarnation of the replica in the ring.
    incarnation: Option<String>,
    /// Time at which the record was last observed to change.
    changed: Duration,
}

/// An update that gives slots away and whose result is not known.
#[derive(Debug, Clone)]
struct Unconfirmed {
    /// Revision of the ring before the update.
    revision: u64,
    slots: BTreeSet<u32>,
}

impl RingEngine {
    /// Creates a replica that has not read the ring yet. `lease_of` returns the name of the member
    /// Lease for the name of the ring and the identity of a replica.
    pub(crate) fn new(
        ring_name: &str,
        identity: &str,
        lease_of: fn(&str, &str) -> String,
        timing: Timing,
        seed: u64,
    ) -> Self {
        let mut random = Random::new(seed);
        Self {
            identity: identity.to_owned(),
            process: random.bits(),
            own_lease: lease_of(ring_name, identity),
            lease_of,
            ring_name: ring_name.to_owned(),
            timing,
            random,
            term: None,
            is_stopping: false,
            objects: 0,
            snapshot: None,
            is_stale: true,
            has_changed_since_send: false,
            is_settled: false,
            listed: Duration::ZERO,
            next_list: Duration::ZERO,
            not_before: Duration::ZERO,
            in_flight: None,
            sent: Duration::ZERO,
            asked: Duration::ZERO,
            ring_uid: None,
            rings: 0,
            missing: None,
            refused: None,
            observed: BTreeMap::new(),
            draining: BTreeSet::new(),
            announced: BTreeSet::new(),
            unconfirmed: None,
            has_left: false,
        }
    }

    /// Sets the number of objects of the operator, as this replica estimates it.
    pub(crate) fn set_objects(&mut self, objects: u64) {
        self.is_settled &= self.objects == objects;
        self.objects = objects;
    }

    /// Reports whether this replica was asked to stop and has no more slots, so that its Lease can
    /// be released.
    pub(crate) fn has_left(&self) -> bool {
        self.is_stopping && (self.has_left || self.term.is_none())
    }

    /// Returns the term of this replica's Lease.
    pub(crate) fn term(&self) -> Option<u64> {
        self.term
    }

    /// Returns the last ring that was read.
    pub(crate) fn ring(&self) -> Option<&Ring> {
        let snapshot = self.snapshot.as_ref()?;
        snapshot.ring.as_ref().map(|(ring, _)| ring)
    }

    /// Returns the name of this replica's current incarnation.
    pub(crate) fn incarnation(&self) -> Option<String> {
        self.term
            .map(|term| format!("{:016x}-{term}", self.process))
    }

    /// Returns the time at which the last list ends to count. If the ring was deleted after this
    /// list, another replica may create a new one after this time.
    fn valid_until(&self) -> Duration {
        self.asked.saturating_add(self.timing.term())
    }

    /// Returns the slots of this replica at the time `now`.
    pub(crate) fn view(&self, now: Duration) -> SlotView {
        let (Some(ring), Some(incarnation)) = (self.ring(), self.incarnation()) else {
            return SlotView::default();
        };
        if now >= self.valid_until() {
            return SlotView::default();
        }
        let given = self.unconfirmed.as_ref();
        let given = |slot: &u32| given.is_some_and(|it| it.slots.contains(slot));
        let slots = ring.slots_of(&incarnation).into_iter();
        let (draining, owned) = slots
            .filter(|slot| !given(slot))
            .partition(|slot| self.draining.contains(slot));
        SlotView {
            of: ring.len(),
            owned,
            draining,
            ring: self.rings,
            until: self.valid_until(),
        }
    }

    /// Handles an input at the time `now`. `is_idle` reports whether no reconcile of a slot runs,
    /// for a slot and the number of slots.
    pub(crate) fn step(
        &mut self,
        now: Duration,
        wall_micros: i64,
        is_idle: &dyn Fn(u32, u32) -> bool,
        input: RingInput,
    ) -> RingOutput {
        match input {
            RingInput::Wake => {}
            RingInput::Term(term) => self.set_term(term),
            RingInput::Changed => {
                self.is_stale = true;
                self.has_changed_since_send |= self.in_flight.is_some();
            }
            RingInput::Stop => {
                (self.is_stopping, self.is_settled) = (true, false);
                self.drain();
            }
            RingInput::Response(response) => self.handle_response(now, response),
        }
        let send = match self.in_flight {
            Some(_) => None,
            None => self.next_request(now, wall_micros, is_idle),
        };
        if send.is_some() {
            (self.has_changed_since_send, self.sent) = (false, now);
        }
        let is_announced = self.draining.is_subset(&self.announced);
        self.announced.clone_from(&self.draining);
        RingOutput {
            wake: match is_announced || send.is_some() {
                true => self.next_wake(now),
                false => Some(now),
            },
            send,
        }
    }

    fn set_term(&mut self, term: Option<u64>) {
        if self.term != term {
            self.term = term;
            // The slots of the earlier incarnation are lost, and the ring is read before any is
            // served again.
            self.draining.clear();
            self.unconfirmed = None;
            (self.is_stale, self.is_settled) = (true, false);
        }
    }

    fn handle_response(&mut self, now: Duration, response: RingResponse) {
        let Some(in_flight) = self.in_flight.take() else {
            return;
        };
        match response {
            RingResponse::Listed(snapshot) => self.listed(now, snapshot),
            RingResponse::Written => self.is_stale = true,
            // The update may still have had an effect: a repeated request is refused as a conflict
            // with its own first attempt.
            RingResponse::Conflict => {
                let pause = (self.timing.retry_period / 40).mul_f64(self.random.unit());
                self.not_before = now.saturating_add(pause);
                self.is_stale = true;
                if in_flight == InFlight::Create {
                    self.refused = Some(now);
                }
            }
            RingResponse::Failed => {
                let pause = (self.timing.retry_period / 4).mul_f64(self.random.unit());
                self.not_before = now.saturating_add(pause);
                self.is_stale = true;
            }
        }
    }

    /// Handles a list: observes the member Leases and the ring.
    fn listed(&mut self, now: Duration, snapshot: Snapshot) {
        let mut names: BTreeSet<String> =
            snapshot.leases.iter().map(|it| it.name.clone()).collect();
        if let Some((ring, _)) = &snapshot.ring {
            let members = ring.members().iter();
            names.extend(members.map(|it| (self.lease_of)(&self.ring_name, &it.identity)));
        }
        self.observed.retain(|name, _| names.contains(name));
        for name in names {
            let lease = snapshot.leases.iter().find(|it| it.name == name);
            let record = lease.map(|lease| lease.record.clone());
            let members = snapshot.ring.iter().flat_map(|(ring, _)| ring.members());
            let mut members =
                members.filter(|it| (self.lease_of)(&self.ring_name, &it.identity) == name);
            let incarnation = members.next().map(|it| it.incarnation.clone());
            // A Lease that is missing may have been created and renewed since the last list.
            let is_followed = record.is_some() || !self.has_gap();
            match self.observed.get_mut(&name) {
                Some(observed)
                    if is_followed
                        && (&observed.record, &observed.incarnation) == (&record, &incarnation) => {
                }
                _ => {
                    let observed = Observed {
                        record,
                        incarnation,
                        changed: now,
                    };
                    self.observed.insert(name, observed);
                }
            }
        }
        let revision = snapshot.ring.as_ref().map_or(0, |(ring, _)| ring.revision);
        let is_same = match snapshot.ring {
            Some(_) => self.found(&snapshot.ring_uid, revision),
            None => {
                self.missed(now);
                false
            }
        };
        let slots = |ring: &Option<(Ring, String)>| ring.as_ref().map(|(ring, _)| ring.len());
        let former = self.snapshot.as_ref().and_then(|it| slots(&it.ring));
        if former != slots(&snapshot.ring) {
            // Slots have other numbers now. Each of them starts to drain again if it must.
            self.draining.clear();
            self.announced.clear();
        }
        let own = self.incarnation();
        let is_in = snapshot.ring.as_ref().zip(own);
        self.has_left = !is_in.is_some_and(|((ring, _), own)| ring.contains(&own));
        (self.snapshot, self.is_settled) = (Some(snapshot), false);
        (self.is_stale, self.listed) = (self.has_changed_since_send, now);
        self.asked = self.sent;
        self.next_list = now.saturating_add(self.timing.retry_period);
        if !is_same {
            self.drain();
        }
    }

    /// Handles a list with a ring. Returns whether the ring has not changed since the last list.
    fn found(&mut self, uid: &str, revision: u64) -> bool {
        (self.missing, self.refused) = (None, None);
        if self.ring_uid.as_deref() != Some(uid) {
            // The former ring was deleted. What was given away in it means nothing in this one.
            self.rings = self.rings.saturating_add(1);
            self.ring_uid = Some(uid.to_owned());
            self.unconfirmed = None;
            self.draining.clear();
            self.announced.clear();
            return false;
        }
        if (self.unconfirmed.as_ref()).is_some_and(|it| revision > it.revision) {
            self.unconfirmed = None;
        }
        self.ring().map(|ring| ring.revision) == Some(revision)
    }

    /// Reports whether the last two lists are so far apart that what both did not find may have
    /// existed in the meantime.
    fn has_gap(&self) -> bool {
        let gap = self.timing.retry_period.saturating_mul(2);
        self.sent > self.asked.saturating_add(gap)
    }

    /// Handles a list without a ring. Lists that are far apart do not show that there was no ring
    /// in the meantime.
    fn missed(&mut self, now: Duration) {
        match self.missing {
            Some(_) if !self.has_gap() => {}
            _ => self.missing = Some(now),
        }
    }

    /// Decides which slots this replica gives away.
    fn drain(&mut self) {
        let (Some(ring), Some(incarnation)) = (self.ring(), self.incarnation()) else {
            return;
        };
        self.draining = match self.is_stopping {
            true => ring.slots_of(&incarnation).into_iter().collect(),
            false => ring.surplus(&incarnation, &self.draining),
        };
    }

    /// Returns the time of the next wake-up: the next list, the first time at which a member Lease
    /// can be found expired, or the end of the view.
    fn next_wake(&self, now: Duration) -> Option<Duration> {
        let until = self.valid_until();
        let until = (self.ring().is_some() && until > now).then_some(until);
        if self.in_flight.is_some() {
            return until;
        }
        let seconds = self.timing.lease_seconds;
        let expiry = self.observed.values().filter_map(|it| it.expiry(seconds));
        let expiry = expiry.filter(|expiry| self.term.is_some() && *expiry > self.listed);
        let stale = self.is_stale.then_some(self.not_before);
        let next = expiry.chain([self.next_list]).chain(stale).min();
        let next = next.map(|next| next.max(self.not_before));
        next.into_iter().chain(until).min()
    }
}
