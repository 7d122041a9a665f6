//! A process that stands for the lease, and its way to the server.

use std::time::Duration;

use opkit_client::Fence;

use super::clock::Clock;
use super::{Answer, Event, Fault, LATENCY_MAX, Request, World};
use crate::engine::{CLOCK_DRIFT_PERCENT, Elector, Input, Phase};

/// The way to the server and back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    /// Of a hundred, how many are lost.
    pub(super) requests_lost: u64,
    pub(super) answers_lost: u64,
    /// How long each way may take.
    pub(super) delay_max: Duration,
}

impl Link {
    pub(super) const GOOD: Self = Self {
        requests_lost: 0,
        answers_lost: 0,
        delay_max: Duration::from_millis(50),
    };
}

pub(super) struct Candidate {
    pub(super) identity: String,
    pub(super) engine: Elector,
    pub(super) fence: Fence,
    pub(super) clock: Clock,
    /// What the time of day is off by, in microseconds.
    pub(super) wall_offset: i64,
    /// Whether the time of day stands still.
    pub(super) is_frozen: bool,
    /// The deadline of the present term by its own clock; zero without one.
    pub(super) deadline: Duration,
    /// Which process it is, under this number.
    pub(super) life: u64,
    pub(super) is_dead: bool,
    pub(super) stopping: bool,
    pub(super) paused_until: Duration,
    pub(super) link: Link,
    /// Counts what happens to the link, so that an earlier mending does not undo a later breach.
    pub(super) breach: u64,
    /// Since when it has reached the server without a failure, seen from its first read.
    pub(super) reaches_since: Option<Duration>,
    pub(super) timer: u64,
    pub(super) flight: u64,
    pub(super) work_ends: bool,
}

impl Candidate {
    pub(super) fn wall(&self, now: Duration) -> i64 {
        match self.is_frozen {
            true => self.wall_offset,
            false => self.clock.local(now).as_micros() as i64 + self.wall_offset,
        }
    }

    /// Whether its term lasts, by its own clock.
    pub(super) fn is_open(&self, now: Duration) -> bool {
        !self.is_dead && self.clock.local(now) < self.deadline
    }

    /// Whether it is still the process of that number.
    pub(super) fn lives(&self, life: u64) -> bool {
        self.life == life && !self.is_dead
    }

    /// It does not see the server all the time.
    pub(super) fn is_disturbed(&mut self) {
        self.reaches_since = None;
    }
}

impl World {
    pub(super) fn candidate(&mut self, identity: String, life: u64) -> Candidate {
        let rate = self.rate();
        let seed = self.random.bits();
        Candidate {
            engine: Elector::new(identity.clone(), self.timing, true, seed),
            identity,
            fence: Fence::new(),
            clock: Clock::new(self.now, rate),
            wall_offset: self.random.below(1 << 40) as i64,
            is_frozen: self.random.percent(10),
            deadline: Duration::ZERO,
            life,
            is_dead: false,
            stopping: false,
            paused_until: Duration::ZERO,
            link: Link::GOOD,
            breach: 0,
            reaches_since: None,
            timer: 0,
            flight: 0,
            work_ends: false,
        }
    }

    /// How fast a clock runs: often as badly as it may.
    pub(super) fn rate(&mut self) -> f64 {
        let bound = f64::from(CLOCK_DRIFT_PERCENT) / 100.0;
        let bound = match self.fault {
            Fault::BadClocks => bound * 4.0,
            _ => bound,
        };
        match self.random.below(4) {
            0 => 1.0 - bound,
            1 => 1.0 + bound,
            2 => 1.0,
            _ => 1.0 - bound + 2.0 * bound * self.random.unit(),
        }
    }

    /// A request leaves, perhaps after the process stood still, and perhaps does not arrive.
    pub(super) fn send(&mut self, who: usize, request: Request) {
        self.candidates[who].flight += 1;
        let mut delay = Duration::ZERO;
        let risk = match request {
            Request::Get => 1,
            _ => 4,
        };
        let link = self.candidates[who].link;
        if self.is_troubled && self.random.percent(risk) {
            // It stands still before the request has left, or after that; then perhaps it finds the
            // way gone when it goes on.
            let pause = self.some(self.lease() * 2);
            self.pause(who, pause);
            match self.random.below(3) {
                0 => delay = pause,
                1 => self.breach(who),
                _ => {}
            }
        }
        let timeout = (self.timing.renew_deadline / 2).max(Duration::from_secs(1));
        let candidate = &self.candidates[who];
        let flight = candidate.flight;
        let local = candidate.clock.local(self.now) + timeout;
        let timeout = candidate.clock.until(self.now, local);
        self.at(timeout, Event::Timeout(who, flight));
        if !self.random.percent(link.requests_lost) {
            delay += self.some(link.delay_max);
            self.at(delay, Event::Arrive(who, flight, request));
        }
    }

    /// A request reaches the server, be its sender still there or not.
    pub(super) fn arrive(&mut self, who: usize, flight: u64, request: Request) {
        let answer = self.server.act(self.now, request);
        let link = self.candidates[who].link;
        if !self.random.percent(link.answers_lost) {
            let delay = self.some(link.delay_max);
            self.at(delay, Event::Answer(who, flight, answer));
        }
    }

    pub(super) fn answer(&mut self, who: usize, answer: Answer) -> Result<(), String> {
        let reads = matches!(answer, Answer::Read(_));
        self.step(who, Input::Answer(answer))?;
        let (now, candidate) = (self.now, &mut self.candidates[who]);
        let stands = candidate.engine.phase() == Phase::Standing && !candidate.stopping;
        let is_good = candidate.link.requests_lost == 0
            && candidate.link.answers_lost == 0
            && candidate.link.delay_max <= LATENCY_MAX / 2;
        if !stands || candidate.is_dead {
            candidate.reaches_since = None;
        } else if reads && is_good && candidate.paused_until <= now {
            candidate.reaches_since.get_or_insert(now);
        }
        Ok(())
    }
}
