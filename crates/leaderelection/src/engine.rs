//! The elector's state machine: no clock, no tasks, no I/O.
//!
//! Time comes in as a [`Duration`] since an origin of the caller's choice, by a clock that never
//! goes back; the time of day, in microseconds, is written into the lease and never compared with
//! anything. The protocol is client-go's: a holder renews every retry period, without reading first
//! while it knows the lease; a candidate reads the lease every jittered retry period and takes it
//! once it has not seen it change for the lease's duration.
//!
//! It differs in three ways. It never ends by itself: who loses the lease waits until the work of
//! the lost term has ended and stands again. It gives up as soon as it reads that somebody else
//! holds the lease, and not only at the deadline. And its deadline counts from the moment at which
//! the renewal was *sent*, which is what keeps two leaders apart; see [`Timing::term`].

mod protocol;
mod timing;

use std::time::Duration;

use opkit_random::Random;

pub(crate) use self::protocol::{Answer, Record, Request, Stored};
#[cfg(test)]
pub(crate) use self::timing::CLOCK_DRIFT_PERCENT;
pub(crate) use self::timing::{JITTER_TENTHS, Timing};

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    /// The time to wake up has come.
    Wake,
    /// The request that is under way has ended.
    Answer(Answer),
    /// The work of the term that ended, or that is to end, has ended.
    WorkEnded,
    /// Leadership is to be given up for good.
    Stop,
}

/// Who leads, as far as this process is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// A candidate.
    Standing,
    Leading {
        /// Until when, unless it is renewed.
        deadline: Duration,
    },
    /// No leader any more; the work of the term has not ended yet.
    Ending {
        since: Duration,
    },
    Releasing {
        until: Duration,
    },
    Done,
}

/// The request that is under way.
#[derive(Debug, Clone, Copy)]
struct Flight {
    sent: Duration,
    is_fast: bool,
}

/// The lease as it was seen last.
#[derive(Debug, Clone)]
struct Seen {
    stored: Stored,
    /// When it was last seen to change.
    changed: Duration,
}

/// What an elector does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Output {
    pub(crate) send: Option<Request>,
    /// When to wake it, at the latest; none if only an answer or an end of work matters.
    pub(crate) wake: Option<Duration>,
}

/// One candidate for one lease.
#[derive(Debug)]
pub(crate) struct Elector {
    identity: String,
    timing: Timing,
    release: bool,
    random: Random,
    phase: Phase,
    stopping: bool,
    term: u64,
    seen: Option<Seen>,
    /// Whether a write of ours may have been done without our knowing.
    doubt: bool,
    flight: Option<Flight>,
    attempt: Duration,
    next: Duration,
    renewed: Duration,
    slow_paths: u64,
}

impl Elector {
    /// A candidate that has not read the lease yet. A lease that names `identity` is its own, so no
    /// two living processes may share one.
    pub(crate) fn new(identity: String, timing: Timing, release: bool, seed: u64) -> Self {
        Self {
            identity,
            timing,
            release,
            random: Random::new(seed),
            phase: Phase::Standing,
            stopping: false,
            term: 0,
            seen: None,
            doubt: false,
            flight: None,
            attempt: Duration::ZERO,
            next: Duration::ZERO,
            renewed: Duration::ZERO,
            slow_paths: 0,
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    /// The term that leads, or that led last; 0 before the first.
    pub(crate) fn term(&self) -> u64 {
        self.term
    }

    /// Whether a request is under way; else the one that is may be dropped.
    pub(crate) fn is_in_flight(&self) -> bool {
        self.flight.is_some()
    }

    /// Whether [`Input::WorkEnded`] is waited for.
    pub(crate) fn awaits_work(&self) -> bool {
        match self.phase {
            Phase::Ending { .. } => true,
            Phase::Leading { .. } => self.stopping,
            _ => false,
        }
    }

    /// Who holds the lease, as far as was seen; empty if nobody.
    pub(crate) fn holder(&self) -> &str {
        let seen = self.seen.as_ref();
        seen.map_or("", |seen| &seen.stored.record.holder)
    }

    /// When the lease was last acquired or renewed by us.
    pub(crate) fn renewed(&self) -> Duration {
        self.renewed
    }

    /// How often a lease of our own had to be read before it was renewed.
    pub(crate) fn slow_paths(&self) -> u64 {
        self.slow_paths
    }

    /// Takes in what happened at `now`, when the time of day is `wall`.
    pub(crate) fn step(&mut self, now: Duration, wall: i64, input: Input) -> Output {
        // First, because an answer that comes after the deadline does not bring the term back.
        self.give_up_late(now);
        let mut send = match input {
            Input::Wake => None,
            Input::Answer(answer) => self.answered(now, wall, answer),
            Input::WorkEnded => self.work_ended(now),
            Input::Stop => self.stop(now),
        };
        if self.flight.is_none() && send.is_none() && self.tries() && now >= self.next {
            send = Some(self.try_acquire_or_renew(now, wall));
        }
        if let Some(request) = &send {
            self.doubt |= !matches!(request, Request::Get);
        }
        Output {
            send,
            wake: self.wake(),
        }
    }

    fn tries(&self) -> bool {
        matches!(self.phase, Phase::Standing | Phase::Leading { .. })
    }

    fn wake(&self) -> Option<Duration> {
        let next = (self.tries() && self.flight.is_none()).then_some(self.next);
        let limit = match self.phase {
            Phase::Leading { deadline } => Some(deadline),
            Phase::Releasing { until } => Some(until),
            _ => None,
        };
        next.into_iter().chain(limit).min()
    }

    fn give_up_late(&mut self, now: Duration) {
        match self.phase {
            Phase::Leading { deadline } if now >= deadline => self.lose(now),
            Phase::Releasing { until } if now >= until => self.finish(),
            _ => {}
        }
    }

    fn lose(&mut self, now: Duration) {
        self.phase = Phase::Ending { since: now };
        self.flight = None;
    }

    fn finish(&mut self) {
        self.phase = Phase::Done;
        self.flight = None;
    }

    fn stop(&mut self, now: Duration) -> Option<Request> {
        self.stopping = true;
        match self.phase {
            Phase::Standing => self.release(now),
            // The work may still write, so the lease is renewed until it has ended.
            Phase::Leading { .. } | Phase::Ending { .. } => None,
            Phase::Releasing { .. } | Phase::Done => None,
        }
    }

    fn work_ended(&mut self, now: Duration) -> Option<Request> {
        match self.phase {
            Phase::Leading { .. } | Phase::Ending { .. } if self.stopping => self.release(now),
            Phase::Ending { .. } => {
                self.phase = Phase::Standing;
                self.next = now;
                None
            }
            _ => None,
        }
    }

    /// Gives the lease up, if it is, or may be, ours.
    fn release(&mut self, now: Duration) -> Option<Request> {
        self.flight = None;
        let may_hold = self.doubt || self.holder() == self.identity;
        if !self.release || !may_hold {
            self.finish();
            return None;
        }
        let until = now.saturating_add(self.timing.renew_deadline);
        self.phase = Phase::Releasing { until };
        Some(self.fly(now, Request::Get, false))
    }

    fn fly(&mut self, now: Duration, request: Request, is_fast: bool) -> Request {
        self.flight = Some(Flight { sent: now, is_fast });
        request
    }

    /// Begins an attempt: a holder writes at once, a candidate reads first.
    fn try_acquire_or_renew(&mut self, now: Duration, wall: i64) -> Request {
        self.attempt = now;
        match &self.seen {
            Some(seen) if self.is_ours(seen) && is_valid(seen, now) => {
                let record = self.renewal(&seen.stored.record, wall);
                let update = Request::Update(record, seen.stored.version.clone());
                self.fly(now, update, true)
            }
            _ => self.fly(now, Request::Get, false),
        }
    }

    fn answered(&mut self, now: Duration, wall: i64, answer: Answer) -> Option<Request> {
        let Some(flight) = self.flight.take() else {
            // It came together with the end of the term. What it says of the lease is still true.
            if let Answer::Read(Some(stored)) | Answer::Written(stored) = answer {
                self.see(now, stored);
            }
            return None;
        };
        if let Phase::Releasing { .. } = self.phase {
            return self.answered_release(now, wall, answer);
        }
        match answer {
            Answer::Written(stored) => {
                self.acquired(now, flight.sent, stored);
                None
            }
            Answer::Read(stored) => self.read(now, wall, stored),
            Answer::Conflict | Answer::Failed if flight.is_fast => {
                Some(self.fly(now, Request::Get, false))
            }
            Answer::Conflict | Answer::Failed => {
                self.failed(now);
                None
            }
        }
    }

    fn read(&mut self, now: Duration, wall: i64, stored: Option<Stored>) -> Option<Request> {
        self.doubt = false;
        let Some(stored) = stored else {
            self.seen = None;
            let record = self.first(wall);
            return Some(self.fly(now, Request::Create(record), false));
        };
        let seen = self.see(now, stored).clone();
        let is_ours = self.is_ours(&seen);
        if !is_ours && matches!(self.phase, Phase::Leading { .. }) {
            self.lose(now);
            return None;
        }
        let record = &seen.stored.record;
        if !is_ours && !record.holder.is_empty() && is_valid(&seen, now) {
            self.failed(now);
            return None;
        }
        let record = if is_ours {
            self.slow_paths = self.slow_paths.saturating_add(1);
            self.renewal(record, wall)
        } else {
            Record {
                transitions: record.transitions.saturating_add(1),
                ..self.first(wall)
            }
        };
        let update = Request::Update(record, seen.stored.version);
        Some(self.fly(now, update, false))
    }

    /// Keeps what was read; it has changed when its content has, whatever the version.
    fn see(&mut self, now: Duration, stored: Stored) -> &Seen {
        let changed = match &self.seen {
            Some(seen) if seen.stored.record == stored.record => seen.changed,
            _ => now,
        };
        self.seen.insert(Seen { stored, changed })
    }

    fn acquired(&mut self, now: Duration, sent: Duration, stored: Stored) {
        self.doubt = false;
        self.seen = Some(Seen {
            stored,
            changed: now,
        });
        let deadline = sent.saturating_add(self.timing.term());
        if now >= deadline {
            // It was done too late to be of use. The lease is ours, so the next try is quick.
            self.next = now;
            return;
        }
        if !matches!(self.phase, Phase::Leading { .. }) {
            self.term = self.term.saturating_add(1);
        }
        self.phase = Phase::Leading { deadline };
        self.renewed = now;
        self.next = now.saturating_add(self.timing.retry_period);
    }

    fn failed(&mut self, now: Duration) {
        let retry = self.timing.retry_period;
        self.next = match self.phase {
            Phase::Leading { .. } => self.attempt.saturating_add(retry).max(now),
            _ => now.saturating_add(self.acquire_interval()),
        };
    }

    fn acquire_interval(&mut self) -> Duration {
        let retry = self.timing.retry_period;
        let jitter = retry.saturating_mul(JITTER_TENTHS) / 10;
        retry.saturating_add(jitter.mul_f64(self.random.unit()))
    }

    fn answered_release(&mut self, now: Duration, wall: i64, answer: Answer) -> Option<Request> {
        match answer {
            Answer::Read(Some(stored)) if stored.record.holder == self.identity => {
                let record = Record {
                    holder: String::new(),
                    // A Lease cannot last 0 s.
                    lease_seconds: 1,
                    acquire_time: wall,
                    renew_time: wall,
                    transitions: stored.record.transitions,
                };
                let update = Request::Update(record, stored.version.clone());
                self.see(now, stored);
                Some(self.fly(now, update, false))
            }
            // A renewal that was under way when the stop came may have been done in between.
            Answer::Conflict => Some(self.fly(now, Request::Get, false)),
            answer => {
                if let Answer::Read(Some(stored)) | Answer::Written(stored) = answer {
                    self.see(now, stored);
                }
                self.finish();
                None
            }
        }
    }

    fn is_ours(&self, seen: &Seen) -> bool {
        seen.stored.record.holder == self.identity
    }

    /// The record of somebody who begins.
    fn first(&self, wall: i64) -> Record {
        Record {
            holder: self.identity.clone(),
            lease_seconds: self.timing.lease_seconds,
            acquire_time: wall,
            renew_time: wall,
            transitions: 0,
        }
    }

    /// The record of somebody who goes on. Its time is later than that of the record it replaces:
    /// one that came back to an earlier content, by a time of day that stands still or goes back,
    /// would look to others as if nobody had renewed it.
    fn renewal(&self, record: &Record, wall: i64) -> Record {
        Record {
            acquire_time: record.acquire_time,
            renew_time: wall.max(record.renew_time.saturating_add(1)),
            transitions: record.transitions,
            ..self.first(wall)
        }
    }
}

/// Whether the lease has not run out, by our own clock since it was last seen to change.
fn is_valid(seen: &Seen, now: Duration) -> bool {
    let lease = Duration::from_secs(seen.stored.record.lease_seconds.into());
    seen.changed.saturating_add(lease) > now
}

#[cfg(test)]
mod tests;
