//! The writes of leader-only work: begun, checked, held up, checked again, sent.

use std::time::Duration;

use opkit_client::Fence;

use super::{Event, Fault, Phase, World};

/// A write of leader-only work on its way.
#[derive(Debug)]
pub(super) struct Write {
    life: u64,
    term: u64,
    handle: Fence,
}

impl World {
    /// A worker begins a write, if it has work; and the next one after a while.
    pub(super) fn write(&mut self, who: usize, life: u64) -> Result<(), String> {
        let candidate = &self.candidates[who];
        let works = matches!(candidate.engine.phase(), Phase::Leading { .. });
        if !candidate.lives(life) || !works {
            return Ok(());
        }
        let term = candidate.engine.term();
        let handle = match self.fault {
            Fault::NoTerms => candidate.fence.clone(),
            _ => candidate.fence.for_term(term),
        };
        // The rate limit, retries and slow connections come before the last check.
        let max = match self.random.percent(20) {
            true => self.lease() * 3,
            false => Duration::from_millis(50),
        };
        let passes = handle.check_at(candidate.clock.local(self.now)).is_ok();
        let wait = self.some(max);
        if passes || self.fault == Fault::NoFence {
            let write = Write { life, term, handle };
            self.at(wait, Event::LastCheck(who, write));
        }
        let next = self.some(self.timing.retry_period);
        self.at(next, Event::Write(who, life));
        Ok(())
    }

    pub(super) fn last_check(&mut self, who: usize, write: Write) -> Result<(), String> {
        let candidate = &self.candidates[who];
        let unchecked = matches!(self.fault, Fault::NoFence | Fault::NoLastCheck);
        let local = candidate.clock.local(self.now);
        let passes = write.handle.check_at(local).is_ok();
        if !candidate.lives(write.life) || !(passes || unchecked) {
            return Ok(());
        }
        let mut gap = Duration::ZERO;
        if self.is_troubled && self.random.percent(5) {
            gap = self.some(self.lease() * 2);
            self.pause(who, gap);
        }
        self.at(gap, Event::Leaves(who, write, gap));
        Ok(())
    }

    pub(super) fn leaves(
        &mut self,
        who: usize,
        write: &Write,
        gap: Duration,
    ) -> Result<(), String> {
        let (candidate, term) = (&self.candidates[who], write.term);
        if !candidate.lives(write.life) {
            return Ok(());
        }
        self.writes += 1;
        let local = candidate.clock.local(self.now);
        if gap.is_zero() && (candidate.engine.term() != term || local >= candidate.deadline) {
            return Err(format!(
                "a write of {}, term {term}, leaves {:?} after its deadline",
                candidate.identity,
                local.saturating_sub(candidate.deadline)
            ));
        }
        let others = self.candidates.iter().enumerate();
        let mut others = others.filter(|(other, it)| *other != who && it.is_open(self.now));
        match others.next() {
            Some((_, other)) if gap <= self.slack() => Err(format!(
                "a write of {} leaves in a term of {}",
                candidate.identity, other.identity
            )),
            _ => Ok(()),
        }
    }
}
