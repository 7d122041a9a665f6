//! A simulated process that is a candidate for the Lease, and its link to the server.

use std::time::Duration;

use opkit_client::Fence;

use super::clock::Clock;
use super::{Bug, Event, LATENCY_MAX, LeaseRequest, LeaseResponse, Simulation};
use crate::engine::{CLOCK_DRIFT_PERCENT, ElectionEngine, Input, Phase};

/// Network link between a candidate and the server.
#[derive(Debug, Clone, Copy)]
pub(super) struct Link {
    /// Share of requests that are lost, in percent.
    pub(super) request_loss_percent: u64,
    /// Share of responses that are lost, in percent.
    pub(super) response_loss_percent: u64,
    /// Maximum delay in each direction.
    pub(super) delay_max: Duration,
}

impl Link {
    pub(super) const GOOD: Self = Self {
        request_loss_percent: 0,
        response_loss_percent: 0,
        delay_max: Duration::from_millis(50),
    };
}

/// Simulated process.
pub(super) struct Candidate {
    pub(super) identity: String,
    pub(super) engine: ElectionEngine,
    pub(super) fence: Fence,
    pub(super) clock: Clock,
    /// Offset of the wall clock, in microseconds.
    pub(super) wall_offset_micros: i64,
    /// Whether the wall clock is stopped.
    pub(super) is_frozen: bool,
    /// Deadline of the current term by the local clock; zero without a term.
    pub(super) deadline: Duration,
    /// Generation of the process: increased by 1 on each restart.
    pub(super) generation: u64,
    pub(super) is_dead: bool,
    pub(super) is_stopping: bool,
    pub(super) paused_until: Duration,
    pub(super) link: Link,
    /// ID of the last outage of the link. The scheduled end of an earlier outage has another ID
    /// and is ignored.
    pub(super) outage: u64,
    /// Time since which the candidate has reached the server; `None` while requests may fail.
    pub(super) reachable_since: Option<Duration>,
    /// ID of the current timer.
    pub(super) timer: u64,
    /// ID of the request in flight.
    pub(super) request_id: u64,
    /// Whether the end of the work is scheduled.
    pub(super) is_work_ending: bool,
}

impl Candidate {
    /// Returns the time of the wall clock, in microseconds.
    pub(super) fn wall_micros(&self, now: Duration) -> i64 {
        match self.is_frozen {
            true => self.wall_offset_micros,
            false => self.clock.local(now).as_micros() as i64 + self.wall_offset_micros,
        }
    }

    /// Reports whether the candidate is the leader by its local clock.
    pub(super) fn is_open(&self, now: Duration) -> bool {
        !self.is_dead && self.clock.local(now) < self.deadline
    }

    /// Reports whether the process is running and has not been restarted since `generation`.
    pub(super) fn is_running(&self, generation: u64) -> bool {
        self.generation == generation && !self.is_dead
    }

    /// Forgets that the candidate has reached the server, because its next request may fail.
    pub(super) fn reset_reachability(&mut self) {
        self.reachable_since = None;
    }
}

impl Simulation {
    /// Creates a candidate with a random clock.
    pub(super) fn new_candidate(&mut self, identity: String, generation: u64) -> Candidate {
        let rate = self.rate();
        let seed = self.random.bits();
        Candidate {
            engine: ElectionEngine::new(identity.clone(), self.timing, true, seed),
            identity,
            fence: Fence::new(),
            clock: Clock::new(self.now, rate),
            wall_offset_micros: self.random.below(1 << 40) as i64,
            is_frozen: self.random.percent(10),
            deadline: Duration::ZERO,
            generation,
            is_dead: false,
            is_stopping: false,
            paused_until: Duration::ZERO,
            link: Link::GOOD,
            outage: 0,
            reachable_since: None,
            timer: 0,
            request_id: 0,
            is_work_ending: false,
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

    /// Sends a request. The process may pause before the send, and the request may be lost.
    pub(super) fn send(&mut self, index: usize, request: LeaseRequest) {
        self.candidates[index].request_id += 1;
        let mut delay = Duration::ZERO;
        let risk = match request {
            LeaseRequest::Get => 1,
            _ => 4,
        };
        let link = self.candidates[index].link;
        if self.has_faults && self.random.percent(risk) {
            // The process pauses before or after the request leaves; in the latter case the link
            // may fail during the pause.
            let pause = self.random_duration(self.lease() * 2);
            self.pause(index, pause);
            match self.random.below(3) {
                0 => delay = pause,
                1 => self.start_outage(index),
                _ => {}
            }
        }
        let timeout = (self.timing.renew_deadline / 2).max(Duration::from_secs(1));
        let candidate = &self.candidates[index];
        let request_id = candidate.request_id;
        let local = candidate.clock.local(self.now) + timeout;
        let timeout = candidate.clock.until(self.now, local);
        self.schedule(timeout, Event::Timeout(index, request_id));
        if !self.random.percent(link.request_loss_percent) {
            delay += self.random_duration(link.delay_max);
            self.schedule(delay, Event::Arrive(index, request_id, request));
        }
    }

    /// Delivers a request to the server, whether or not its sender still runs.
    pub(super) fn arrive(&mut self, index: usize, request_id: u64, request: LeaseRequest) {
        let response = self.server.handle(self.now, request);
        let link = self.candidates[index].link;
        if !self.random.percent(link.response_loss_percent) {
            let delay = self.random_duration(link.delay_max);
            self.schedule(delay, Event::Response(index, request_id, response));
        }
    }

    /// Delivers a response to its candidate.
    pub(super) fn deliver_response(
        &mut self,
        index: usize,
        response: LeaseResponse,
    ) -> Result<(), String> {
        let reads = matches!(response, LeaseResponse::Read(_));
        self.step(index, Input::Response(response))?;
        let (now, candidate) = (self.now, &mut self.candidates[index]);
        let is_candidate = candidate.engine.phase() == Phase::Acquiring && !candidate.is_stopping;
        let is_link_good = candidate.link.request_loss_percent == 0
            && candidate.link.response_loss_percent == 0
            && candidate.link.delay_max <= LATENCY_MAX / 2;
        if !is_candidate || candidate.is_dead {
            candidate.reachable_since = None;
        } else if reads && is_link_good && candidate.paused_until <= now {
            candidate.reachable_since.get_or_insert(now);
        }
        Ok(())
    }
}
