//! A simulated replica: the election for its member Lease, its part in the ring, and its work.

use std::time::Duration;

use super::server::{cells, lease_of};
use super::{Bug, CELLS, Event, LATENCY_MAX, RING, Simulation};
use crate::engine::{
    CLOCK_DRIFT_PERCENT, ElectionEngine, Input, LeaseRequest, LeaseResponse, Phase,
};
use crate::sharding::engine::{
    RingEngine, RingInput, RingRequest, RingResponse, SlotView, Snapshot,
};
use crate::simulate::clock::Clock;

/// Network link between a replica and the server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Link {
    /// Share of requests that are lost, in percent.
    pub(super) request_loss_percent: u64,
    /// Share of responses that are lost, in percent.
    pub(super) response_loss_percent: u64,
    /// Share of requests for the ring that the server refuses, in percent.
    pub(super) refused_percent: u64,
    /// Maximum delay in each direction.
    pub(super) delay_max: Duration,
}

impl Link {
    pub(super) const GOOD: Self = Self {
        request_loss_percent: 0,
        response_loss_percent: 0,
        refused_percent: 0,
        delay_max: Duration::from_millis(50),
    };
}

/// A reconcile of an object in a cell.
#[derive(Debug, Clone)]
pub(super) struct Work {
    pub(super) id: u64,
    pub(super) generation: u64,
    pub(super) cell: u32,
    pub(super) term: u64,
    /// The grant of the cell in which the work started.
    grant: u64,
}

/// Simulated process.
pub(super) struct Replica {
    pub(super) identity: String,
    pub(super) engine: ElectionEngine,
    pub(super) ring: RingEngine,
    pub(super) clock: Clock,
    /// Deadline of the current term by the local clock; zero without a term.
    pub(super) deadline: Duration,
    /// Slots as the process knows them after its last step.
    pub(super) view: SlotView,
    /// Cells of all slots in `view`, and of those in which reconciles may start, as sets of bits.
    cells: u128,
    served: u128,
    /// Time by the local clock since which a cell is to be given away.
    drained: Vec<Option<Duration>>,
    /// Number of the current grant of each cell; 0 without one.
    grants: Vec<u64>,
    /// Reconciles that run.
    pub(super) running: Vec<Work>,
    pub(super) generation: u64,
    pub(super) is_dead: bool,
    pub(super) is_stopping: bool,
    /// Whether the election was asked to stop, because the process has left the ring.
    is_releasing: bool,
    pub(super) paused_until: Duration,
    pub(super) link: Link,
    pub(super) outage: u64,
    pub(super) timer: u64,
    pub(super) ring_timer: u64,
    pub(super) request_id: u64,
    pub(super) ring_request_id: u64,
    is_term_ending: bool,
    /// Member Leases whose holder the process believes to have removed; for a simulated bug.
    removed: Vec<String>,
}

impl Replica {
    /// Reports whether the term is open by the local clock.
    pub(super) fn is_open(&self, now: Duration) -> bool {
        !self.is_dead && self.clock.local(now) < self.deadline
    }

    /// Returns the cells that the replica owns, as a set of bits.
    pub(super) fn held(&self, now: Duration) -> u128 {
        match self.is_open(now) && self.knows_slots(now) {
            true => self.cells,
            false => 0,
        }
    }

    /// Reports whether the view counts by the local clock. The fences of slots check that too, even
    /// if the process was paused and has not handled the end of the view.
    fn knows_slots(&self, now: Duration) -> bool {
        self.clock.local(now) < self.view.until
    }

    /// Returns the cells that the replica owns, without those that it should have given away.
    pub(super) fn held_in_time(&self, now: Duration, limit: Duration) -> u128 {
        let (local, held) = (self.clock.local(now), self.held(now));
        let late = (0..CELLS).filter(|cell| {
            let since = self.drained[*cell as usize];
            held & !self.served & (1 << cell) != 0 && since.is_some_and(|it| local > it + limit)
        });
        late.fold(held, |held, cell| held & !(1 << cell))
    }

    /// Returns the cells in slots.
    fn bits<'a>(&self, slots: impl Iterator<Item = &'a u32>) -> u128 {
        let cells = slots.flat_map(|slot| cells(*slot, self.view.of));
        cells.fold(0, |bits, cell| bits | (1 << cell))
    }
}

impl Simulation {
    /// Adds a replica with a random clock.
    pub(super) fn add_replica(&mut self) -> usize {
        let index = self.replicas.len();
        let replica = self.new_replica(format!("replica-{index}"), 1);
        self.replicas.push(replica);
        self.disturb(self.now);
        self.schedule(Duration::ZERO, Event::Wake(index, 0));
        self.schedule(Duration::ZERO, Event::RingWake(index, 0));
        self.schedule(Duration::ZERO, Event::Start(index, 1));
        index
    }

    pub(super) fn new_replica(&mut self, identity: String, generation: u64) -> Replica {
        let rate = self.rate();
        let (election, ring) = (self.random.bits(), self.random.bits());
        Replica {
            engine: ElectionEngine::new(identity.clone(), self.timing, true, election),
            ring: RingEngine::new(RING, &identity, lease_of, self.timing, ring),
            identity,
            clock: Clock::new(self.now, rate),
            deadline: Duration::ZERO,
            view: SlotView::default(),
            cells: 0,
            served: 0,
            drained: vec![None; CELLS as usize],
            grants: vec![0; CELLS as usize],
            running: Vec::new(),
            generation,
            is_dead: false,
            is_stopping: false,
            is_releasing: false,
            paused_until: Duration::ZERO,
            link: Link::GOOD,
            outage: 0,
            timer: 0,
            ring_timer: 0,
            request_id: 0,
            ring_request_id: 0,
            is_term_ending: false,
            removed: Vec::new(),
        }
    }

    /// Returns a random rate of a clock, which is often the minimum or the maximum.
    pub(super) fn rate(&mut self) -> f64 {
        let bound = f64::from(CLOCK_DRIFT_PERCENT) / 100.0;
        let bound = match self.bug {
            Bug::BadClocks => bound * 4.0,
            _ => bound,
        };
        match self.random.below(4) {
            0 => 1.0 - bound,
            1 => 1.0 + bound,
            2 => 1.0,
            _ => 1.0 - bound + 2.0 * bound * self.random.unit(),
        }
    }

    /// Passes an input to the election of a replica, and executes its output.
    pub(super) fn step(&mut self, index: usize, input: Input) -> Result<(), String> {
        let (bug, lease, now) = (self.bug, self.lease(), self.now);
        let replica = &mut self.replicas[index];
        if replica.is_dead {
            return Ok(());
        }
        let is_written = matches!(input, Input::Response(LeaseResponse::Written(_)));
        let local = replica.clock.local(now);
        let output = replica.engine.step(local, local.as_micros() as i64, input);
        let phase = replica.engine.phase();
        let term = match phase {
            Phase::Leading { deadline } => {
                replica.deadline = match bug {
                    Bug::TermEqualsLease if is_written => deadline - self.timing.term() + lease,
                    Bug::TermEqualsLease => replica.deadline,
                    _ => deadline,
                };
                Some(replica.engine.term())
            }
            // The correct deadline has passed; the simulated wrong one may not have.
            Phase::Ending { .. } if bug == Bug::TermEqualsLease => Some(replica.engine.term()),
            _ => {
                replica.deadline = Duration::ZERO;
                None
            }
        };
        if phase == Phase::Done {
            return self.handle_end(index);
        }
        match output.send {
            Some(request) => self.send(index, request),
            None if !self.replicas[index].engine.is_in_flight() => {
                self.replicas[index].request_id += 1;
            }
            None => {}
        }
        let replica = &mut self.replicas[index];
        replica.timer += 1;
        if let Some(wake) = output.wake {
            let (timer, delay) = (replica.timer, replica.clock.until(now, wake));
            self.schedule(delay, Event::Wake(index, timer));
        }
        let replica = &mut self.replicas[index];
        if let Phase::Ending { .. } = phase
            && !replica.is_term_ending
        {
            replica.is_term_ending = true;
            self.disturb(now);
            let generation = self.replicas[index].generation;
            let delay = self.random_duration(Duration::from_millis(500));
            self.schedule(delay, Event::TermEnded(index, generation));
        }
        let term = match bug {
            Bug::SameIncarnation => term.map(|_| 1),
            _ => term,
        };
        self.step_ring(index, RingInput::Term(term))
    }

    /// Handles the end of the work of a lost term.
    pub(super) fn term_ended(&mut self, index: usize) -> Result<(), String> {
        self.disturb(self.now);
        let replica = &mut self.replicas[index];
        replica.is_term_ending = false;
        replica.running.clear();
        self.step(index, Input::WorkEnded)
    }

    /// Passes an input to the ring engine of a replica, and executes its output.
    pub(super) fn step_ring(&mut self, index: usize, input: RingInput) -> Result<(), String> {
        let (bug, now) = (self.bug, self.now);
        let replica = &mut self.replicas[index];
        if replica.is_dead {
            return Ok(());
        }
        replica.ring.set_objects(self.objects);
        let input = match input {
            RingInput::Response(RingResponse::Listed(snapshot)) => {
                let snapshot = seen_with(bug, &replica.removed, snapshot);
                RingInput::Response(RingResponse::Listed(snapshot))
            }
            input => input,
        };
        let (local, running) = (replica.clock.local(now), &replica.running);
        let is_idle = |slot: u32, of: u32| {
            let cells = cells(slot, of);
            bug == Bug::GivesBusySlots || !running.iter().any(|work| cells.contains(&work.cell))
        };
        let output = replica
            .ring
            .step(local, local.as_micros() as i64, &is_idle, input);
        self.update_view(index);
        self.check_exclusive()?;
        self.check_owned()?;
        if let Some(request) = output.send {
            self.send_ring(index, request);
        }
        let replica = &mut self.replicas[index];
        replica.ring_timer += 1;
        if let Some(wake) = output.wake {
            let (timer, delay) = (replica.ring_timer, replica.clock.until(now, wake));
            self.schedule(delay, Event::RingWake(index, timer));
        }
        let replica = &mut self.replicas[index];
        if replica.is_stopping
            && replica.ring.has_left()
            && !replica.is_releasing
            && replica.running.is_empty()
        {
            replica.is_releasing = true;
            self.step(index, Input::Stop)?;
            if !self.replicas[index].is_dead && self.replicas[index].engine.awaits_work_end() {
                return self.step(index, Input::WorkEnded);
            }
        }
        Ok(())
    }

    /// Gives a new number to each cell that the replica gains.
    fn update_view(&mut self, index: usize) {
        let replica = &mut self.replicas[index];
        let (local, limit) = (replica.clock.local(self.now), self.timing.lease());
        let mut view = match self.bug {
            Bug::ListsCountForever => replica.ring.view(Duration::ZERO),
            _ => replica.ring.view(local),
        };
        if self.bug == Bug::ListsCountForever {
            view.until = Duration::MAX;
        }
        if view == replica.view {
            return;
        }
        if view.ring != replica.view.ring || view.of == 0 {
            // All work of the former ring ends.
            replica.running.clear();
            replica.grants.fill(0);
        }
        replica.view = view;
        replica.served = replica.bits(replica.view.owned.iter());
        replica.cells = replica.served | replica.bits(replica.view.draining.iter());
        let (held, mut ends) = (replica.cells, None);
        for cell in 0..CELLS {
            let grant = &mut replica.grants[cell as usize];
            let is_held = held & (1 << cell) != 0;
            if is_held && *grant == 0 {
                self.next_grant += 1;
                *grant = self.next_grant;
            } else if !is_held {
                *grant = 0;
            }
            let drains = is_held && replica.served & (1 << cell) == 0;
            let drained = &mut replica.drained[cell as usize];
            match drains {
                true if drained.is_none() => {
                    *drained = Some(local);
                    let delay = replica.clock.until(self.now, local + limit);
                    // The rate of the clock is rounded.
                    ends = Some(delay + Duration::from_micros(1));
                }
                true => {}
                false => *drained = None,
            }
        }
        let generation = replica.generation;
        if let Some(delay) = ends {
            self.schedule(delay, Event::DrainEnd(index, generation));
        }
    }

    /// Ends the work that runs for too long in cells that are to be given away.
    pub(super) fn end_late_work(&mut self, index: usize) -> Result<(), String> {
        let (limit, replica) = (self.timing.lease(), &mut self.replicas[index]);
        if self.bug == Bug::NoDrainLimit {
            return Ok(());
        }
        let local = replica.clock.local(self.now);
        let is_late = |since: &Option<Duration>| since.is_some_and(|it| local >= it + limit);
        let late: Vec<bool> = replica.drained.iter().map(is_late).collect();
        replica.running.retain(|work| !late[work.cell as usize]);
        for (grant, _) in replica
            .grants
            .iter_mut()
            .zip(late)
            .filter(|(_, late)| *late)
        {
            *grant = 0;
        }
        self.step_ring(index, RingInput::Wake)
    }

    /// Starts a reconcile in a random cell if the replica serves it, and schedules the next one.
    pub(super) fn start(&mut self, index: usize, generation: u64) -> Result<(), String> {
        let cell = self.random.below(u64::from(CELLS)) as u32;
        let replica = &self.replicas[index];
        if replica.generation != generation || replica.is_dead {
            return Ok(());
        }
        let next = self.random_duration(self.timing.retry_period);
        self.schedule(next, Event::Start(index, generation));
        let replica = &self.replicas[index];
        let serves = replica.knows_slots(self.now) && replica.served & (1 << cell) != 0;
        if !replica.is_open(self.now) || replica.is_stopping || !serves {
            return Ok(());
        }
        self.check_reconciled_once(index, cell)?;
        let max = match self.has_faults && self.random.percent(3) {
            true => self.lease() * 2,
            false => Duration::from_millis(300),
        };
        self.sequence += 1;
        let replica = &mut self.replicas[index];
        let work = Work {
            id: self.sequence,
            generation,
            cell,
            term: replica.engine.term(),
            grant: replica.grants[cell as usize],
        };
        replica.running.push(work.clone());
        let length = self.random_duration(max);
        let write = length.mul_f64(self.random.unit());
        self.schedule(write, Event::Write(index, work.clone()));
        // A task that the reconcile has started, and that it does not wait for.
        let late = length + self.random_duration(max);
        self.schedule(late, Event::Write(index, work.clone()));
        self.schedule(length, Event::End(index, work));
        Ok(())
    }

    /// Ends a reconcile.
    pub(super) fn end(&mut self, index: usize, work: &Work) -> Result<(), String> {
        let replica = &mut self.replicas[index];
        if replica.generation != work.generation || replica.is_dead {
            return Ok(());
        }
        replica.running.retain(|it| it.id != work.id);
        self.step_ring(index, RingInput::Wake)
    }

    /// Sends a write of a reconcile if the fences let it pass, and checks that it may.
    pub(super) fn write(&mut self, index: usize, work: &Work) -> Result<(), String> {
        let (now, replica) = (self.now, &self.replicas[index]);
        if replica.generation != work.generation || replica.is_dead {
            return Ok(());
        }
        let is_in_term = replica.is_open(now) && replica.engine.term() == work.term;
        let is_granted =
            replica.knows_slots(now) && replica.grants[work.cell as usize] == work.grant;
        if !is_in_term || !(is_granted || self.bug == Bug::NoSlotFence) {
            return Ok(());
        }
        self.writes += 1;
        match self.owner_of(work.cell).filter(|owner| *owner != index) {
            Some(owner) => Err(format!(
                "a write of {} leaves while {} owns the cell {}",
                replica.identity, self.replicas[owner].identity, work.cell
            )),
            None => Ok(()),
        }
    }

    fn timeout(&self, index: usize) -> Duration {
        let timeout = (self.timing.renew_deadline / 2).max(Duration::from_secs(1));
        let clock = &self.replicas[index].clock;
        clock.until(self.now, clock.local(self.now) + timeout)
    }

    /// Returns the delay of a message, or `None` if it is lost.
    fn delay(&mut self, index: usize, is_request: bool) -> Option<Duration> {
        let link = self.replicas[index].link;
        let percent = match is_request {
            true => link.request_loss_percent,
            false => link.response_loss_percent,
        };
        match self.random.percent(percent) {
            true => None,
            false => Some(self.random_duration(link.delay_max)),
        }
    }

    /// Pauses the process at random before or after a request leaves, and returns the delay of the
    /// request.
    fn pause_at_send(&mut self, index: usize) -> Duration {
        if !self.has_faults || !self.random.percent(2) {
            return Duration::ZERO;
        }
        let pause = self.random_duration(self.lease() * 2);
        self.pause(index, pause);
        match self.random.below(3) {
            0 => return pause,
            1 => self.start_outage(index),
            _ => {}
        }
        Duration::ZERO
    }

    fn send(&mut self, index: usize, request: LeaseRequest) {
        self.replicas[index].request_id += 1;
        let pause = self.pause_at_send(index);
        let id = self.replicas[index].request_id;
        let timeout = self.timeout(index);
        self.schedule(timeout, Event::Timeout(index, id));
        if let Some(delay) = self.delay(index, true) {
            self.schedule(pause + delay, Event::Arrive(index, id, request));
        }
    }

    fn send_ring(&mut self, index: usize, request: RingRequest) {
        self.replicas[index].ring_request_id += 1;
        let pause = self.pause_at_send(index);
        let id = self.replicas[index].ring_request_id;
        let timeout = self.timeout(index);
        self.schedule(timeout, Event::RingTimeout(index, id));
        let refused = self.replicas[index].link.refused_percent;
        if self.random.percent(refused) {
            return;
        }
        if let Some(delay) = self.delay(index, true) {
            self.creates += u32::from(matches!(request, RingRequest::Create(_)));
            self.schedule(pause + delay, Event::RingArrive(index, id, request));
        }
    }

    /// Delivers a request to the server, whether or not its sender still runs.
    pub(super) fn arrive(&mut self, index: usize, id: u64, request: LeaseRequest) {
        let name = lease_of(RING, &self.replicas[index].identity);
        let response = self.server.handle(&name, request);
        if let Some(delay) = self.delay(index, false) {
            self.schedule(delay, Event::Response(index, id, response));
        }
    }

    pub(super) fn arrive_ring(&mut self, index: usize, id: u64, request: RingRequest) {
        let is_create = matches!(request, RingRequest::Create(_));
        self.creates -= u32::from(is_create);
        let (response, is_changed) = match (self.bug, request) {
            (Bug::NeverTakes, RingRequest::RemoveHolder(_)) => (RingResponse::Failed, false),
            (Bug::TakesWithoutRemoving, RingRequest::RemoveHolder(lease)) => {
                self.replicas[index].removed.push(lease.name);
                (RingResponse::Written, false)
            }
            (_, request) => self.server.handle_ring(request),
        };
        if is_create && is_changed {
            self.ring_changed = self.now;
        }
        if let Some(delay) = self.delay(index, false) {
            self.schedule(delay, Event::RingResponse(index, id, response));
        }
        if is_changed {
            self.notify_all();
        }
    }

    /// Notifies the watches of all replicas of a change of the ring. A watch that the server has
    /// just ended reports the change when it is started again.
    pub(super) fn notify_all(&mut self) {
        for other in 0..self.replicas.len() {
            let mut gap = Duration::ZERO;
            if self.random.percent(2) {
                gap = match self.bug {
                    Bug::LateWatches => self.timing.retry_period,
                    _ => self.random_duration(LATENCY_MAX * 2),
                };
            }
            if self.bug != Bug::NoHints
                && let Some(delay) = self.delay(other, false)
            {
                let generation = self.replicas[other].generation;
                self.schedule(gap + delay, Event::Hint(other, generation));
            }
        }
    }

    /// Returns the maximum time between a fault and the moment at which each cell has an owner.
    pub(super) fn bound(&self) -> Duration {
        // A list, the removal of the holder, a list and an update follow one another. The second
        // retry period has room for them, but hardly if it is as short as here.
        let room = LATENCY_MAX * 5 / 4;
        Self::slowest(self.lease() + self.timing.retry_period * 2) + room
    }
}

/// Returns the snapshot as a process with a bug sees it.
fn seen_with(bug: Bug, removed: &[String], mut snapshot: Snapshot) -> Snapshot {
    for lease in &mut snapshot.leases {
        if bug == Bug::TakesWithoutRemoving && removed.contains(&lease.name) {
            lease.record.holder.clear();
        }
        if bug == Bug::ExpiresEarly {
            lease.record.lease_seconds /= 2;
        }
    }
    snapshot
}
