//! What goes wrong.

use std::time::Duration;

use super::{Event, Input, Link, World};

impl World {
    /// Something goes wrong, and something else after a while.
    pub(super) fn trouble(&mut self) -> Result<(), String> {
        if !self.is_troubled {
            return Ok(());
        }
        let next = self.some(self.lease());
        self.at(next, Event::Trouble);
        let who = self.random.below(self.candidates.len() as u64) as usize;
        match self.random.below(10) {
            0..3 => self.breach(who),
            // The server, or the way to it, is gone for all.
            3 => (0..self.candidates.len()).for_each(|who| self.breach(who)),
            4..6 => {
                let pause = self.some(self.lease() * 2);
                self.pause(who, pause);
            }
            6 => {
                let offset = self.random.below(1 << 40) as i64;
                self.candidates[who].wall_offset = offset;
                self.candidates[who].is_frozen = self.random.percent(10);
                let rate = self.rate();
                self.candidates[who].clock.set_rate(self.now, rate);
            }
            7 => self.server.touch(self.now),
            8 => {
                // The leader rather than anybody.
                let leader = self.candidates.iter().position(|it| it.is_open(self.now));
                self.crash(leader.unwrap_or(who));
            }
            _ => {
                let leader = self.candidates.iter().position(|it| it.is_open(self.now));
                return self.stop(leader.unwrap_or(who));
            }
        }
        Ok(())
    }

    /// The process stands still for a while.
    pub(super) fn pause(&mut self, who: usize, pause: Duration) {
        let candidate = &mut self.candidates[who];
        candidate.paused_until = candidate.paused_until.max(self.now + pause);
        candidate.is_disturbed();
    }

    /// The way to the server is bad for a while, in one direction or both.
    pub(super) fn breach(&mut self, who: usize) {
        let some = [0, 30, 100, 100];
        let (requests, answers) = (self.random.below(4), self.random.below(4));
        let slow = match self.random.percent(50) {
            true => self.some(self.lease()),
            false => Link::GOOD.delay_max,
        };
        let lasts = self.some(self.lease() * 3);
        let candidate = &mut self.candidates[who];
        candidate.link = Link {
            requests_lost: some[requests as usize],
            answers_lost: some[answers as usize],
            delay_max: slow,
        };
        candidate.breach += 1;
        candidate.is_disturbed();
        let breach = candidate.breach;
        self.at(lasts, Event::Mend(who, breach));
    }

    pub(super) fn mend(&mut self, who: usize, breach: u64) -> Result<(), String> {
        let candidate = &mut self.candidates[who];
        if candidate.breach == breach {
            candidate.link = Link::GOOD;
            candidate.is_disturbed();
        }
        Ok(())
    }

    fn crash(&mut self, who: usize) {
        let candidate = &mut self.candidates[who];
        if candidate.is_dead {
            return;
        }
        candidate.is_dead = true;
        candidate.is_disturbed();
        let life = candidate.life;
        let delay = self.some(self.lease());
        self.at(delay, Event::Restart(who, life));
    }

    /// Somebody asks the process to end.
    fn stop(&mut self, who: usize) -> Result<(), String> {
        let candidate = &mut self.candidates[who];
        if candidate.is_dead || candidate.stopping || candidate.paused_until > self.now {
            return Ok(());
        }
        candidate.stopping = true;
        candidate.is_disturbed();
        self.step(who, Input::Stop)
    }

    /// An elector has ended.
    pub(super) fn ended(&mut self, who: usize) -> Result<(), String> {
        let candidate = &mut self.candidates[who];
        if !candidate.stopping {
            return Err(format!("{} ended by itself", candidate.identity));
        }
        self.crash(who);
        Ok(())
    }

    /// Another process comes in the place of one that ended, sometimes under the same name.
    pub(super) fn restart(&mut self, who: usize, life: u64) -> Result<(), String> {
        let former = &self.candidates[who];
        if former.life != life || !former.is_dead {
            return Ok(());
        }
        let identity = match self.random.percent(30) {
            true => former.identity.clone(),
            false => format!("candidate-{who}-{}", life + 1),
        };
        let (link, breach, timer, flight) =
            (former.link, former.breach, former.timer, former.flight);
        let mut candidate = self.candidate(identity, life + 1);
        candidate.link = link;
        candidate.breach = breach;
        // What was meant for the former process does not reach this one.
        candidate.timer = timer + 1;
        candidate.flight = flight + 1;
        self.candidates[who] = candidate;
        self.step(who, Input::Wake)
    }

    /// Nothing goes wrong from here on.
    pub(super) fn calm(&mut self) {
        self.is_troubled = false;
        for candidate in &mut self.candidates {
            candidate.link = Link::GOOD;
            candidate.paused_until = candidate.paused_until.min(self.now);
            candidate.is_disturbed();
        }
    }
}
