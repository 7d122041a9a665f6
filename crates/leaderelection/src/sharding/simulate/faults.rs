//! Faults that the simulation injects.

use std::time::Duration;

use super::replica::Link;
use super::{Event, REPLICAS_MAX, RingInput, Simulation};
use crate::engine::Input;

impl Simulation {
    /// Injects a random fault, and schedules the next one.
    pub(super) fn inject_fault(&mut self) -> Result<(), String> {
        if !self.has_faults {
            return Ok(());
        }
        let next = match self.random.percent(20) {
            true => self.bound() * 2,
            false => self.random_duration(self.lease()),
        };
        self.schedule(next, Event::InjectFault);
        let index = self.random.below(self.replicas.len() as u64) as usize;
        match self.random.below(12) {
            0..2 => self.start_outage(index),
            2 => (0..self.replicas.len()).for_each(|index| self.start_outage(index)),
            3..5 => {
                let pause = self.random_duration(self.lease() * 2);
                self.pause(index, pause);
            }
            5 => {
                let rate = self.rate();
                self.replicas[index].clock.set_rate(self.now, rate);
                self.disturbed = self.now;
            }
            6 => self.server.touch(),
            7..9 => self.crash(index),
            9 if self.replicas.len() < REPLICAS_MAX => {
                self.add_replica();
            }
            _ => return self.stop(index),
        }
        Ok(())
    }

    /// Pauses the process.
    pub(super) fn pause(&mut self, index: usize, pause: Duration) {
        let replica = &mut self.replicas[index];
        replica.paused_until = replica.paused_until.max(self.now + pause);
        let (generation, delay) = (replica.generation, replica.paused_until - self.now);
        self.disturbed = self.now;
        self.schedule(delay, Event::Resume(index, generation));
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
        let replica = &mut self.replicas[index];
        replica.link = Link {
            request_loss_percent: percents[requests as usize],
            response_loss_percent: percents[responses as usize],
            delay_max: slow,
        };
        replica.outage += 1;
        let outage = replica.outage;
        self.disturbed = self.now;
        self.schedule(duration, Event::RestoreLink(index, outage));
    }

    /// Ends an outage.
    pub(super) fn restore_link(&mut self, index: usize, outage: u64) {
        let replica = &mut self.replicas[index];
        if replica.outage == outage {
            replica.link = Link::GOOD;
            // A request that was sent before may still be lost or slow.
            self.disturbed = self.now + self.timing.renew_deadline.mul_f64(0.6);
        }
    }

    /// Crashes a process, and schedules its restart.
    fn crash(&mut self, index: usize) {
        if self.kill(index) {
            let generation = self.replicas[index].generation;
            let delay = self.random_duration(self.lease() * 2);
            self.schedule(delay, Event::Restart(index, generation));
        }
    }

    /// Ends a process without a stop. Returns false if it has ended already.
    pub(super) fn kill(&mut self, index: usize) -> bool {
        let replica = &mut self.replicas[index];
        if replica.is_dead {
            return false;
        }
        replica.is_dead = true;
        self.disturbed = self.now;
        true
    }

    /// Stops a process gracefully.
    pub(super) fn stop(&mut self, index: usize) -> Result<(), String> {
        let replica = &mut self.replicas[index];
        if replica.is_dead || replica.is_stopping || replica.paused_until > self.now {
            return Ok(());
        }
        replica.is_stopping = true;
        self.step_ring(index, RingInput::Stop)
    }

    /// Handles the end of a process, and schedules a restart.
    pub(super) fn handle_end(&mut self, index: usize) -> Result<(), String> {
        let replica = &mut self.replicas[index];
        if !replica.is_stopping {
            return Err(format!("{} ended without a stop", replica.identity));
        }
        replica.is_dead = true;
        // A process that does not reach the server ends with its slots, as after a crash.
        let identity = &self.replicas[index].identity;
        let members = self.server.ring().into_iter().flat_map(|it| it.members());
        if members.into_iter().any(|it| it.identity == *identity) {
            self.disturbed = self.now;
        }
        if self.has_faults {
            let generation = self.replicas[index].generation;
            let delay = self.random_duration(self.lease() * 2);
            self.schedule(delay, Event::Restart(index, generation));
        }
        Ok(())
    }

    /// Starts a new process in place of one that has ended. The new process sometimes has the same
    /// identity.
    pub(super) fn restart(&mut self, index: usize, generation: u64) -> Result<(), String> {
        let former = &self.replicas[index];
        if former.generation != generation || !former.is_dead || !self.has_faults {
            return Ok(());
        }
        let identity = match self.random.percent(30) {
            true => former.identity.clone(),
            false => format!("replica-{index}-{}", generation + 1),
        };
        let (link, outage, ids) = (
            former.link,
            former.outage,
            [
                former.timer,
                former.ring_timer,
                former.request_id,
                former.ring_request_id,
            ],
        );
        let mut replica = self.new_replica(identity, generation + 1);
        (replica.link, replica.outage) = (link, outage);
        // Timers and responses of the former process do not reach the new one.
        let [timer, ring_timer, request_id, ring_request_id] = ids.map(|id| id + 1);
        (replica.timer, replica.ring_timer) = (timer, ring_timer);
        (replica.request_id, replica.ring_request_id) = (request_id, ring_request_id);
        self.replicas[index] = replica;
        self.disturbed = self.now;
        self.schedule(Duration::ZERO, Event::Start(index, generation + 1));
        self.step(index, Input::Wake)
    }

    /// Ends all faults. No further faults are injected, and one replica runs at least.
    pub(super) fn end_faults(&mut self) {
        self.disturbed = self.now + self.timing.renew_deadline.mul_f64(0.6);
        for replica in &mut self.replicas {
            replica.link = Link::GOOD;
            self.disturbed = self.disturbed.max(replica.paused_until);
        }
        if !(self.replicas.iter()).any(|it| !it.is_dead && !it.is_stopping) {
            self.add_replica();
        }
        self.has_faults = false;
    }
}
