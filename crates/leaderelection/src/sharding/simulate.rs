//! The model test of sharding. It simulates several replicas with different clocks, one server, a
//! network that loses or delays requests and responses, and processes that pause, crash, stop,
//! restart and are added. All random values come from one seed, and no real clock is used, so that
//! a failure can be repeated: `cargo xtask simulate --only sharding --seed N`.
//!
//! The hashes are divided into cells, which are not larger than a slot. The simulation checks:
//!
//! - No two replicas own a cell, or reconcile an object of it, at the same time.
//! - No write leaves a process after the end of its slot, not even one of work that outlives its
//!   reconcile.
//! - If a replica reaches the server, each cell has an owner again within the Lease's duration by
//!   the slowest clock and two retry periods after a fault, and within 1 s otherwise, also after a
//!   clean stop. A slot that is to be given away counts as owned for the Lease's duration.
//! - When replicas are added, killed and stopped one after the other without other faults, no more
//!   cells move than a share of the larger number of replicas and one slot, and the slots of no two
//!   replicas differ by more than one.

mod checks;
mod faults;
mod replica;
mod scale;
mod server;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use opkit_random::Random;

use self::replica::{Replica, Work};
use self::server::Server;
use super::engine::{RingInput, RingRequest, RingResponse};
use crate::engine::{CLOCK_DRIFT_PERCENT, Input, LeaseRequest, LeaseResponse, Timing};

/// Number of cells, which is the largest number of slots of a simulated ring.
const CELLS: u32 = 128;
/// Maximum round-trip time of a request on a good network.
const LATENCY_MAX: Duration = Duration::from_millis(100);
/// Largest number of replicas.
const REPLICAS_MAX: usize = 9;
const RING: &str = "ring";

/// Deliberate bug of the simulated replicas. Tests verify that the simulation finds every bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bug {
    None,
    /// The slots of a dead replica are taken without removing the holder of its Lease.
    TakesWithoutRemoving,
    /// A Lease counts as expired after half of its duration.
    ExpiresEarly,
    /// Slots are given away while their reconciles run.
    GivesBusySlots,
    /// The incarnation of a replica stays the same after it lost its Lease.
    SameIncarnation,
    /// The changes of the ring are found by polling only.
    NoHints,
    /// The slots of dead replicas are never given to others.
    NeverTakes,
    /// Work that outlives its reconcile is not fenced.
    NoSlotFence,
    /// A term is as long as the Lease's duration.
    TermEqualsLease,
    /// Clocks deviate from true time by more than sharding allows.
    BadClocks,
    /// What was read about the ring counts without limit.
    ListsCountForever,
    /// A ring that was deleted is created again at once.
    CreatesAtOnce,
    /// Work that never ends keeps a slot.
    NoDrainLimit,
    /// A watch that ends is started after a retry period.
    LateWatches,
}

/// Event of the simulation. The first number of a variant is the index of the replica.
#[derive(Debug)]
enum Event {
    /// The timer of the election with this ID fires.
    Wake(usize, u64),
    /// The timer of the ring with this ID fires.
    RingWake(usize, u64),
    Arrive(usize, u64, LeaseRequest),
    Response(usize, u64, LeaseResponse),
    Timeout(usize, u64),
    RingArrive(usize, u64, RingRequest),
    RingResponse(usize, u64, RingResponse),
    RingTimeout(usize, u64),
    /// The watch reports a change of the ring; the second number is the generation of the process.
    Hint(usize, u64),
    /// Work in slots that are to be given away may have reached its limit; the second number is the
    /// generation of the process.
    DrainEnd(usize, u64),
    /// The work of a lost term has ended.
    TermEnded(usize, u64),
    /// A reconcile starts.
    Start(usize, u64),
    /// A reconcile writes.
    Write(usize, Work),
    /// A reconcile ends.
    End(usize, Work),
    InjectFault,
    RestoreLink(usize, u64),
    Resume(usize, u64),
    Restart(usize, u64),
    CheckLiveness,
}

/// Event with its time, and a number that orders events of the same time.
struct ScheduledEvent(Duration, u64, Event);

impl PartialEq for ScheduledEvent {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for ScheduledEvent {}

impl PartialOrd for ScheduledEvent {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ScheduledEvent {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

/// State of one run of the simulation.
struct Simulation {
    random: Random,
    bug: Bug,
    timing: Timing,
    /// Current true time, from which the clocks of the replicas deviate.
    now: Duration,
    events: BinaryHeap<Reverse<ScheduledEvent>>,
    sequence: u64,
    server: Server,
    replicas: Vec<Replica>,
    has_faults: bool,
    /// Number of objects, as each replica estimates it.
    objects: u64,
    /// Time of the last fault, or of the end of the last fault that lasts.
    disturbed: Duration,
    /// Cells that had an owner when this was last checked, and since when the others have none.
    owned: u128,
    unowned: Vec<Duration>,
    /// Requests to create the ring that have not arrived.
    creates: u32,
    /// Time at which the ring was created or deleted by a fault.
    ring_changed: Duration,
    /// Numbers of writes and of changes of the ring, so that tests know that there are some.
    writes: u64,
    next_grant: u64,
}

impl Simulation {
    fn new(seed: u64, bug: Bug) -> Self {
        let mut random = Random::new(seed);
        let (lease_seconds, renew, retry) =
            [(15, 10_000, 2000), (6, 4000, 500), (12, 11_900, 2000)][random.below(3) as usize];
        let timing = Timing {
            lease_seconds,
            renew_deadline: Duration::from_millis(renew),
            retry_period: Duration::from_millis(retry),
        };
        let objects = [0, 100, 500_000][random.below(3) as usize];
        let now = Duration::from_secs(1000);
        let mut simulation = Self {
            bug,
            timing,
            now,
            events: BinaryHeap::new(),
            sequence: 0,
            server: Server::default(),
            replicas: Vec::new(),
            has_faults: true,
            objects,
            disturbed: now,
            owned: 0,
            unowned: vec![now; CELLS as usize],
            creates: 0,
            ring_changed: now,
            writes: 0,
            next_grant: 0,
            random,
        };
        for _ in 0..1 + simulation.random.below(4) {
            simulation.add_replica();
        }
        simulation.schedule(Duration::ZERO, Event::InjectFault);
        simulation.schedule(Duration::ZERO, Event::CheckLiveness);
        simulation
    }

    fn lease(&self) -> Duration {
        Duration::from_secs(self.timing.lease_seconds.into())
    }

    /// Returns the true time that passes while the slowest clock advances by `local`.
    fn slowest(local: Duration) -> Duration {
        local * 100 / (100 - CLOCK_DRIFT_PERCENT)
    }

    fn schedule(&mut self, delay: Duration, event: Event) {
        self.sequence += 1;
        let entry = ScheduledEvent(self.now + delay, self.sequence, event);
        self.events.push(Reverse(entry));
    }

    /// Delays what must hold some time after the last fault.
    fn disturb(&mut self, until: Duration) {
        self.disturbed = self.disturbed.max(until);
    }

    fn random_duration(&mut self, max: Duration) -> Duration {
        max.mul_f64(self.random.unit())
    }

    /// Handles all events up to the time `end`.
    fn run_until(&mut self, end: Duration) -> Result<(), String> {
        while let Some(Reverse(entry)) = self.events.peek()
            && entry.0 <= end
        {
            let Some(Reverse(ScheduledEvent(now, _, event))) = self.events.pop() else {
                break;
            };
            self.now = now;
            self.handle_event(event)
                .map_err(|failure| format!("at {now:?}: {failure}"))?;
        }
        self.now = end;
        Ok(())
    }

    /// Returns the replica that an event belongs to, if it is one that a paused process handles
    /// when it resumes.
    fn waits_for(event: &Event) -> Option<usize> {
        match event {
            Event::Wake(index, _)
            | Event::RingWake(index, _)
            | Event::Response(index, ..)
            | Event::Timeout(index, _)
            | Event::RingResponse(index, ..)
            | Event::RingTimeout(index, _)
            | Event::Hint(index, _)
            | Event::DrainEnd(index, _)
            | Event::TermEnded(index, _)
            | Event::Start(index, _)
            | Event::Write(index, _)
            | Event::End(index, _) => Some(*index),
            _ => None,
        }
    }

    fn handle_event(&mut self, event: Event) -> Result<(), String> {
        if let Some(index) = Self::waits_for(&event)
            && self.replicas[index].paused_until > self.now
        {
            let delay = self.replicas[index].paused_until - self.now;
            let delay = delay + self.random_duration(Duration::from_millis(1));
            self.schedule(delay, event);
            return Ok(());
        }
        match event {
            Event::Wake(index, timer) if self.replicas[index].timer == timer => {
                self.step(index, Input::Wake)
            }
            Event::RingWake(index, timer) if self.replicas[index].ring_timer == timer => {
                self.step_ring(index, RingInput::Wake)
            }
            Event::Arrive(index, id, request) => {
                self.arrive(index, id, request);
                Ok(())
            }
            Event::RingArrive(index, id, request) => {
                self.arrive_ring(index, id, request);
                Ok(())
            }
            Event::Response(index, id, response) if self.replicas[index].request_id == id => {
                self.step(index, Input::Response(response))
            }
            Event::Timeout(index, id) if self.replicas[index].request_id == id => {
                self.step(index, Input::Response(LeaseResponse::Failed))
            }
            Event::RingResponse(index, id, response)
                if self.replicas[index].ring_request_id == id =>
            {
                self.step_ring(index, RingInput::Response(response))
            }
            Event::RingTimeout(index, id) if self.replicas[index].ring_request_id == id => {
                self.step_ring(index, RingInput::Response(RingResponse::Failed))
            }
            Event::Hint(index, generation) if self.replicas[index].generation == generation => {
                self.step_ring(index, RingInput::Changed)
            }
            Event::DrainEnd(index, generation) if self.replicas[index].generation == generation => {
                self.end_late_work(index)
            }
            Event::TermEnded(index, generation)
                if self.replicas[index].generation == generation =>
            {
                self.term_ended(index)
            }
            Event::Start(index, generation) => self.start(index, generation),
            Event::Write(index, work) => self.write(index, &work),
            Event::End(index, work) => self.end(index, &work),
            Event::InjectFault => self.inject_fault(),
            Event::RestoreLink(index, outage) => {
                self.restore_link(index, outage);
                Ok(())
            }
            Event::Resume(index, generation) => {
                if self.replicas[index].generation == generation {
                    self.disturb(self.now);
                }
                Ok(())
            }
            Event::Restart(index, generation) => self.restart(index, generation),
            Event::CheckLiveness => {
                self.schedule(self.timing.retry_period / 4, Event::CheckLiveness);
                self.check_owned()
            }
            _ => Ok(()),
        }
    }
}

/// Runs the simulation with the random values of `seed`, and returns the numbers of writes and of
/// changes of the ring.
fn run(seed: u64, bug: Bug) -> Result<(u64, u64), String> {
    let mut simulation = Simulation::new(seed, bug);
    let lease = simulation.lease();
    let leases = 4 + simulation.random.below(12) as u32;
    simulation.run_until(simulation.now + lease * leases)?;
    simulation.end_faults();
    simulation.run_until(simulation.now + lease * 6)?;
    simulation.scale()?;
    let revision = simulation.server.ring().map_or(0, |ring| ring.revision);
    Ok((simulation.writes, revision))
}

/// Runs the simulation with each of `seeds`. Panics with the seed of a failed run.
fn check(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let run = std::panic::catch_unwind(|| run(seed, Bug::None));
        let failure = match run {
            Ok(Ok(_)) => continue,
            Ok(Err(failure)) => failure,
            Err(_) => "the run panicked".to_owned(),
        };
        panic!(
            "seed {seed}: {failure}\nrepeat it with: cargo xtask simulate --only sharding --seed {seed}"
        );
    }
}

mod tests;
