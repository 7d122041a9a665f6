//! What must hold at every moment of the simulation.

use std::time::Duration;

use super::replica::{Link, Replica};
use super::{CELLS, Simulation};

/// Time within which a slot that is given away has another owner.
const HAND_OVER_MAX: Duration = Duration::from_secs(1);

impl Simulation {
    /// Checks that no cell has two owners. Called after each step of a ring engine; terms that end
    /// with time only remove owners.
    pub(super) fn check_exclusive(&self) -> Result<(), String> {
        let mut owned = 0_u128;
        for replica in &self.replicas {
            let held = replica.held(self.now);
            let twice = owned & held;
            if twice != 0 {
                let cell = twice.trailing_zeros();
                let owners = self.replicas.iter();
                let owners = owners.filter(|it| it.held(self.now) & (1 << cell) != 0);
                let owners: Vec<_> = owners.map(|it| &it.identity).collect();
                return Err(format!("the cell {cell} has two owners: {owners:?}"));
            }
            owned |= held;
        }
        Ok(())
    }

    /// Checks that no other replica reconciles an object of the cell in which `index` starts to
    /// reconcile.
    pub(super) fn check_reconciled_once(&self, index: usize, cell: u32) -> Result<(), String> {
        let others = self.replicas.iter().enumerate();
        let mut others = others.filter(|(other, it)| *other != index && it.is_open(self.now));
        let runs_in = |it: &Replica| {
            let mut running = it.running.iter();
            running.any(|work| work.cell == cell && work.term == it.engine.term())
        };
        match others.find(|(_, it)| runs_in(it)) {
            Some((_, it)) => Err(format!(
                "two reconciles, one of {}, run in the cell {cell}",
                it.identity
            )),
            None => Ok(()),
        }
    }

    /// Returns the replica that owns a cell.
    pub(super) fn owner_of(&self, cell: u32) -> Option<usize> {
        let mut replicas = self.replicas.iter();
        replicas.position(|it| it.held(self.now) & (1 << cell) != 0)
    }

    /// Returns the number of cells that have an owner.
    pub(super) fn owned(&self) -> u32 {
        let held = self.replicas.iter().map(|it| it.held(self.now));
        held.fold(0, |all, held| all | held).count_ones()
    }

    /// Checks that each cell has an owner, if a replica can own it and there was no fault for long
    /// enough. A slot that is given away has no owner for at most a second.
    pub(super) fn check_owned(&mut self) -> Result<(), String> {
        let (now, limit) = (self.now, self.timing.lease());
        let held = self.replicas.iter().map(|it| it.held_in_time(now, limit));
        let held = held.fold(0, |all, held| all | held);
        let before = std::mem::replace(&mut self.owned, held);
        if held & before == u128::MAX {
            return Ok(());
        }
        let is_good =
            |it: &Replica| it.is_dead || (it.link == Link::GOOD && it.paused_until <= now);
        let mut alive = self.replicas.iter();
        let can_own = alive.any(|it| !it.is_dead && !it.is_stopping);
        let is_checked = can_own && self.replicas.iter().all(is_good);
        for cell in (0..CELLS).filter(|cell| held & before & (1 << cell) == 0) {
            let since = &mut self.unowned[cell as usize];
            if !is_checked || before & (1 << cell) != 0 {
                *since = now;
                continue;
            }
            let since = *since;
            let deadline = (since + HAND_OVER_MAX).max(self.disturbed + self.bound());
            if now > deadline {
                return Err(format!(
                    "the cells {:032x} have no owner for {:?}, {:?} after the last fault: {:?}",
                    !held,
                    now - since,
                    now.saturating_sub(self.disturbed),
                    self.server.ring()
                ));
            }
        }
        Ok(())
    }
}
