//! The slots in which work may begin, and those whose work must end before they are given away.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use opkit_client::Fence;
use tokio_util::sync::CancellationToken;

use super::SlotAssignment;
use crate::sharding::ring::hashes;

/// Part of the hashes that this replica owns without a break.
#[derive(Debug)]
pub(super) struct Grant {
    pub(super) id: u64,
    hashes: Range<u128>,
    pub(super) fence: Fence,
    pub(super) lost: CancellationToken,
    /// Number of permits. Changed only under the lock of the table.
    permits: AtomicUsize,
}

/// A grant in which no more work may begin and some work still runs.
#[derive(Debug)]
struct Draining {
    grant: Arc<Grant>,
    /// Time at which the work is ended; `None` if it has been, or if the slot is not to be given
    /// away any more.
    end: Option<Duration>,
}

/// What a replica owns at a time.
#[derive(Debug)]
pub(super) struct Publication<'a> {
    pub(super) assignment: &'a SlotAssignment,
    /// Number of the ring.
    pub(super) ring: u64,
    /// Time at which the slots are lost, unless they are published again before.
    pub(super) until: Duration,
    pub(super) now: Duration,
    /// Longest time that work may run in a slot that is to be given away.
    pub(super) drain_limit: Duration,
}

impl Grant {
    fn overlaps(&self, hashes: &Range<u128>) -> bool {
        self.hashes.start < hashes.end && hashes.start < self.hashes.end
    }

    fn is_idle(&self) -> bool {
        self.permits.load(Relaxed) == 0
    }

    /// Ends the grant: its fence refuses all further writes.
    fn close(&self) {
        self.fence.close();
    }

    /// Ends the grant and its work.
    fn end(&self) {
        self.close();
        self.lost.cancel();
    }

    /// Lets writes pass for `time` from now on.
    fn open(&self, time: Duration) {
        if !self.lost.is_cancelled() {
            self.fence.open(1, self.fence.now().saturating_add(time));
        }
    }
}

/// The grants of a replica.
#[derive(Debug, Default)]
pub(super) struct SlotTable {
    term: Option<u64>,
    ring: u64,
    of: u32,
    owned: BTreeSet<u32>,
    /// Time at which all slots are lost.
    until: Duration,
    /// Grants in which work may begin, in the order of their hashes.
    served: Vec<Arc<Grant>>,
    draining: Vec<Draining>,
    last_id: u64,
}

impl SlotTable {
    /// Takes over the slots of this replica. Does not let work begin in new ones.
    pub(super) fn publish(&mut self, publication: &Publication<'_>) {
        let Publication {
            assignment, now, ..
        } = publication;
        let is_lost = (self.term, self.ring) != (assignment.term, publication.ring);
        (self.term, self.ring) = (assignment.term, publication.ring);
        self.of = assignment.of;
        self.owned.clone_from(&assignment.owned);
        self.until = publication.until;
        if is_lost {
            let served = self.served.drain(..);
            let served = served.map(|grant| Draining { grant, end: None });
            self.draining.extend(served);
            for draining in &mut self.draining {
                draining.grant.end();
                draining.end = None;
            }
            self.draining.retain(|it| !it.grant.is_idle());
            return;
        }
        let (owned, of) = (&self.owned, self.of);
        let is_kept = |grant: &Arc<Grant>| {
            let mut slots = slots_in(&grant.hashes, of);
            slots.all(|slot| owned.contains(&slot))
        };
        let (kept, retired) = self.served.drain(..).partition(is_kept);
        self.served = kept;
        for grant in retired {
            match grant.is_idle() {
                true => grant.close(),
                false => self.draining.push(Draining { grant, end: None }),
            }
        }
        for draining in &mut self.draining {
            let end = now.saturating_add(publication.drain_limit);
            let is_ended = draining.grant.lost.is_cancelled();
            let drains = !is_ended && !is_kept(&draining.grant);
            draining.end = drains.then(|| draining.end.unwrap_or(end));
        }
        let time = self.until.saturating_sub(*now);
        let draining = self.draining.iter().map(|it| &it.grant);
        self.served
            .iter()
            .chain(draining)
            .for_each(|grant| grant.open(time));
    }

    /// Ends the work that runs for too long in slots that are to be given away. Returns the next
    /// time at which there is such work.
    pub(super) fn end_late(&mut self, now: Duration) -> Option<Duration> {
        for draining in &mut self.draining {
            if draining.end.is_some_and(|end| end <= now) {
                draining.grant.end();
                draining.end = None;
            }
        }
        self.draining.iter().filter_map(|it| it.end).min()
    }

    /// Lets work begin in those slots of `assignment` that are still owned.
    pub(super) fn serve(&mut self, assignment: &SlotAssignment, now: Duration) {
        if assignment.term != self.term || self.term.is_none() {
            return;
        }
        let slots: Vec<u32> = self.owned.iter().copied().collect();
        for slot in slots {
            let wanted = hashes(slot, self.of);
            let mut asked = slots_in(&wanted, assignment.of);
            if !asked.all(|slot| assignment.owned.contains(&slot)) {
                continue;
            }
            let mut start = wanted.start;
            let covered: Vec<Range<u128>> = (self.served.iter())
                .filter(|grant| grant.overlaps(&wanted))
                .map(|grant| grant.hashes.clone())
                .collect();
            for part in covered {
                self.grant(start..part.start, now);
                start = part.end;
            }
            self.grant(start..wanted.end, now);
        }
    }

    fn grant(&mut self, hashes: Range<u128>, now: Duration) {
        if hashes.is_empty() {
            return;
        }
        self.last_id += 1;
        let grant = Arc::new(Grant {
            id: self.last_id,
            hashes,
            fence: Fence::new(),
            lost: CancellationToken::new(),
            permits: AtomicUsize::new(0),
        });
        grant.open(self.until.saturating_sub(now));
        let start = grant.hashes.start;
        let place = self.served.partition_point(|it| it.hashes.start < start);
        self.served.insert(place, grant);
    }

    fn find(&self, hash: u64) -> Option<&Arc<Grant>> {
        let hash = u128::from(hash);
        let after = self.served.partition_point(|it| it.hashes.start <= hash);
        let grant = self.served.get(after.checked_sub(1)?)?;
        grant.hashes.contains(&hash).then_some(grant)
    }

    pub(super) fn serves(&self, hash: u64) -> bool {
        self.find(hash).is_some()
    }

    pub(super) fn begin(&mut self, hash: u64, now: Duration) -> Option<Arc<Grant>> {
        if now >= self.until {
            return None;
        }
        let grant = self.find(hash)?.clone();
        grant.permits.fetch_add(1, Relaxed);
        Some(grant)
    }

    /// Ends work in a grant. Returns whether it was the last of a grant that is given away.
    pub(super) fn end(&mut self, grant: &Arc<Grant>) -> bool {
        if grant.permits.fetch_sub(1, Relaxed) != 1 {
            return false;
        }
        let before = self.draining.len();
        self.draining.retain(|it| !Arc::ptr_eq(&it.grant, grant));
        let was_draining = self.draining.len() < before;
        if was_draining {
            grant.close();
        }
        was_draining
    }

    pub(super) fn is_idle(&self, slot: u32, of: u32) -> bool {
        let hashes = hashes(slot, of);
        let draining = self.draining.iter().map(|it| &it.grant);
        let mut grants = self.served.iter().chain(draining);
        !grants.any(|grant| grant.overlaps(&hashes))
    }
}

/// Returns the slots of `of` that contain some of `hashes`.
fn slots_in(hashes: &Range<u128>, of: u32) -> impl Iterator<Item = u32> + use<> {
    let of = u128::from(of.max(1));
    let slot = |hash: u128| u32::try_from((hash * of) >> 64).unwrap_or(u32::MAX);
    slot(hashes.start)..=slot(hashes.end.saturating_sub(1))
}
