//! A map of bounded size that forgets what was used least lately.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

#[derive(Debug)]
pub(crate) struct Lru<K, V> {
    /// When each was used last, counted in uses, and what it holds.
    values: HashMap<K, (u64, V)>,
    uses: BTreeMap<u64, K>,
    next: u64,
    capacity: usize,
}

impl<K: Hash + Eq + Clone, V> Lru<K, V> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            values: HashMap::new(),
            uses: BTreeMap::new(),
            next: 0,
            capacity,
        }
    }

    /// The value of a key, made by `new` if there is none; it is now the one used last.
    pub(crate) fn get_or_insert_with(&mut self, key: &K, new: impl FnOnce() -> V) -> &mut V {
        if !self.values.contains_key(key)
            && self.values.len() >= self.capacity
            && let Some((_, oldest)) = self.uses.pop_first()
        {
            self.values.remove(&oldest);
        }
        self.next = self.next.saturating_add(1);
        let next = self.next;
        let (used, value) = self
            .values
            .entry(key.clone())
            .or_insert_with(|| (next, new()));
        self.uses.remove(used);
        self.uses.insert(next, key.clone());
        *used = next;
        value
    }

    /// The value of a key, which does not count as use.
    pub(crate) fn peek(&self, key: &K) -> Option<&V> {
        self.values.get(key).map(|(_, value)| value)
    }

    /// Keeps what `keep` says, which sees those used least lately first.
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
