//! Faults that the simulation injects.

use std::time::Duration;

use super::{Event, Input, Link, Simulation};

impl Simulation {
    /// Injects a random fault, and schedules the next one.
    pub(super) fn inject_fault(&mut self) -> Result<(), String> {
        if !self.has_faults {
            return Ok(());
        }
        let next = self.random_duration(self.lease());
        self.schedule(next, Event::InjectFault);
        let index = self.random.below(self.candidates.len() as u64) as usize;
        match self.random.below(10) {
            0..3 => self.start_outage(index),
            // The server is not reachable for any candidate.
            3 => (0..self.candidates.len()).for_each(|index| self.start_outage(index)),
            4..6 => {
                let pause = self.random_duration(self.lease() * 2);
                self.pause(index, pause);
            }
            6 => {
                let offset = self.random.below(1 << 40) as i64;
                self.candidates[index].wall_offset_micros = offset;
                self.candidates[index].is_frozen = self.random.percent(10);
                let rate = self.rate();
                self.candidates[index].clock.set_rate(self.now, rate);
            }
            7 => self.server.touch(self.now),
            8 => {
                // The leader, if there is one.
                let leader = self.candidates.iter().position(|it| it.is_open(self.now));
                self.crash(leader.unwrap_or(index));
            }
            _ => {
                let leader = self.candidates.iter().position(|it| it.is_open(self.now));
                return self.stop(leader.unwrap_or(index));
            }
        }
        Ok(())
    }

    /// Pauses the process.
    pub(super) fn pause(&mut self, index: usize, pause: Duration) {
        let candidate = &mut self.candidates[index];
        candidate.paused_until = candidate.paused_until.max(self.now + pause);
        candidate.reset_reachability();
    }

    /// Starts an outage of the link to the server, in one direction or both.
    pub(super) fn start_outage(&mut self, index: usize) {
        let percents = [0, 30, 100, 100];
        let (requests, responses) = (self.random.below(4), self.random.below(4));
        let slow = match self.random.percent(50) {
            true => self.random_duration(self.lease()),
            false => Link::GOOD.delay_max,
        };
        let duration = self.random_duration(self.lease() * 3);
        let candidate = &mut self.candidates[index];
        candidate.link = Link {
            request_loss_percent: percents[requests as usize],
            response_loss_percent: percents[responses as usize],
            delay_max: slow,
        };
        candidate.outage += 1;
        candidate.reset_reachability();
        let outage = candidate.outage;
        self.schedule(duration, Event::RestoreLink(index, outage));
    }

    /// Ends an outage.
    pub(super) fn restore_link(&mut self, index: usize, outage: u64) -> Result<(), String> {
        let candidate = &mut self.candidates[index];
        if candidate.outage == outage {
            candidate.link = Link::GOOD;
            candidate.reset_reachability();
        }
        Ok(())
    }

    /// Crashes a process, and schedules its restart.
    fn crash(&mut self, index: usize) {
        let candidate = &mut self.candidates[index];
        if candidate.is_dead {
            return;
        }
        candidate.is_dead = true;
        candidate.reset_reachability();
        let generation = candidate.generation;
        let delay = self.random_duration(self.lease());
        self.schedule(delay, Event::Restart(index, generation));
    }

    /// Stops a process gracefully.
    fn stop(&mut self, index: usize) -> Result<(), String> {
        let candidate = &mut self.candidates[index];
        if candidate.is_dead || candidate.is_stopping || candidate.paused_until > self.now {
            return Ok(());
        }
        candidate.is_stopping = true;
        candidate.reset_reachability();
        self.step(index, Input::Stop)
    }

    /// Handles the end of an elector, and schedules a restart. Returns an error if the elector was
    /// not asked to stop.
    pub(super) fn handle_end(&mut self, index: usize) -> Result<(), String> {
        let candidate = &mut self.candidates[index];
        if !candidate.is_stopping {
            return Err(format!("{} ended without a stop", candidate.identity));
        }
        self.crash(index);
        Ok(())
    }

    /// Starts a new process in place of one that has ended. The new process sometimes has the same
    /// identity.
    pub(super) fn restart(&mut self, index: usize, generation: u64) -> Result<(), String> {
        let former = &self.candidates[index];
        if former.generation != generation || !former.is_dead {
            return Ok(());
        }
        let identity = match self.random.percent(30) {
            true => former.identity.clone(),
            false => format!("candidate-{index}-{}", generation + 1),
        };
        let (link, outage, timer, request_id) =
            (former.link, former.outage, former.timer, former.request_id);
        let mut candidate = self.new_candidate(identity, generation + 1);
        candidate.link = link;
        candidate.outage = outage;
        // Timers and responses of the former process do not reach the new one.
        candidate.timer = timer + 1;
        candidate.request_id = request_id + 1;
        self.candidates[index] = candidate;
        self.step(index, Input::Wake)
    }

    /// Ends all faults. No further faults are injected.
    pub(super) fn end_faults(&mut self) {
        self.has_faults = false;
        for candidate in &mut self.candidates {
            candidate.link = Link::GOOD;
            candidate.paused_until = candidate.paused_until.min(self.now);
            candidate.reset_reachability();
        }
    }
}
