//! A map of bounded size that removes the least recently used entry when it is full.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// Map of at most `capacity` entries.
#[derive(Debug)]
pub(crate) struct Lru<K, V> {
    /// Values, each with the sequence number of its last use.
    values: HashMap<K, (u64, V)>,
    /// Keys by the sequence number of their last use, the least recent one first.
    uses: BTreeMap<u64, K>,
    /// Sequence number of the last use of any entry.
    last_use: u64,
    capacity: usize,
}

impl<K: Hash + Eq + Clone, V> Lru<K, V> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            values: HashMap::new(),
            uses: BTreeMap::new(),
            last_use: 0,
            capacity,
        }
    }

    /// Returns the value of `key`, after inserting the result of `new` if there is none. Counts as
    /// a use of the entry.
    pub(crate) fn get_or_insert_with(&mut self, key: &K, new: impl FnOnce() -> V) -> &mut V {
        if !self.values.contains_key(key)
            && self.values.len() >= self.capacity
            && let Some((_, oldest)) = self.uses.pop_first()
        {
            self.values.remove(&oldest);
        }
        self.last_use = self.last_use.saturating_add(1);
        let last_use = self.last_use;
        let (used, value) = self
            .values
            .entry(key.clone())
            .or_insert_with(|| (last_use, new()));
        self.uses.remove(used);
        self.uses.insert(last_use, key.clone());
        *used = last_use;
        value
    }

    /// Returns the value of `key`, if there is one. Does not count as a use of the entry.
    pub(crate) fn peek(&self, key: &K) -> Option<&V> {
        self.values.get(key).map(|(_, value)| value)
    }

    /// Removes the entries for which `keep` returns false. `keep` is called for the least recently
    /// used entries first.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&mut V) -> bool) {
        self.uses.retain(|_, key| {
            let is_kept = self
                .values
                .get_mut(key)
                .is_some_and(|(_, value)| keep(value));
            if !is_kept {
                self.values.remove(key);
            }
            is_kept
        });
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        debug_assert_eq!(self.values.len(), self.uses.len());
        self.values.len()
    }
}

#[cfg(test)]
mod tests;
