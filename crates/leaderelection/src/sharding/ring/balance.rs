//! The balance of a ring: slots without an owner, and slots that a member gives to another.

use std::collections::BTreeSet;

use super::Ring;

/// A slot that its owner gives to another member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Move {
    slot: usize,
    to: usize,
}

impl Ring {
    /// Gives each slot without an owner to the member with the fewest slots. Does nothing if all
    /// members are leaving.
    pub(crate) fn assign(&mut self) {
        let mut counts = self.counts();
        for slot in 0..self.owners.len() {
            if self.owners.get(slot) == Some(&None)
                && let Some(to) = self.poorest(&counts, slot)
            {
                self.give(&mut counts, Move { slot, to });
            }
        }
    }

    /// Returns the slots that a member must give to others, so that no member has two slots more
    /// than another, and a leaving member has none. Slots in `preferred` are chosen first.
    pub(crate) fn surplus(&self, incarnation: &str, preferred: &BTreeSet<u32>) -> BTreeSet<u32> {
        let moves = self.moves(incarnation, preferred).into_iter();
        moves.filter_map(|it| u32::try_from(it.slot).ok()).collect()
    }

    /// Gives those slots of `drained` to other members that `incarnation` must give away.
    pub(crate) fn hand_over(&mut self, incarnation: &str, drained: &BTreeSet<u32>) {
        let mut counts = self.counts();
        for change in self.moves(incarnation, drained) {
            if u32::try_from(change.slot).is_ok_and(|slot| drained.contains(&slot)) {
                self.give(&mut counts, change);
            }
        }
    }

    fn give(&mut self, counts: &mut [usize], Move { slot, to }: Move) {
        let Some(owner) = self.owners.get_mut(slot) else {
            return;
        };
        for (index, change) in [(*owner, -1), (Some(to), 1)] {
            if let Some(count) = index.and_then(|index| counts.get_mut(index)) {
                *count = count.saturating_add_signed(change);
            }
        }
        *owner = Some(to);
    }

    /// Returns the number of slots of each member.
    fn counts(&self) -> Vec<usize> {
        let mut counts = vec![0_usize; self.members.len()];
        for owner in self.owners.iter().flatten() {
            if let Some(count) = counts.get_mut(*owner) {
                *count += 1;
            }
        }
        counts
    }

    fn is_leaving(&self, index: usize) -> bool {
        self.members.get(index).is_none_or(|member| member.leaving)
    }

    /// Returns the member with the fewest slots, and of several the one that owns a neighbour of
    /// `slot`, so that members own few ranges of hashes.
    fn poorest(&self, counts: &[usize], slot: usize) -> Option<usize> {
        let staying = |(index, _): &(usize, &usize)| !self.is_leaving(*index);
        let members = counts.iter().enumerate().filter(staying);
        let poorest = members.min_by_key(|(index, count)| (**count, !self.is_beside(slot, *index)));
        poorest.map(|(index, _)| index)
    }

    /// Reports whether the slot before or after `slot` is owned by `member`.
    fn is_beside(&self, slot: usize, member: usize) -> bool {
        let beside = [slot.checked_sub(1), slot.checked_add(1)];
        let mut beside = beside.into_iter().flatten();
        beside.any(|slot| self.owners.get(slot).copied().flatten() == Some(member))
    }

    /// Returns the moves of all members that balance the ring, as far as they are of slots of
    /// `incarnation`. Each move is from a member with the most slots to one with the fewest, so no
    /// more slots move than necessary.
    fn moves(&self, incarnation: &str, preferred: &BTreeSet<u32>) -> Vec<Move> {
        let Some(own) = self.index(incarnation) else {
            return Vec::new();
        };
        let (mut plan, mut counts, mut moves) = (self.clone(), self.counts(), Vec::new());
        loop {
            let richest = (counts.iter().enumerate())
                .filter(|(_, count)| **count > 0)
                .max_by_key(|(index, count)| (plan.is_leaving(*index), **count, *index == own));
            let Some((from, most)) = richest.map(|(from, most)| (from, *most)) else {
                return moves;
            };
            let Some(to) = plan.poorest(&counts, usize::MAX - 1) else {
                return moves;
            };
            let fewest = counts.get(to).copied().unwrap_or_default();
            if !plan.is_leaving(from) && most <= fewest + 1 {
                return moves;
            }
            let Some(slot) = plan.spare(from, to, preferred) else {
                return moves;
            };
            let change = Move { slot, to };
            plan.give(&mut counts, change);
            if from == own {
                moves.push(change);
            }
        }
    }

    /// Returns the slot of `from` that is given to `to`: a preferred one, or one beside a slot of
    /// `to`, or the first of a range.
    fn spare(&self, from: usize, to: usize, preferred: &BTreeSet<u32>) -> Option<usize> {
        let slots = (0..self.owners.len())
            .filter(|slot| self.owners.get(*slot).copied().flatten() == Some(from));
        slots.max_by_key(|slot| {
            let is_preferred = u32::try_from(*slot).is_ok_and(|it| preferred.contains(&it));
            let is_edge = !(self.is_owned(slot.checked_sub(1), from)
                && self.is_owned(slot.checked_add(1), from));
            (is_preferred, self.is_beside(*slot, to), is_edge)
        })
    }

    fn is_owned(&self, slot: Option<usize>, member: usize) -> bool {
        let owner = slot.and_then(|slot| self.owners.get(slot).copied().flatten());
        owner == Some(member)
    }
}
