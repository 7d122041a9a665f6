//! The model test of elections. It simulates several candidates with different clocks, one server,
//! a network that loses or delays requests and responses, and processes that pause at any point,
//! crash, stop and restart. All random values come from one seed, and no real clock is used, so
//! that a failure can be repeated: `cargo xtask simulate --only leader-election --seed N`.
//!
//! The simulation checks four properties:
//!
//! - No write leaves the process after the deadline of its term by the clock of the process, or in
//!   a later term. A pause between the last check of the fence and the send cannot be excluded. If
//!   the pause is shorter than the minimum time between two terms, the write must still leave
//!   before any other term.
//! - The terms of two candidates do not overlap in true time.
//! - If a candidate reaches the server, there is a leader soon after the last write of the Lease,
//!   by the slowest clock: within one acquire interval after a release, and otherwise within the
//!   Lease's duration plus two acquire intervals.
//! - No candidate ends without a stop.

mod candidate;
pub(crate) mod clock;
mod faults;
pub(crate) mod server;
mod writes;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use opkit_random::Random;

use self::candidate::{Candidate, Link};
use self::server::Server;
use self::writes::Write;
use crate::engine::{
    CLOCK_DRIFT_PERCENT, Input, JITTER_TENTHS, LeaseRequest, LeaseResponse, Phase, Timing,
};

/// Maximum round-trip time of a request on a good network.
const LATENCY_MAX: Duration = Duration::from_millis(100);

/// Deliberate bug of a simulated candidate. Tests verify that the simulation finds every bug.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bug {
    None,
    /// The deadline of a term counts from the response to a renewal instead of from the request.
    DeadlineFromResponse,
    /// A term is as long as the Lease's duration.
    TermEqualsLease,
    /// Writes are not fenced.
    NoFence,
    /// The fence is checked when a write starts, and not when the write leaves the process.
    NoLastCheck,
    /// Work of an earlier term can write in a later one.
    NoTermCheck,
    /// Clocks deviate from true time by more than the election allows.
    BadClocks,
    /// A candidate that has lost the Lease never tries to acquire it again.
    NeverAcquiresAgain,
}

/// Event of the simulation. The first number of a variant is the index of the candidate.
#[derive(Debug)]
enum Event {
    /// The timer with this ID fires.
    Wake(usize, u64),
    /// A request reaches the server.
    Arrive(usize, u64, LeaseRequest),
    /// A response reaches its candidate.
    Response(usize, u64, LeaseResponse),
    /// A request of a candidate times out: the index of the candidate, and the ID of the request.
    Timeout(usize, u64),
    /// The work of a process has ended; the second number is the generation of the process.
    WorkEnded(usize, u64),
    /// A worker starts a write.
    Write(usize, u64),
    /// A write reaches the last check of the fence.
    LastCheck(usize, Write),
    /// A write leaves the process; the duration is the time since the last check of the fence.
    SendWrite(usize, Write, Duration),
    /// A random fault is injected.
    InjectFault,
    /// The outage with this ID ends.
    RestoreLink(usize, u64),
    /// A process restarts; the second number is the generation of the process that has ended.
    Restart(usize, u64),
    /// The simulation checks that there is a leader.
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
    /// Current true time, from which the clocks of the candidates deviate.
    now: Duration,
    events: BinaryHeap<Reverse<ScheduledEvent>>,
    sequence: u64,
    server: Server,
    candidates: Vec<Candidate>,
    /// Whether faults are injected.
    has_faults: bool,
    /// Number of writes that left their process.
    writes: u64,
    /// Number of terms that started.
    terms: u64,
}

impl Simulation {
    fn new(seed: u64, bug: Bug) -> Self {
        let mut random = Random::new(seed);
        // The default durations, short ones, and a renew deadline close to the Lease's duration.
        let (lease_seconds, renew, retry) =
            [(15, 10_000, 2000), (3, 2000, 500), (12, 11_900, 2000)][random.below(3) as usize];
        let timing = Timing {
            lease_seconds,
            renew_deadline: Duration::from_millis(renew),
            retry_period: Duration::from_millis(retry),
        };
        let mut simulation = Self {
            bug,
            timing,
            now: Duration::from_secs(1000),
            events: BinaryHeap::new(),
            sequence: 0,
            server: Server::default(),
            candidates: Vec::new(),
            has_faults: true,
            writes: 0,
            terms: 0,
            random,
        };
        for number in 0..2 + simulation.random.below(3) as usize {
            let candidate = simulation.new_candidate(format!("candidate-{number}"), 1);
            simulation.candidates.push(candidate);
            simulation.schedule(Duration::ZERO, Event::Wake(number, 0));
        }
        simulation.schedule(Duration::ZERO, Event::InjectFault);
        simulation.schedule(Duration::ZERO, Event::CheckLiveness);
        simulation
    }

    /// Returns the Lease's duration.
    fn lease(&self) -> Duration {
        Duration::from_secs(self.timing.lease_seconds.into())
    }

    /// Returns the maximum time between two attempts of a candidate.
    fn acquire_interval_max(&self) -> Duration {
        self.timing.retry_period * (10 + JITTER_TENTHS) / 10
    }

    /// Returns the true time that passes while the slowest clock advances by `local`.
    fn slowest(local: Duration) -> Duration {
        local * 100 / (100 - CLOCK_DRIFT_PERCENT)
    }

    /// Returns the minimum time between the end of a term and the start of the next one.
    fn slack(&self) -> Duration {
        let earliest = self.lease() * 100 / (100 + CLOCK_DRIFT_PERCENT);
        earliest.saturating_sub(Self::slowest(self.timing.term()))
    }

    /// Schedules an event after a delay.
    fn schedule(&mut self, delay: Duration, event: Event) {
        self.sequence += 1;
        let entry = ScheduledEvent(self.now + delay, self.sequence, event);
        self.events.push(Reverse(entry));
    }

    /// Returns a random time up to `max`.
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

    /// Handles one event.
    fn handle_event(&mut self, event: Event) -> Result<(), String> {
        // A paused process handles its events when it resumes.
        if let Event::Wake(index, _)
        | Event::Response(index, ..)
        | Event::Timeout(index, _)
        | Event::WorkEnded(index, _)
        | Event::Write(index, _)
        | Event::LastCheck(index, ..) = &event
            && self.candidates[*index].paused_until > self.now
        {
            let delay = self.candidates[*index].paused_until - self.now;
            let delay = delay + self.random_duration(Duration::from_millis(1));
            self.schedule(delay, event);
            return Ok(());
        }
        match event {
            Event::Wake(index, timer) if self.candidates[index].timer == timer => {
                self.step(index, Input::Wake)
            }
            Event::Arrive(index, request_id, request) => {
                self.arrive(index, request_id, request);
                Ok(())
            }
            Event::Response(index, request_id, response)
                if self.candidates[index].request_id == request_id =>
            {
                self.deliver_response(index, response)
            }
            Event::Timeout(index, request_id)
                if self.candidates[index].request_id == request_id =>
            {
                self.step(index, Input::Response(LeaseResponse::Failed))
            }
            Event::WorkEnded(index, generation)
                if self.candidates[index].generation == generation =>
            {
                self.candidates[index].is_work_ending = false;
                if self.bug == Bug::NeverAcquiresAgain && !self.candidates[index].is_stopping {
                    return Ok(());
                }
                self.step(index, Input::WorkEnded)
            }
            Event::Write(index, generation) => self.write(index, generation),
            Event::LastCheck(index, write) => self.last_check(index, write),
            Event::SendWrite(index, write, gap) => self.send_write(index, &write, gap),
            Event::InjectFault => self.inject_fault(),
            Event::RestoreLink(index, outage) => self.restore_link(index, outage),
            Event::Restart(index, generation) => self.restart(index, generation),
            Event::CheckLiveness => {
                self.schedule(self.timing.retry_period / 4, Event::CheckLiveness);
                self.check_liveness()
            }
            _ => Ok(()),
        }
    }

    /// Passes an input to the engine of a candidate, and executes the output of the engine.
    fn step(&mut self, index: usize, input: Input) -> Result<(), String> {
        let (bug, lease, now) = (self.bug, self.lease(), self.now);
        let candidate = &mut self.candidates[index];
        if candidate.is_dead {
            return Ok(());
        }
        let before = candidate.engine.phase();
        let is_written = matches!(input, Input::Response(LeaseResponse::Written(_)));
        let local = candidate.clock.local(now);
        let output = candidate
            .engine
            .step(local, candidate.wall_micros(now), input);
        match candidate.engine.phase() {
            Phase::Leading { deadline } => {
                let deadline = match bug {
                    Bug::DeadlineFromResponse if is_written => local + self.timing.term(),
                    Bug::TermEqualsLease if is_written => deadline - self.timing.term() + lease,
                    Bug::DeadlineFromResponse | Bug::TermEqualsLease => candidate.deadline,
                    _ => deadline,
                };
                candidate.deadline = deadline;
                candidate.fence.open(candidate.engine.term(), deadline);
            }
            // The correct deadline has passed; the simulated wrong one may not have.
            Phase::Ending { .. } | Phase::Acquiring
                if matches!(bug, Bug::DeadlineFromResponse | Bug::TermEqualsLease) => {}
            _ => {
                candidate.deadline = Duration::ZERO;
                candidate.fence.close();
            }
        }
        let phase = candidate.engine.phase();
        let leads = |phase: Phase| matches!(phase, Phase::Leading { .. });
        if leads(phase) && !leads(before) {
            self.terms += 1;
            let generation = candidate.generation;
            self.schedule(Duration::ZERO, Event::Write(index, generation));
        }
        self.check_exclusive()?;
        if phase == Phase::Done {
            return self.handle_end(index);
        }
        if let Some(request) = output.send {
            self.send(index, request);
        } else if !self.candidates[index].engine.is_in_flight() {
            self.candidates[index].request_id += 1;
        }
        let candidate = &mut self.candidates[index];
        candidate.timer += 1;
        if let Some(wake) = output.wake {
            let (timer, delay) = (candidate.timer, candidate.clock.until(now, wake));
            self.schedule(delay, Event::Wake(index, timer));
        }
        let candidate = &mut self.candidates[index];
        if candidate.engine.awaits_work_end() && !candidate.is_work_ending {
            candidate.is_work_ending = true;
            let generation = candidate.generation;
            let max = match self.random.percent(20) {
                true => self.lease() * 2,
                false => Duration::from_millis(500),
            };
            let delay = self.random_duration(max);
            self.schedule(delay, Event::WorkEnded(index, generation));
        }
        Ok(())
    }

    /// Checks that at most one fence is open. Called after each call of [`step`](Self::step),
    /// because no other function opens a fence.
    fn check_exclusive(&self) -> Result<(), String> {
        let open = self.candidates.iter().filter(|it| it.is_open(self.now));
        let open: Vec<_> = open.map(|it| &it.identity).collect();
        match open.len() {
            0 | 1 => Ok(()),
            _ => Err(format!("the deadlines of {open:?} overlap")),
        }
    }

    /// Checks that there is a leader if a candidate has reached the server for long enough.
    fn check_liveness(&self) -> Result<(), String> {
        if self.candidates.iter().any(|it| it.is_open(self.now)) {
            return Ok(());
        }
        let interval = self.acquire_interval_max();
        let lease = self.server.lease();
        let is_free = lease.is_none_or(|lease| lease.record.holder.is_empty());
        let bound = match is_free {
            true => interval,
            false => self.lease() + interval * 2,
        };
        let bound = Self::slowest(bound) + LATENCY_MAX * 4;
        for candidate in &self.candidates {
            let Some(since) = candidate.reachable_since else {
                continue;
            };
            let from = since.max(self.server.written);
            if self.now > from + bound {
                return Err(format!(
                    "there is no leader {:?} after the last write of the lease, and {} reached the server {:?} ago ({lease:?})",
                    self.now - self.server.written,
                    candidate.identity,
                    self.now - since,
                ));
            }
        }
        Ok(())
    }
}

/// Runs the simulation with the random values of `seed`, and returns the numbers of terms and
/// writes.
fn run(seed: u64, bug: Bug) -> Result<(u64, u64), String> {
    let mut simulation = Simulation::new(seed, bug);
    let lease = simulation.lease();
    let leases = 5 + simulation.random.below(20) as u32;
    simulation.run_until(simulation.now + lease * leases)?;
    // Without further faults, one of the candidates must lead.
    simulation.end_faults();
    simulation.run_until(simulation.now + lease * 8)?;
    let leads = simulation
        .candidates
        .iter()
        .any(|it| it.is_open(simulation.now));
    match leads {
        true => Ok((simulation.terms, simulation.writes)),
        false => Err("there is no leader although no faults are injected".to_owned()),
    }
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
            "seed {seed}: {failure}\nrepeat it with: cargo xtask simulate --only leader-election --seed {seed}"
        );
    }
}

/// Calls `check` with the seeds that `cargo xtask simulate` chooses, on all cores.
pub(crate) fn many_seeds(check: fn(std::ops::Range<u64>)) {
    let number = |name: &str, default: u64| {
        let value = std::env::var(name).ok();
        value.map_or(default, |value| value.parse().unwrap())
    };
    let first = number("OPKIT_SIMULATE_FIRST", 0);
    let seeds = number("OPKIT_SIMULATE_SEEDS", 100_000);
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get() as u64);
    let share = seeds.div_ceil(threads);
    std::thread::scope(|scope| {
        let each = (0..threads).map(|thread| {
            let start = first + thread * share;
            let end = (start + share).min(first + seeds);
            scope.spawn(move || check(start..end))
        });
        let each: Vec<_> = each.collect();
        for thread in each {
            thread.join().unwrap();
        }
    });
}

mod tests;
