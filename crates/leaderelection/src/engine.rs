//! The state machine of an election, without a clock, tasks or I/O.
//!
//! The caller passes the time as a [`Duration`] on a monotonic clock, since any origin. The time of
//! the wall clock, in microseconds, is written into the Lease and never compared with anything. The
//! protocol is client-go's: a holder renews the Lease every retry period, without a read while the
//! holder knows the state of the Lease. A candidate reads the Lease every jittered retry period,
//! and acquires the Lease if it has not changed for the Lease's duration.
//!
//! There are three differences from client-go. After a loss of the Lease the engine does not end:
//! it waits until the work of the term has ended and tries to acquire the Lease again. The engine
//! gives up leadership as soon as it reads another holder, and not only at the deadline. The
//! deadline counts from the time at which the renewal was *sent*, which keeps the terms of two
//! leaders apart; see [`Timing::term`].

mod protocol;
mod timing;

use std::time::Duration;

use opkit_random::Random;

pub(crate) use self::protocol::{LeaseRecord, LeaseRequest, LeaseResponse, StoredRecord};
#[cfg(test)]
pub(crate) use self::timing::CLOCK_DRIFT_PERCENT;
pub(crate) use self::timing::{JITTER_TENTHS, Timing};

/// Event that the engine reacts to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Input {
    /// The time of [`Output::wake`] has come.
    Wake,
    /// The request in flight has completed.
    Response(LeaseResponse),
    /// All leader-only work of the term has ended.
    WorkEnded,
    /// The election is to stop, and the Lease to be released.
    Stop,
}

/// Phase of the election in this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The process is a candidate.
    Acquiring,
    /// The process is the leader.
    Leading {
        /// End of the term, unless the Lease is renewed.
        deadline: Duration,
    },
    /// The process is no longer the leader, and the work of the term has not ended yet.
    Ending {
        /// Time at which the Lease was lost.
        since: Duration,
    },
    /// The process releases the Lease because of a stop.
    Releasing {
        /// Time at which the release is given up.
        until: Duration,
    },
    /// The election has stopped.
    Done,
}

/// Request in flight.
#[derive(Debug, Clone, Copy)]
struct InFlight {
    sent: Duration,
    /// Whether the request renews the Lease without a read.
    is_fast_path: bool,
}

/// Last observed state of the Lease.
#[derive(Debug, Clone)]
struct ObservedLease {
    stored: StoredRecord,
    /// Time at which the record was last observed to change.
    changed: Duration,
}

/// Next action of the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Output {
    /// Request to send, in place of the request in flight.
    pub(crate) send: Option<LeaseRequest>,
    /// Latest time of the next [`Input::Wake`]; `None` if the engine only waits for other inputs.
    pub(crate) wake: Option<Duration>,
}

/// State of one candidate for one Lease.
#[derive(Debug)]
pub(crate) struct ElectionEngine {
    identity: String,
    timing: Timing,
    /// Whether the Lease is released on a stop.
    releases: bool,
    random: Random,
    phase: Phase,
    is_stopping: bool,
    term: u64,
    observed: Option<ObservedLease>,
    /// Whether a write of this process may have succeeded although no response has confirmed it.
    has_unconfirmed_write: bool,
    in_flight: Option<InFlight>,
    /// Start of the current or last attempt to acquire or renew the Lease.
    attempt_started: Duration,
    /// Time of the next attempt.
    next_attempt: Duration,
    /// Time of the last successful acquisition or renewal.
    renewed: Duration,
    slow_paths: u64,
}

impl ElectionEngine {
    /// Creates a candidate that has not read the Lease yet. The candidate treats a Lease with the
    /// holder `identity` as its own, so no two running processes may have the same identity.
    pub(crate) fn new(identity: String, timing: Timing, releases: bool, seed: u64) -> Self {
        Self {
            identity,
            timing,
            releases,
            random: Random::new(seed),
            phase: Phase::Acquiring,
            is_stopping: false,
            term: 0,
            observed: None,
            has_unconfirmed_write: false,
            in_flight: None,
            attempt_started: Duration::ZERO,
            next_attempt: Duration::ZERO,
            renewed: Duration::ZERO,
            slow_paths: 0,
        }
    }

    /// Returns the phase of the election.
    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns the number of the current or last term; 0 before the first term.
    pub(crate) fn term(&self) -> u64 {
        self.term
    }

    /// Reports whether the engine waits for a response. If not, the caller may drop a request in
    /// flight.
    pub(crate) fn is_in_flight(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Reports whether the engine waits for [`Input::WorkEnded`].
    pub(crate) fn awaits_work_end(&self) -> bool {
        match self.phase {
            Phase::Ending { .. } => true,
            Phase::Leading { .. } => self.is_stopping,
            _ => false,
        }
    }

    /// Returns the last observed holder of the Lease; empty without a holder.
    pub(crate) fn holder(&self) -> &str {
        let observed = self.observed.as_ref();
        observed.map_or("", |observed| &observed.stored.record.holder)
    }

    /// Returns the time at which this process last acquired or renewed the Lease.
    pub(crate) fn renewed(&self) -> Duration {
        self.renewed
    }

    /// Returns how many times this process, as the holder, had to read the Lease before a renewal.
    pub(crate) fn slow_paths(&self) -> u64 {
        self.slow_paths
    }

    /// Handles an input at the time `now`, when the wall clock shows `wall_micros`.
    pub(crate) fn step(&mut self, now: Duration, wall_micros: i64, input: Input) -> Output {
        // This comes first because a response after the deadline does not restore the term.
        self.check_deadline(now);
        let mut send = match input {
            Input::Wake => None,
            Input::Response(response) => self.handle_response(now, wall_micros, response),
            Input::WorkEnded => self.work_ended(now),
            Input::Stop => self.stop(now),
        };
        if self.in_flight.is_none()
            && send.is_none()
            && self.makes_attempts()
            && now >= self.next_attempt
        {
            send = Some(self.try_acquire_or_renew(now, wall_micros));
        }
        if let Some(request) = &send {
            self.has_unconfirmed_write |= !matches!(request, LeaseRequest::Get);
        }
        Output {
            send,
            wake: self.next_wake(),
        }
    }

    /// Reports whether the engine tries to acquire or renew the Lease.
    fn makes_attempts(&self) -> bool {
        matches!(self.phase, Phase::Acquiring | Phase::Leading { .. })
    }

    /// Returns the time of the next wake-up.
    fn next_wake(&self) -> Option<Duration> {
        let next = (self.makes_attempts() && self.in_flight.is_none()).then_some(self.next_attempt);
        let limit = match self.phase {
            Phase::Leading { deadline } => Some(deadline),
            Phase::Releasing { until } => Some(until),
            _ => None,
        };
        next.into_iter().chain(limit).min()
    }

    /// Ends the term if the deadline of the term has passed, or gives up the release if its time
    /// limit has passed.
    fn check_deadline(&mut self, now: Duration) {
        match self.phase {
            Phase::Leading { deadline } if now >= deadline => self.lose(now),
            Phase::Releasing { until } if now >= until => self.finish(),
            _ => {}
        }
    }

    /// Ends the term because the Lease was lost.
    fn lose(&mut self, now: Duration) {
        self.phase = Phase::Ending { since: now };
        self.in_flight = None;
    }

    /// Ends the election.
    fn finish(&mut self) {
        self.phase = Phase::Done;
        self.in_flight = None;
    }

    /// Handles [`Input::Stop`].
    fn stop(&mut self, now: Duration) -> Option<LeaseRequest> {
        self.is_stopping = true;
        match self.phase {
            Phase::Acquiring => self.release(now),
            // The work may still write, so the Lease is renewed until the work has ended.
            Phase::Leading { .. } | Phase::Ending { .. } => None,
            Phase::Releasing { .. } | Phase::Done => None,
        }
    }

    /// Handles [`Input::WorkEnded`].
    fn work_ended(&mut self, now: Duration) -> Option<LeaseRequest> {
        match self.phase {
            Phase::Leading { .. } | Phase::Ending { .. } if self.is_stopping => self.release(now),
            Phase::Ending { .. } => {
                self.phase = Phase::Acquiring;
                self.next_attempt = now;
                None
            }
            _ => None,
        }
    }

    /// Releases the Lease if this process holds it or may hold it.
    fn release(&mut self, now: Duration) -> Option<LeaseRequest> {
        self.in_flight = None;
        let may_hold = self.has_unconfirmed_write || self.holder() == self.identity;
        if !self.releases || !may_hold {
            self.finish();
            return None;
        }
        let until = now.saturating_add(self.timing.renew_deadline);
        self.phase = Phase::Releasing { until };
        Some(self.start_request(now, LeaseRequest::Get, false))
    }

    /// Records that `request` is in flight, and returns it.
    fn start_request(
        &mut self,
        now: Duration,
        request: LeaseRequest,
        is_fast_path: bool,
    ) -> LeaseRequest {
        self.in_flight = Some(InFlight {
            sent: now,
            is_fast_path,
        });
        request
    }

    /// Starts an attempt: a holder writes immediately, a candidate reads first.
    fn try_acquire_or_renew(&mut self, now: Duration, wall_micros: i64) -> LeaseRequest {
        self.attempt_started = now;
        match &self.observed {
            Some(observed) if self.is_holder(observed) && is_valid(observed, now) => {
                let record = self.renewed_record(&observed.stored.record, wall_micros);
                let update = LeaseRequest::Update(record, observed.stored.version.clone());
                self.start_request(now, update, true)
            }
            _ => self.start_request(now, LeaseRequest::Get, false),
        }
    }

    /// Handles [`Input::Response`].
    fn handle_response(
        &mut self,
        now: Duration,
        wall_micros: i64,
        response: LeaseResponse,
    ) -> Option<LeaseRequest> {
        let Some(in_flight) = self.in_flight.take() else {
            // The term ended at the same time. The response still shows the state of the Lease.
            if let LeaseResponse::Read(Some(stored)) | LeaseResponse::Written(stored) = response {
                self.observe(now, stored);
            }
            return None;
        };
        if let Phase::Releasing { .. } = self.phase {
            return self.handle_release_response(now, wall_micros, response);
        }
        match response {
            LeaseResponse::Written(stored) => {
                self.acquired(now, in_flight.sent, stored);
                None
            }
            LeaseResponse::Read(stored) => self.handle_read(now, wall_micros, stored),
            LeaseResponse::Conflict | LeaseResponse::Failed if in_flight.is_fast_path => {
                Some(self.start_request(now, LeaseRequest::Get, false))
            }
            LeaseResponse::Conflict | LeaseResponse::Failed => {
                self.schedule_retry(now);
                None
            }
        }
    }

    /// Handles the response to a read: acquires or renews the Lease, or waits.
    fn handle_read(
        &mut self,
        now: Duration,
        wall_micros: i64,
        stored: Option<StoredRecord>,
    ) -> Option<LeaseRequest> {
        self.has_unconfirmed_write = false;
        let Some(stored) = stored else {
            self.observed = None;
            let record = self.new_record(wall_micros);
            return Some(self.start_request(now, LeaseRequest::Create(record), false));
        };
        let observed = self.observe(now, stored).clone();
        let is_holder = self.is_holder(&observed);
        if !is_holder && matches!(self.phase, Phase::Leading { .. }) {
            self.lose(now);
            return None;
        }
        let record = &observed.stored.record;
        if !is_holder && !record.holder.is_empty() && is_valid(&observed, now) {
            self.schedule_retry(now);
            return None;
        }
        let record = if is_holder {
            self.slow_paths = self.slow_paths.saturating_add(1);
            self.renewed_record(record, wall_micros)
        } else {
            LeaseRecord {
                transitions: record.transitions.saturating_add(1),
                ..self.new_record(wall_micros)
            }
        };
        let update = LeaseRequest::Update(record, observed.stored.version);
        Some(self.start_request(now, update, false))
    }

    /// Stores the record that was read. The Lease counts as changed if its record differs from the
    /// last one; the `resourceVersion` is not compared.
    fn observe(&mut self, now: Duration, stored: StoredRecord) -> &ObservedLease {
        let changed = match &self.observed {
            Some(observed) if observed.stored.record == stored.record => observed.changed,
            _ => now,
        };
        self.observed.insert(ObservedLease { stored, changed })
    }

    /// Handles a successful write: starts or extends the term.
    fn acquired(&mut self, now: Duration, sent: Duration, stored: StoredRecord) {
        self.has_unconfirmed_write = false;
        self.observed = Some(ObservedLease {
            stored,
            changed: now,
        });
        let deadline = sent.saturating_add(self.timing.term());
        if now >= deadline {
            // The write succeeded too late for a term. This process holds the Lease, so the next
            // attempt starts immediately.
            self.next_attempt = now;
            return;
        }
        if !matches!(self.phase, Phase::Leading { .. }) {
            self.term = self.term.saturating_add(1);
        }
        self.phase = Phase::Leading { deadline };
        self.renewed = now;
        self.next_attempt = now.saturating_add(self.timing.retry_period);
    }

    /// Schedules the next attempt after a failed one.
    fn schedule_retry(&mut self, now: Duration) {
        let retry = self.timing.retry_period;
        self.next_attempt = match self.phase {
            Phase::Leading { .. } => self.attempt_started.saturating_add(retry).max(now),
            _ => now.saturating_add(self.acquire_interval()),
        };
    }

    /// Returns the jittered time between two attempts of a candidate.
    fn acquire_interval(&mut self) -> Duration {
        let retry = self.timing.retry_period;
        let jitter = retry.saturating_mul(JITTER_TENTHS) / 10;
        retry.saturating_add(jitter.mul_f64(self.random.unit()))
    }

    /// Handles a response during the release of the Lease.
    fn handle_release_response(
        &mut self,
        now: Duration,
        wall_micros: i64,
        response: LeaseResponse,
    ) -> Option<LeaseRequest> {
        match response {
            LeaseResponse::Read(Some(stored)) if stored.record.holder == self.identity => {
                let record = LeaseRecord {
                    holder: String::new(),
                    // The API server rejects 0 s.
                    lease_seconds: 1,
                    acquire_time: wall_micros,
                    renew_time: wall_micros,
                    transitions: stored.record.transitions,
                };
                let update = LeaseRequest::Update(record, stored.version.clone());
                self.observe(now, stored);
                Some(self.start_request(now, update, false))
            }
            // A renewal that was in flight at the stop may have succeeded in between.
            LeaseResponse::Conflict => Some(self.start_request(now, LeaseRequest::Get, false)),
            response => {
                if let LeaseResponse::Read(Some(stored)) | LeaseResponse::Written(stored) = response
                {
                    self.observe(now, stored);
                }
                self.finish();
                None
            }
        }
    }

    /// Reports whether this process holds the observed Lease.
    fn is_holder(&self, observed: &ObservedLease) -> bool {
        observed.stored.record.holder == self.identity
    }

    /// Returns the record that this process writes to acquire the Lease.
    fn new_record(&self, wall_micros: i64) -> LeaseRecord {
        LeaseRecord {
            holder: self.identity.clone(),
            lease_seconds: self.timing.lease_seconds,
            acquire_time: wall_micros,
            renew_time: wall_micros,
            transitions: 0,
        }
    }

    /// Returns the record that a holder writes to renew the Lease. The renew time is always later
    /// than in `record`, even if the wall clock stops or goes back. Otherwise the new record could
    /// equal an earlier one, and other candidates would not see the renewal.
    fn renewed_record(&self, record: &LeaseRecord, wall_micros: i64) -> LeaseRecord {
        LeaseRecord {
            acquire_time: record.acquire_time,
            renew_time: wall_micros.max(record.renew_time.saturating_add(1)),
            transitions: record.transitions,
            ..self.new_record(wall_micros)
        }
    }
}

/// Reports whether the Lease has not expired: less than its duration has passed on the local clock
/// since the record was last observed to change.
fn is_valid(observed: &ObservedLease, now: Duration) -> bool {
    let lease = Duration::from_secs(observed.stored.record.lease_seconds.into());
    observed.changed.saturating_add(lease) > now
}

#[cfg(test)]
mod tests;
