//! The ring: which replica owns which slots. The ring is the content of one Lease, and each change
//! is an update with the `resourceVersion` of the Lease, so replicas never overwrite each other's
//! changes.

mod balance;
mod text;

use std::ops::Range;

#[cfg(test)]
pub(crate) use self::text::RingError;

/// Largest number of slots, so that the ring stays a small object.
pub(crate) const SLOTS_MAX: u32 = 1024;
/// Least number of slots of each member after the ring has grown. More slots divide the objects
/// more evenly.
const SLOTS_PER_MEMBER: u32 = 8;
/// Largest number of slots of each member to which many objects let the ring grow.
const SLOTS_PER_MEMBER_MAX: u32 = 64;
/// Number of objects in a slot above which the ring grows.
const OBJECTS_PER_SLOT: u64 = 5000;

/// A replica in the ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    /// Identity of the replica, which is the holder of its Lease.
    pub(crate) identity: String,
    /// Process and term of the replica. A replica that has lost its Lease joins again as another
    /// incarnation, so it does not own the slots of the earlier one.
    pub(crate) incarnation: String,
    /// Whether the replica is stopping and gives all its slots to others.
    pub(crate) leaving: bool,
}

/// Owners of all slots. Slot `i` of `N` contains the objects whose hash is in the part `i` of `N`
/// equal parts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Ring {
    /// Number of changes of the ring.
    pub(crate) revision: u64,
    members: Vec<Member>,
    /// Index of each slot's owner in `members`. The length is a power of two.
    owners: Vec<Option<usize>>,
}

impl Ring {
    /// Returns the number of slots.
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.owners.len()).unwrap_or(SLOTS_MAX)
    }

    pub(crate) fn members(&self) -> &[Member] {
        &self.members
    }

    /// Returns the owner of each slot.
    pub(crate) fn owners(&self) -> impl Iterator<Item = Option<&Member>> {
        let owners = self.owners.iter();
        owners.map(|owner| owner.and_then(|index| self.members.get(index)))
    }

    /// Returns the index of each slot's owner in [`members`](Self::members).
    pub(crate) fn owner_indexes(&self) -> &[Option<usize>] {
        &self.owners
    }

    /// Returns the slots of a member.
    pub(crate) fn slots_of(&self, incarnation: &str) -> Vec<u32> {
        let owners = (0..).zip(self.owners());
        let own = owners.filter(|(_, owner)| owner.is_some_and(|it| it.incarnation == incarnation));
        own.map(|(slot, _)| slot).collect()
    }

    pub(crate) fn contains(&self, incarnation: &str) -> bool {
        self.index(incarnation).is_some()
    }

    fn index(&self, incarnation: &str) -> Option<usize> {
        let mut members = self.members.iter();
        members.position(|member| member.incarnation == incarnation)
    }

    /// Adds a member. Slots of earlier incarnations of the same replica become its own.
    pub(crate) fn join(&mut self, member: Member) {
        let same = |it: &Member| it.identity == member.identity;
        match self.members.iter().position(same) {
            Some(first) => {
                let former = self.members.iter().map(same).collect::<Vec<_>>();
                for owner in &mut self.owners {
                    if owner.is_some_and(|index| former.get(index) == Some(&true)) {
                        *owner = Some(first);
                    }
                }
                if let Some(place) = self.members.get_mut(first) {
                    *place = member.clone();
                }
                self.remove(|it| it.identity == member.identity && *it != member);
            }
            None => self.members.push(member),
        }
    }

    /// Removes members. Their slots have no owner until [`assign`](Self::assign) is called.
    pub(crate) fn remove(&mut self, is_gone: impl Fn(&Member) -> bool) {
        let mut kept = 0;
        let places: Vec<Option<usize>> = (self.members.iter())
            .map(|member| {
                let place = (!is_gone(member)).then_some(kept);
                kept += usize::from(place.is_some());
                place
            })
            .collect();
        self.members.retain(|member| !is_gone(member));
        for owner in &mut self.owners {
            *owner = owner.and_then(|index| places.get(index).copied().flatten());
        }
    }

    /// Marks a member as leaving.
    pub(crate) fn leave(&mut self, incarnation: &str) {
        if let Some(index) = self.index(incarnation)
            && let Some(member) = self.members.get_mut(index)
        {
            member.leaving = true;
        }
    }

    /// Grows or shrinks the ring, so that its number of slots fits the members and the number of
    /// objects. No slot gets another owner: a slot is split into two of the same owner, and two
    /// slots are joined only if they have the same owner, and if `may_shrink`.
    pub(crate) fn resize(&mut self, objects: u64, may_shrink: bool) {
        let members = u32::try_from(self.members.len()).unwrap_or(SLOTS_MAX);
        let least = members.saturating_mul(SLOTS_PER_MEMBER);
        let most = members.saturating_mul(SLOTS_PER_MEMBER_MAX);
        let wanted = u32::try_from(objects / OBJECTS_PER_SLOT).unwrap_or(SLOTS_MAX);
        let wanted = wanted.max(least).min(most);
        let wanted = wanted
            .clamp(SLOTS_PER_MEMBER, SLOTS_MAX)
            .next_power_of_two();
        if self.owners.is_empty() {
            self.owners = vec![None; SLOTS_PER_MEMBER as usize];
        }
        while self.len() < wanted {
            self.owners = (self.owners.iter()).flat_map(|it| [*it, *it]).collect();
        }
        // Shrinks late, so that a small change of the objects does not change the ring each time.
        while may_shrink && self.len() / 4 >= wanted {
            let (pairs, _) = self.owners.as_chunks::<2>();
            if pairs.iter().any(|[left, right]| left != right) {
                return;
            }
            self.owners = pairs.iter().map(|[left, _]| *left).collect();
        }
    }
}

/// Returns the hashes in slot `slot` of `of`; the end is exclusive.
pub(crate) fn hashes(slot: u32, of: u32) -> Range<u128> {
    let of = u128::from(of.max(1));
    let edge = |slot: u128| (slot << 64) / of;
    edge(slot.into())..edge(u128::from(slot) + 1)
}

#[cfg(test)]
mod tests;
