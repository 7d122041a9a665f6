//! Order in which ready keys are handed out: by priority and age, first in first out within a
//! priority, and optionally in turns between groups.
//!
//! Waiting raises a key by one priority in each [`ageing`](crate::QueueOptions::ageing) period. All
//! keys age equally, so the order of two keys never changes while they wait: the key with the
//! smaller *rank* is first. The rank is the time at which the key became ready minus its priority
//! times the ageing period. Within a priority, the rank order is the order of arrival, so each
//! priority (level) has a list. Between priorities, only the first keys of the lists are compared.
//! So no search is needed, and no key starves.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use hashbrown::HashTable;

use super::heap::Heap;
use super::list::{Links, List, NONE};

/// Number of empty levels (lists of one priority) that are kept for reuse.
const KEPT_LEVELS: usize = 32;

/// Order of the levels (lists of one priority): by the rank of the oldest key, then by the higher
/// priority.
type Rank = (i128, Reverse<i32>);

#[derive(Debug, Default)]
pub(super) struct Ready {
    places: Vec<Place>,
    /// Links of the lists of keys, one list for each level, oldest key first.
    links: Links,
    levels: Vec<Level>,
    by_priority: BTreeMap<i32, u32>,
    /// Indexes of unused levels, which can be reused for another priority.
    free_levels: Vec<u32>,
    order: Heap<Rank>,
    len: usize,
    /// Ageing period: nanoseconds of waiting that raise a key by one priority; zero without ageing.
    step: u64,
    /// Whether keys of one priority are handed out in turns between groups.
    fair: bool,
    groups: Groups,
}

/// Position of a ready key.
#[derive(Debug, Clone, Copy)]
struct Place {
    level: u32,
    group: u32,
    /// Time at which the key was put at its position.
    since: u64,
}

#[derive(Debug, Default)]
struct Level {
    priority: i32,
    len: usize,
    keys: List,
    /// Groups that have keys of this priority, in the order of their turns.
    turns: List,
}

impl Ready {
    pub(super) fn new(step: u64, fair: bool) -> Self {
        Self {
            step,
            fair,
            ..Self::default()
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of levels (priorities) and groups for which memory is allocated.
    #[cfg(test)]
    pub(super) fn allocated_places(&self) -> usize {
        self.levels.len() + self.groups.groups.len()
    }

    /// Puts a key at the end of the keys of its priority.
    pub(super) fn push(&mut self, id: u32, now: u64, priority: i32, group: u64) {
        let number = self.level(priority);
        let is_first = |level: &Level| level.keys.is_empty();
        if self.levels.get(number as usize).is_some_and(is_first) {
            self.order.set(number, self.rank(priority, now));
        }
        let Some(level) = self.levels.get_mut(number as usize) else {
            return;
        };
        level.keys.push_back(&mut self.links, id);
        level.len = level.len.saturating_add(1);
        self.len = self.len.saturating_add(1);
        let group = match self.fair {
            true => self.groups.push(&mut level.turns, (number, group), id),
            false => NONE,
        };
        let place = Place {
            level: number,
            group,
            since: now,
        };
        match self.places.get_mut(id as usize) {
            Some(slot) => *slot = place,
            None => self.places.resize(id as usize + 1, place),
        }
    }

    /// Removes the key that is to be handed out next, and returns the key.
    pub(super) fn pop(&mut self) -> Option<u32> {
        let (_, number) = self.order.first()?;
        let level = self.levels.get(number as usize)?;
        let id = match self.fair {
            true => self.groups.next(&level.turns)?,
            false => level.keys.first()?,
        };
        self.remove(id, true);
        Some(id)
    }

    /// Puts a key at the end of the keys of `priority`, unless the key has waited so long that this
    /// would move it back.
    pub(super) fn raise(&mut self, id: u32, now: u64, priority: i32, group: u64) {
        let Some(place) = self.places.get(id as usize).copied() else {
            return;
        };
        let present = self.levels.get(place.level as usize);
        let present = present.map_or(priority, |level| level.priority);
        if self.rank(priority, now) < self.rank(present, place.since) {
            self.remove(id, false);
            self.push(id, now, priority, group);
        }
    }

    /// Returns the earliest time at which a ready key was put at its current position.
    pub(super) fn oldest(&self) -> Option<u64> {
        let first = |level: &Level| self.places.get(level.keys.first()? as usize);
        self.levels
            .iter()
            .filter_map(first)
            .map(|place| place.since)
            .min()
    }

    /// Returns the number of waiting keys for each priority.
    pub(super) fn depths(&self) -> impl Iterator<Item = (i32, usize)> {
        let depth = |(priority, number): (&i32, &u32)| {
            let level = self.levels.get(*number as usize)?;
            Some((*priority, level.len))
        };
        self.by_priority.iter().filter_map(depth)
    }

    /// Returns the first `limit` keys by rank, without turns between groups.
    pub(super) fn first(&self, limit: usize) -> Vec<u32> {
        let mut next: Vec<Option<u32>> = self.levels.iter().map(|l| l.keys.first()).collect();
        let mut found = Vec::new();
        while found.len() < limit {
            let ranked = next.iter().enumerate().filter_map(|(number, id)| {
                let (id, priority) = ((*id)?, self.levels.get(number)?.priority);
                let since = self.places.get(id as usize)?.since;
                Some((self.rank(priority, since), number, id))
            });
            let Some((_, number, id)) = ranked.min() else {
                break;
            };
            found.push(id);
            if let Some(next) = next.get_mut(number) {
                *next = self.links.after(id);
            }
        }
        found
    }

    /// Frees memory; must be called only if no key is ready.
    pub(super) fn shrink(&mut self) {
        self.places = Vec::new();
        self.links.clear();
        self.groups = Groups::default();
    }

    fn rank(&self, priority: i32, since: u64) -> Rank {
        let priority_wide = i128::from(priority);
        let rank = match self.step {
            0 => -priority_wide,
            step => i128::from(since) - priority_wide * i128::from(step),
        };
        (rank, Reverse(priority))
    }

    /// Removes a key. If `turn` is set, the group of the key goes to the end of the turn order.
    fn remove(&mut self, id: u32, turn: bool) {
        let Some(place) = self.places.get(id as usize).copied() else {
            return;
        };
        let Some(level) = self.levels.get_mut(place.level as usize) else {
            return;
        };
        let was_first = level.keys.first() == Some(id);
        level.keys.remove(&mut self.links, id);
        level.len = level.len.saturating_sub(1);
        self.len = self.len.saturating_sub(1);
        if self.fair {
            self.groups.remove(&mut level.turns, place.group, id, turn);
        }
        if !was_first {
            return;
        }
        let (first, priority) = (level.keys.first(), level.priority);
        match first.and_then(|first| self.places.get(first as usize)) {
            Some(first) => {
                let rank = self.rank(priority, first.since);
                self.order.set(place.level, rank);
            }
            None => {
                self.order.remove(place.level);
                if self.by_priority.len() > KEPT_LEVELS {
                    self.by_priority.remove(&priority);
                    self.free_levels.push(place.level);
                }
            }
        }
    }

    /// Returns the index of the level (list) of `priority`, and creates the level if needed.
    fn level(&mut self, priority: i32) -> u32 {
        if let Some(number) = self.by_priority.get(&priority) {
            return *number;
        }
        let level = Level {
            priority,
            ..Level::default()
        };
        let number = match self.free_levels.pop() {
            Some(number) => {
                if let Some(slot) = self.levels.get_mut(number as usize) {
                    *slot = level;
                }
                number
            }
            None => {
                self.levels.push(level);
                u32::try_from(self.levels.len() - 1).unwrap_or(NONE)
            }
        };
        self.by_priority.insert(priority, number);
        number
    }
}

/// Groups of the keys of all levels (priorities). A group without keys is removed.
#[derive(Debug, Default)]
struct Groups {
    groups: Vec<Group>,
    free: Vec<u32>,
    table: HashTable<u32>,
    /// Links of the lists of keys, one list for each group, oldest key first.
    links: Links,
    /// Links of the lists of groups, one list for each level, in the order of turns.
    turns: Links,
}

#[derive(Debug, Default)]
struct Group {
    /// Index of the level (priority), and number of the group that `fair_by` returned.
    name: (u32, u64),
    keys: List,
}

impl Groups {
    /// Adds a key to its group and returns the index of the group. A new group gets the last turn.
    fn push(&mut self, turns: &mut List, name: (u32, u64), id: u32) -> u32 {
        let groups = &self.groups;
        let same = |number: &u32| groups.get(*number as usize).is_some_and(|g| g.name == name);
        let number = match self.table.find(hash(name), same) {
            Some(number) => *number,
            None => self.create(turns, name),
        };
        if let Some(group) = self.groups.get_mut(number as usize) {
            group.keys.push_back(&mut self.links, id);
        }
        number
    }

    fn create(&mut self, turns: &mut List, name: (u32, u64)) -> u32 {
        let group = Group {
            name,
            keys: List::default(),
        };
        let number = match self.free.pop() {
            Some(number) => {
                if let Some(slot) = self.groups.get_mut(number as usize) {
                    *slot = group;
                }
                number
            }
            None => {
                self.groups.push(group);
                u32::try_from(self.groups.len() - 1).unwrap_or(NONE)
            }
        };
        let groups = &self.groups;
        self.table.insert_unique(hash(name), number, |number| {
            groups.get(*number as usize).map_or(0, |g| hash(g.name))
        });
        turns.push_back(&mut self.turns, number);
        number
    }

    /// Returns the oldest key of the group whose turn it is.
    fn next(&self, turns: &List) -> Option<u32> {
        self.groups.get(turns.first()? as usize)?.keys.first()
    }

    fn remove(&mut self, turns: &mut List, number: u32, id: u32, turn: bool) {
        let Some(group) = self.groups.get_mut(number as usize) else {
            return;
        };
        group.keys.remove(&mut self.links, id);
        if group.keys.is_empty() {
            turns.remove(&mut self.turns, number);
            let hash = hash(group.name);
            if let Ok(entry) = self.table.find_entry(hash, |other| *other == number) {
                entry.remove();
            }
            self.free.push(number);
        } else if turn {
            turns.remove(&mut self.turns, number);
            turns.push_back(&mut self.turns, number);
        }
    }
}

/// Returns the hash of a group in a level (priority). The group number is already a hash; only the
/// level is mixed in.
fn hash((level, group): (u32, u64)) -> u64 {
    let mixed = group ^ u64::from(level).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ (mixed >> 32)
}
