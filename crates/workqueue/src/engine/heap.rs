//! Heap of ids, ordered by a key, the least first. Any id can be changed or removed.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::list::NONE;

/// Heap of ids with their keys. Each id is in the heap at most once.
#[derive(Debug)]
pub(super) struct Heap<T> {
    items: Vec<(T, u32)>,
    /// Position of each id in `items`, by id.
    positions: Vec<u32>,
}

impl<T> Default for Heap<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            positions: Vec::new(),
        }
    }
}

impl<T: Ord + Copy> Heap<T> {
    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns the least key and the id that has it.
    pub(super) fn first(&self) -> Option<(T, u32)> {
        self.items.first().copied()
    }

    /// Inserts an id with a key, or changes the key of the id.
    pub(super) fn set(&mut self, id: u32, key: T) {
        let position = match self.position(id) {
            Some(position) => {
                if let Some(item) = self.items.get_mut(position) {
                    item.0 = key;
                }
                position
            }
            None => {
                self.items.push((key, id));
                self.items.len() - 1
            }
        };
        let position = self.rise(position);
        self.sink(position);
    }

    pub(super) fn remove(&mut self, id: u32) {
        let Some(position) = self.position(id) else {
            return;
        };
        self.items.swap_remove(position);
        if let Some(slot) = self.positions.get_mut(id as usize) {
            *slot = NONE;
        }
        if position < self.items.len() {
            let position = self.rise(position);
            self.sink(position);
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns the `limit` least keys with their ids, in order, without visiting the other items.
    pub(super) fn smallest(&self, limit: usize) -> Vec<(T, u32)> {
        let mut found = Vec::new();
        let mut next = BinaryHeap::new();
        let offer = |next: &mut BinaryHeap<_>, position: usize| {
            if let Some(item) = self.items.get(position) {
                next.push(Reverse((*item, position)));
            }
        };
        offer(&mut next, 0);
        while found.len() < limit
            && let Some(Reverse((item, position))) = next.pop()
        {
            found.push(item);
            offer(&mut next, 2 * position + 1);
            offer(&mut next, 2 * position + 2);
        }
        found
    }

    fn position(&self, id: u32) -> Option<usize> {
        let position = *self.positions.get(id as usize)?;
        (position != NONE).then_some(position as usize)
    }

    /// Moves the item at `position` up to its place.
    fn rise(&mut self, mut position: usize) -> usize {
        while position > 0 {
            let parent = (position - 1) / 2;
            if self.key(parent) <= self.key(position) {
                break;
            }
            self.swap(parent, position);
            position = parent;
        }
        self.record_position(position);
        position
    }

    /// Moves the item at `position` down to its place.
    fn sink(&mut self, mut position: usize) {
        loop {
            let (left, right) = (2 * position + 1, 2 * position + 2);
            let Some(mut least) = self.key(left).map(|_| left) else {
                break;
            };
            if self
                .key(right)
                .is_some_and(|key| Some(key) < self.key(left))
            {
                least = right;
            }
            if self.key(position) <= self.key(least) {
                break;
            }
            self.swap(position, least);
            position = least;
        }
        self.record_position(position);
    }

    fn key(&self, position: usize) -> Option<T> {
        self.items.get(position).map(|(key, _)| *key)
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.items.swap(one, other);
        self.record_position(one);
        self.record_position(other);
    }

    /// Stores in `positions` that the id of the item at `position` is there.
    fn record_position(&mut self, position: usize) {
        let Some((_, id)) = self.items.get(position) else {
            return;
        };
        let id = *id as usize;
        if self.positions.len() <= id {
            self.positions.resize(id + 1, NONE);
        }
        if let Some(slot) = self.positions.get_mut(id) {
            *slot = u32::try_from(position).unwrap_or(NONE);
        }
    }
}

#[cfg(test)]
mod tests;
