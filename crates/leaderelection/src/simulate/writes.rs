//! Writes of leader-only work. A write starts, passes the fence, is delayed, passes the last check
//! of the fence, and leaves the process.

use std::time::Duration;

use opkit_client::Fence;

use super::{Bug, Event, Phase, Simulation};

/// Write of leader-only work that has not left the process.
#[derive(Debug)]
pub(super) struct Write {
    generation: u64,
    term: u64,
    handle: Fence,
}

impl Simulation {
    /// Starts a write if the candidate is the leader, and schedules the next one.
    pub(super) fn write(&mut self, index: usize, generation: u64) -> Result<(), String> {
        let candidate = &self.candidates[index];
        let is_leading = matches!(candidate.engine.phase(), Phase::Leading { .. });
        if !candidate.is_running(generation) || !is_leading {
            return Ok(());
        }
        let term = candidate.engine.term();
        let handle = match self.bug {
            Bug::NoTermCheck => candidate.fence.clone(),
            _ => candidate.fence.for_term(term),
        };
        // Rate limits, retries and slow connections delay a write before the last check.
        let max = match self.random.percent(20) {
            true => self.lease() * 3,
            false => Duration::from_millis(50),
        };
        let passes = handle.check_at(candidate.clock.local(self.now)).is_ok();
        let wait = self.random_duration(max);
        if passes || self.bug == Bug::NoFence {
            let write = Write {
                generation,
                term,
                handle,
            };
            self.schedule(wait, Event::LastCheck(index, write));
        }
        let next = self.random_duration(self.timing.retry_period);
        self.schedule(next, Event::Write(index, generation));
        Ok(())
    }

    /// Checks the fence for the last time, and schedules the send.
    pub(super) fn last_check(&mut self, index: usize, write: Write) -> Result<(), String> {
        let candidate = &self.candidates[index];
        let unchecked = matches!(self.bug, Bug::NoFence | Bug::NoLastCheck);
        let local = candidate.clock.local(self.now);
        let passes = write.handle.check_at(local).is_ok();
        if !candidate.is_running(write.generation) || !(passes || unchecked) {
            return Ok(());
        }
        let mut gap = Duration::ZERO;
        if self.has_faults && self.random.percent(5) {
            gap = self.random_duration(self.lease() * 2);
            self.pause(index, gap);
        }
        self.schedule(gap, Event::SendWrite(index, write, gap));
        Ok(())
    }

    /// Checks that a write may leave the process now.
    pub(super) fn send_write(
        &mut self,
        index: usize,
        write: &Write,
        gap: Duration,
    ) -> Result<(), String> {
        let (candidate, term) = (&self.candidates[index], write.term);
        if !candidate.is_running(write.generation) {
            return Ok(());
        }
        self.writes += 1;
        let local = candidate.clock.local(self.now);
        if gap.is_zero() && (candidate.engine.term() != term || local >= candidate.deadline) {
            return Err(format!(
                "a write of {} in term {term} leaves {:?} after its deadline",
                candidate.identity,
                local.saturating_sub(candidate.deadline)
            ));
        }
        let others = self.candidates.iter().enumerate();
        let mut others = others.filter(|(other, it)| *other != index && it.is_open(self.now));
        match others.next() {
            Some((_, other)) if gap <= self.slack() => Err(format!(
                "a write of {} leaves in a term of {}",
                candidate.identity, other.identity
            )),
            _ => Ok(()),
        }
    }
}
