//! Replicas that are added, killed and stopped without other faults.

use super::{CELLS, Simulation};

impl Simulation {
    /// Adds, kills and stops replicas one after the other, in some runs from the present number to
    /// nine and back to one. After each change, checks that the slots are divided evenly, and how
    /// many of them moved.
    pub(super) fn scale(&mut self) -> Result<(), String> {
        let mut is_growing = true;
        // Few runs go all the way, because a run with many replicas takes long.
        let steps = match self.random.percent(5) {
            true => usize::MAX,
            false => 3,
        };
        for _ in 0..steps {
            self.check_settled()?;
            let running: Vec<usize> = (0..self.replicas.len())
                .filter(|index| !self.replicas[*index].is_dead)
                .collect();
            let before = running.len();
            is_growing &= before < super::REPLICAS_MAX;
            if steps < usize::MAX {
                is_growing =
                    before < super::REPLICAS_MAX && (before == 1 || self.random.percent(50));
            }
            if !is_growing && before == 1 {
                return Ok(());
            }
            self.server.moved = 0;
            let after = match is_growing {
                true => {
                    self.add_replica();
                    before + 1
                }
                false => {
                    let chosen = running[self.random.below(before as u64) as usize];
                    match self.random.percent(50) {
                        true => {
                            self.kill(chosen);
                        }
                        false => self.stop(chosen)?,
                    }
                    before - 1
                }
            };
            self.run_until(self.now + self.lease() * 3)?;
            let slots = self.server.ring().map_or(CELLS, |ring| ring.len());
            let (larger, slot) = (before.max(after) as u32, CELLS / slots);
            // A share of the larger number of replicas, and one slot.
            let most = CELLS / larger + slot;
            if self.server.moved > most {
                return Err(format!(
                    "{} of {CELLS} cells moved when {before} replicas became {after}, at most {most} may",
                    self.server.moved
                ));
            }
        }
        self.check_settled()
    }

    /// Checks that all cells are owned and evenly divided.
    fn check_settled(&self) -> Result<(), String> {
        let alive = self.replicas.iter().filter(|it| !it.is_dead);
        let counts: Vec<usize> = alive.map(|it| it.view.owned.len()).collect();
        let (least, most) = (counts.iter().min(), counts.iter().max());
        let is_even = least
            .zip(most)
            .is_some_and(|(least, most)| most - least <= 1);
        match self.owned() == CELLS && is_even {
            true => Ok(()),
            false => Err(format!(
                "the slots are not divided: {counts:?}, {} cells have an owner: {:?}",
                self.owned(),
                self.server.ring()
            )),
        }
    }
}
