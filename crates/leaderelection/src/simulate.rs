//! The model test: several candidates with clocks of their own, one server, a network that loses
//! requests and answers or holds them back, processes that stand still at any point, crash, stop
//! and come back. Everything is drawn from one seed and runs without a clock, so that a failure can
//! be repeated: `cargo xtask simulate --only leader-election --seed N`.
//!
//! What must hold, whatever happens:
//!
//! - No write leaves after the deadline of its term by its process' clock, or in a later term. A
//!   process that stands still between the last check and the sending is the exception that nobody
//!   can exclude; its write still comes before any other term if it stood for less than the slack.
//! - The deadlines of two candidates do not overlap in true time.
//! - Once a candidate reaches the server, somebody leads within the lease's duration and two
//!   acquire intervals of the last write of the lease, as slow as clocks may be; within one of a
//!   release.
//! - No candidate ends unless it was told to.

mod candidate;
mod clock;
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
use crate::engine::{Answer, CLOCK_DRIFT_PERCENT, Input, JITTER_TENTHS, Phase, Request, Timing};

/// How long the server and a good network take together, at most.
const LATENCY_MAX: Duration = Duration::from_millis(100);

/// What is done wrong on purpose, to see that the simulation finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    None,
    /// The deadline counts from the answer, as the age of a lease does for those who watch it.
    DeadlineFromAnswer,
    /// A term lasts as long as the lease.
    TermOfLease,
    /// Writes are not checked.
    NoFence,
    /// Writes are checked when they begin and not when they leave.
    NoLastCheck,
    /// Work of an earlier term writes in a later one.
    NoTerms,
    /// Clocks are worse than the bound.
    BadClocks,
    /// Who loses the lease never stands again.
    Dies,
}

/// What happens at some time. The number is a candidate's.
#[derive(Debug)]
enum Event {
    Wake(usize, u64),
    /// A request reaches the server.
    Arrive(usize, u64, Request),
    /// An answer reaches its candidate.
    Answer(usize, u64, Answer),
    Timeout(usize, u64),
    WorkEnded(usize, u64),
    /// A worker begins a write.
    Write(usize, u64),
    /// It comes to the last check.
    LastCheck(usize, Write),
    /// It leaves, so long after the last check.
    Leaves(usize, Write, Duration),
    /// Something goes wrong.
    Trouble,
    Mend(usize, u64),
    Restart(usize, u64),
    /// The laws of time are checked.
    Look,
}

struct Entry(Duration, u64, Event);

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

/// One run.
struct World {
    random: Random,
    fault: Fault,
    timing: Timing,
    /// True time.
    now: Duration,
    events: BinaryHeap<Reverse<Entry>>,
    number: u64,
    server: Server,
    candidates: Vec<Candidate>,
    /// Whether things still go wrong.
    is_troubled: bool,
    /// How many writes left, and how many terms began.
    writes: u64,
    terms: u64,
}

impl World {
    fn new(seed: u64, fault: Fault) -> Self {
        let mut random = Random::new(seed);
        // The defaults, short ones, and ones that are as close to each other as they may be.
        let (lease_seconds, renew, retry) =
            [(15, 10_000, 2000), (3, 2000, 500), (12, 11_900, 2000)][random.below(3) as usize];
        let timing = Timing {
            lease_seconds,
            renew_deadline: Duration::from_millis(renew),
            retry_period: Duration::from_millis(retry),
        };
        let mut world = Self {
            fault,
            timing,
            now: Duration::from_secs(1000),
            events: BinaryHeap::new(),
            number: 0,
            server: Server::default(),
            candidates: Vec::new(),
            is_troubled: true,
            writes: 0,
            terms: 0,
            random,
        };
        for number in 0..2 + world.random.below(3) as usize {
            let candidate = world.candidate(format!("candidate-{number}"), 1);
            world.candidates.push(candidate);
            world.at(Duration::ZERO, Event::Wake(number, 0));
        }
        world.at(Duration::ZERO, Event::Trouble);
        world.at(Duration::ZERO, Event::Look);
        world
    }

    fn lease(&self) -> Duration {
        Duration::from_secs(self.timing.lease_seconds.into())
    }

    /// The longest time between two tries of a candidate.
    fn acquire_interval_max(&self) -> Duration {
        self.timing.retry_period * (10 + JITTER_TENTHS) / 10
    }

    /// So long as `local` by the slowest clock.
    fn slowest(local: Duration) -> Duration {
        local * 100 / (100 - CLOCK_DRIFT_PERCENT)
    }

    /// How long after the end of a term another one may begin at the earliest.
    fn slack(&self) -> Duration {
        let earliest = self.lease() * 100 / (100 + CLOCK_DRIFT_PERCENT);
        earliest.saturating_sub(Self::slowest(self.timing.term()))
    }

    fn at(&mut self, delay: Duration, event: Event) {
        self.number += 1;
        let entry = Entry(self.now + delay, self.number, event);
        self.events.push(Reverse(entry));
    }

    /// A random time up to `max`.
    fn some(&mut self, max: Duration) -> Duration {
        max.mul_f64(self.random.unit())
    }

    fn run_until(&mut self, end: Duration) -> Result<(), String> {
        while let Some(Reverse(entry)) = self.events.peek()
            && entry.0 <= end
        {
            let Some(Reverse(Entry(now, _, event))) = self.events.pop() else {
                break;
            };
            self.now = now;
            self.happen(event)
                .map_err(|failure| format!("at {now:?}: {failure}"))?;
        }
        self.now = end;
        Ok(())
    }

    fn happen(&mut self, event: Event) -> Result<(), String> {
        // A process that stands still takes nothing in; what came meanwhile it finds when it goes
        // on.
        if let Event::Wake(who, _)
        | Event::Answer(who, ..)
        | Event::Timeout(who, _)
        | Event::WorkEnded(who, _)
        | Event::Write(who, _)
        | Event::LastCheck(who, ..) = &event
            && self.candidates[*who].paused_until > self.now
        {
            let delay = self.candidates[*who].paused_until - self.now;
            let delay = delay + self.some(Duration::from_millis(1));
            self.at(delay, event);
            return Ok(());
        }
        match event {
            Event::Wake(who, timer) if self.candidates[who].timer == timer => {
                self.step(who, Input::Wake)
            }
            Event::Arrive(who, flight, request) => {
                self.arrive(who, flight, request);
                Ok(())
            }
            Event::Answer(who, flight, answer) if self.candidates[who].flight == flight => {
                self.answer(who, answer)
            }
            Event::Timeout(who, flight) if self.candidates[who].flight == flight => {
                self.step(who, Input::Answer(Answer::Failed))
            }
            Event::WorkEnded(who, life) if self.candidates[who].life == life => {
                self.candidates[who].work_ends = false;
                if self.fault == Fault::Dies && !self.candidates[who].stopping {
                    return Ok(());
                }
                self.step(who, Input::WorkEnded)
            }
            Event::Write(who, life) => self.write(who, life),
            Event::LastCheck(who, write) => self.last_check(who, write),
            Event::Leaves(who, write, gap) => self.leaves(who, &write, gap),
            Event::Trouble => self.trouble(),
            Event::Mend(who, breach) => self.mend(who, breach),
            Event::Restart(who, life) => self.restart(who, life),
            Event::Look => {
                self.at(self.timing.retry_period / 4, Event::Look);
                self.look()
            }
            _ => Ok(()),
        }
    }

    /// Lets the engine of a candidate take something in, and does what it says.
    fn step(&mut self, who: usize, input: Input) -> Result<(), String> {
        let (fault, lease, now) = (self.fault, self.lease(), self.now);
        let candidate = &mut self.candidates[who];
        if candidate.is_dead {
            return Ok(());
        }
        let before = candidate.engine.phase();
        let answered = matches!(input, Input::Answer(Answer::Written(_)));
        let local = candidate.clock.local(now);
        let output = candidate.engine.step(local, candidate.wall(now), input);
        match candidate.engine.phase() {
            Phase::Leading { deadline } => {
                let deadline = match fault {
                    Fault::DeadlineFromAnswer if answered => local + self.timing.term(),
                    Fault::TermOfLease if answered => deadline - self.timing.term() + lease,
                    Fault::DeadlineFromAnswer | Fault::TermOfLease => candidate.deadline,
                    _ => deadline,
                };
                candidate.deadline = deadline;
                candidate.fence.open(candidate.engine.term(), deadline);
            }
            // The right deadline has passed; the wrong one may not have.
            Phase::Ending { .. } | Phase::Standing
                if matches!(fault, Fault::DeadlineFromAnswer | Fault::TermOfLease) => {}
            _ => {
                candidate.deadline = Duration::ZERO;
                candidate.fence.close();
            }
        }
        let phase = candidate.engine.phase();
        let leads = |phase: Phase| matches!(phase, Phase::Leading { .. });
        if leads(phase) && !leads(before) {
            self.terms += 1;
            let life = candidate.life;
            self.at(Duration::ZERO, Event::Write(who, life));
        }
        self.exclusive()?;
        if phase == Phase::Done {
            return self.ended(who);
        }
        if let Some(request) = output.send {
            self.send(who, request);
        } else if !self.candidates[who].engine.is_in_flight() {
            self.candidates[who].flight += 1;
        }
        let candidate = &mut self.candidates[who];
        candidate.timer += 1;
        if let Some(wake) = output.wake {
            let (timer, delay) = (candidate.timer, candidate.clock.until(now, wake));
            self.at(delay, Event::Wake(who, timer));
        }
        let candidate = &mut self.candidates[who];
        if candidate.engine.awaits_work() && !candidate.work_ends {
            candidate.work_ends = true;
            let life = candidate.life;
            let max = match self.random.percent(20) {
                true => self.lease() * 2,
                false => Duration::from_millis(500),
            };
            let delay = self.some(max);
            self.at(delay, Event::WorkEnded(who, life));
        }
        Ok(())
    }

    /// At most one fence is open. A fence opens only in a step, so this is looked at after each.
    fn exclusive(&self) -> Result<(), String> {
        let open = self.candidates.iter().filter(|it| it.is_open(self.now));
        let open: Vec<_> = open.map(|it| &it.identity).collect();
        match open.len() {
            0 | 1 => Ok(()),
            _ => Err(format!("the deadlines of {open:?} overlap")),
        }
    }

    /// Whether somebody leads as soon as somebody must.
    fn look(&self) -> Result<(), String> {
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
            let Some(since) = candidate.reaches_since else {
                continue;
            };
            let from = since.max(self.server.written);
            if self.now > from + bound {
                return Err(format!(
                    "nobody leads {:?} after the last write of the lease, and {} reached the server {:?} ago ({lease:?})",
                    self.now - self.server.written,
                    candidate.identity,
                    self.now - since,
                ));
            }
        }
        Ok(())
    }
}

/// One run from `seed`; how many terms and writes there were.
fn run(seed: u64, fault: Fault) -> Result<(u64, u64), String> {
    let mut world = World::new(seed, fault);
    let lease = world.lease();
    let leases = 5 + world.random.below(20) as u32;
    world.run_until(world.now + lease * leases)?;
    // Nothing goes wrong any more: all of them stand, and one of them leads.
    world.calm();
    world.run_until(world.now + lease * 8)?;
    let leads = world.candidates.iter().any(|it| it.is_open(world.now));
    match leads {
        true => Ok((world.terms, world.writes)),
        false => Err("all is well and nobody leads".to_owned()),
    }
}

fn check(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let run = std::panic::catch_unwind(|| run(seed, Fault::None));
        let failure = match run {
            Ok(Ok(_)) => continue,
            Ok(Err(failure)) => failure,
            Err(_) => "it panicked".to_owned(),
        };
        panic!(
            "seed {seed}: {failure}\nrepeat it with: cargo xtask simulate --only leader-election --seed {seed}"
        );
    }
}

mod tests;
