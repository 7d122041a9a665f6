//! Faults that the simulation injects.

use std::time::Duration;

use super::replica::Link;
use super::{Bug, Event, REPLICAS_MAX, RingInput, RingRequest, Simulation};
use crate::engine::Input;
use crate::sharding::ring::{Member, Ring};

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
        match self.random.below(14) {
            0..2 => self.start_outage(index),
            2 => (0..self.replicas.len()).for_each(|index| self.start_outage(index)),
            3..5 => {
                let pause = self.random_duration(self.lease() * 2);
                self.pause(index, pause);
            }
            5 => {
                let rate = self.rate();
                self.replicas[index].clock.set_rate(self.now, rate);
                self.disturb(self.now);
            }
            6 => self.server.touch(),
            7..9 => self.crash(index),
            9 if self.replicas.len() < REPLICAS_MAX => {
                self.add_replica();
            }
            10 => self.delete_ring(index),
            11 => self.delete_lease(index),
            _ => return self.stop(index),
        }
        Ok(())
    }

    /// Deletes the ring, as a person may. Not in the moments for which it is documented that two
    /// replicas may then own a slot: soon after the ring was created, and while a request to create
    /// it is still on its way.
    fn delete_ring(&mut self, index: usize) {
        let is_young = self.now < self.ring_changed + Self::slowest(self.timing.retry_period * 3);
        if is_young || self.creates > 0 || !self.server.delete_ring() {
            return;
        }
        self.ring_changed = self.now;
        self.disturb(self.now + self.bound());
        if self.random.percent(30) {
            // A replica that cannot read the ring, and renews its Lease.
            let link = Link {
                refused_percent: 100,
                ..Link::GOOD
            };
            self.cut(index, link);
        }
        if self.bug == Bug::CreatesAtOnce
            && let Some(ring) = self.ring_of_any()
        {
            self.server.handle_ring(RingRequest::Create(ring));
        }
        self.notify_all();
    }

    /// Returns a ring of a replica that holds its Lease.
    fn ring_of_any(&self) -> Option<Ring> {
        let mut replicas = self.replicas.iter().filter(|it| it.is_open(self.now));
        let replica = replicas.next()?;
        let mut ring = Ring::default();
        ring.join(Member {
            identity: replica.identity.clone(),
            incarnation: replica.ring.incarnation()?,
            leaving: false,
        });
        ring.resize(0, true);
        ring.assign();
        ring.revision = 1;
        Some(ring)
    }

    /// Deletes the Lease of a replica. Not soon after the ring was deleted.
    fn delete_lease(&mut self, index: usize) {
        if self.now > self.ring_changed + self.bound() {
            let identity = self.replicas[index].identity.clone();
            self.server.delete_lease(&identity);
            self.disturb(self.now);
        }
    }

    /// Pauses the process.
    pub(super) fn pause(&mut self, index: usize, pause: Duration) {
        let replica = &mut self.replicas[index];
        replica.paused_until = replica.paused_until.max(self.now + pause);
        let (generation, delay) = (replica.generation, replica.paused_until - self.now);
        self.disturb(self.now);
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
        let refused = [0, 0, 0, 100][self.random.below(4) as usize];
        let link = Link {
            request_loss_percent: percents[requests as usize],
            response_loss_percent: percents[responses as usize],
            refused_percent: refused,
            delay_max: slow,
        };
        self.cut(index, link);
    }

    fn cut(&mut self, index: usize, link: Link) {
        let duration = self.random_duration(self.lease() * 3);
        let replica = &mut self.replicas[index];
        replica.link = link;
        replica.outage += 1;
        let outage = replica.outage;
        self.disturb(self.now);
        self.schedule(duration, Event::RestoreLink(index, outage));
    }

    /// Ends an outage.
    pub(super) fn restore_link(&mut self, index: usize, outage: u64) {
        let replica = &mut self.replicas[index];
        if replica.outage == outage {
            replica.link = Link::GOOD;
            // A request that was sent before may still be lost or slow.
            self.disturb(self.now + self.timing.renew_deadline.mul_f64(0.6));
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
        self.disturb(self.now);
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
            self.disturb(self.now);
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
        self.disturb(self.now);
        self.schedule(Duration::ZERO, Event::Start(index, generation + 1));
        self.step(index, Input::Wake)
    }

    /// Ends all faults. No further faults are injected, and one replica runs at least.
    pub(super) fn end_faults(&mut self) {
        self.disturb(self.now + self.timing.renew_deadline.mul_f64(0.6));
        for replica in &mut self.replicas {
            replica.link = Link::GOOD;
        }
        let paused = self.replicas.iter().map(|it| it.paused_until).max();
        self.disturb(paused.unwrap_or_default());
        if !(self.replicas.iter()).any(|it| !it.is_dead && !it.is_stopping) {
            self.add_replica();
        }
        self.has_faults = false;
    }
}
