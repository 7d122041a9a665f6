//! Entries of the keys that wait or are in work, one per key. An entry is found by key with one
//! hash lookup, or by id without one.

use hashbrown::HashTable;
use hashbrown::hash_table;

use super::list::NONE;

/// Number of entries above which the memory of the entries is freed when the queue is empty.
const SHRINK_ABOVE: usize = 4096;

#[derive(Debug)]
pub(super) struct Entry<K, P> {
    pub(super) key: K,
    hash: u64,
    /// Waiting part of the entry; `None` if the key is only in work.
    pub(super) waiting: Option<Waiting<P>>,
    /// Time at which a worker took the key; `None` if the key is not in work.
    pub(super) started: Option<u64>,
}

#[derive(Debug)]
pub(super) struct Waiting<P> {
    pub(super) payload: P,
    pub(super) priority: i32,
    pub(super) place: Place,
    /// Time at which the key became or becomes ready.
    pub(super) ready_at: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The key can be handed out.
    Ready,
    /// The delay of the key has not passed.
    Delayed,
    /// The key was added while in work, and can be handed out once the work on it ends.
    Marked,
}

#[derive(Debug)]
pub(super) struct Entries<K, P> {
    slots: Vec<Option<Entry<K, P>>>,
    free: Vec<u32>,
    table: HashTable<u32>,
}

impl<K, P> Default for Entries<K, P> {
    fn default() -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            table: HashTable::new(),
        }
    }
}

impl<K: Eq, P> Entries<K, P> {
    pub(super) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    pub(super) fn get(&self, id: u32) -> Option<&Entry<K, P>> {
        self.slots.get(id as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, id: u32) -> Option<&mut Entry<K, P>> {
        self.slots.get_mut(id as usize)?.as_mut()
    }

    /// Returns the id of the entry of `key`, and creates the entry if needed. The id is `NONE` only
    /// if all ids are used, that is, with 2^32 keys.
    pub(super) fn entry(&mut self, hash: u64, key: K) -> u32 {
        let slots = &self.slots;
        let at = |id: &u32| slots.get(*id as usize).and_then(Option::as_ref);
        let found = self.table.entry(
            hash,
            |id| at(id).is_some_and(|entry| entry.hash == hash && entry.key == key),
            |id| at(id).map_or(0, |entry| entry.hash),
        );
        match found {
            hash_table::Entry::Occupied(found) => *found.get(),
            hash_table::Entry::Vacant(vacant) => {
                let entry = Entry {
                    key,
                    hash,
                    waiting: None,
                    started: None,
                };
                let id = match self.free.pop() {
                    Some(id) => id,
                    None => match u32::try_from(slots.len()) {
                        Ok(id) if id != NONE => id,
                        _ => return NONE,
                    },
                };
                vacant.insert(id);
                match self.slots.get_mut(id as usize) {
                    Some(slot) => *slot = Some(entry),
                    None => self.slots.push(Some(entry)),
                }
                id
            }
        }
    }

    pub(super) fn remove(&mut self, id: u32) {
        let Some(entry) = self.slots.get_mut(id as usize).and_then(Option::take) else {
            return;
        };
        if let Ok(found) = self.table.find_entry(entry.hash, |other| *other == id) {
            found.remove();
        }
        self.free.push(id);
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    /// Frees the memory of the entries if it is large and the queue is empty. Returns whether
    /// memory was freed.
    pub(super) fn shrink(&mut self) -> bool {
        let shrinks = self.is_empty() && self.slots.capacity() > SHRINK_ABOVE;
        if shrinks {
            *self = Self::default();
        }
        shrinks
    }
}
