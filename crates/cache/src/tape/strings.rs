//! Strings that the objects of one kind share.
//!
//! [`Strings`] only grows, so that tapes (stored objects) are read without a lock while another one
//! is written. The [`Interner`] is the write side. Field names are shared from their first
//! occurrence, up to a limit. Values are shared from their first occurrence in a second object. So
//! values specific to one object, such as its name, are never shared, however often the object
//! changes. To free unused strings, the store starts a new set of strings (a generation) and moves
//! all objects to it.

use std::hash::BuildHasher;
use std::sync::OnceLock;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// Number of strings in the first chunk; each further chunk has twice as many.
const FIRST: u32 = 64;
const CHUNKS: usize = 24;
/// Largest number of shared names. Further names are probably user data, such as label keys, and
/// are written into the tapes (stored objects).
const NAMES_MAX: u32 = 4096;
/// Largest length in bytes of a field name that can be shared.
const NAME_LENGTH_MAX: usize = 128;
/// Lengths in bytes of the values that can be shared.
const VALUE_LENGTHS: std::ops::RangeInclusive<usize> = 3..=256;
/// Value of a prediction if no name or value is expected.
const NONE: u32 = u32::MAX;

/// Append-only list of strings that can be read while it grows.
#[derive(Debug, Default)]
pub(crate) struct Strings {
    chunks: [OnceLock<Chunk>; CHUNKS],
}

type Chunk = Box<[OnceLock<Box<str>>]>;

impl Strings {
    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<&str> {
        let (chunk, at) = place(id)?;
        let string = self.chunks.get(chunk)?.get()?.get(at)?.get()?;
        Some(string)
    }

    fn set(&self, id: u32, string: &str) {
        let Some((chunk, at)) = place(id) else { return };
        let Some(slot) = self.chunks.get(chunk) else {
            return;
        };
        let strings = slot.get_or_init(|| {
            let size = (FIRST as usize) << chunk;
            (0..size).map(|_| OnceLock::new()).collect()
        });
        if let Some(slot) = strings.get(at) {
            // Each number is assigned once.
            let _ = slot.set(string.into());
        }
    }
}

/// Returns the index of the chunk that has the string `id`, and the position of the string in the
/// chunk.
#[inline]
fn place(id: u32) -> Option<(usize, usize)> {
    let scaled = id.checked_add(FIRST)? / FIRST;
    let chunk = scaled.ilog2();
    let first = FIRST.checked_mul((1u32 << chunk) - 1)?;
    Some((chunk as usize, id.checked_sub(first)? as usize))
}

/// Field names and values that the objects of one kind share. From time to time the store replaces
/// the vocabulary by a new one, to free unused strings.
#[derive(Debug, Default)]
pub(crate) struct Vocabulary {
    pub(crate) names: Strings,
    pub(crate) values: Strings,
}

/// Write side of a [`Vocabulary`]: assigns IDs to field names and values.
#[derive(Debug)]
pub(crate) struct Interner {
    hasher: RandomState,
    names: StringIds,
    values: StringIds,
    /// ID of the name that last followed each name, as a prediction of the next name. Most objects
    /// of a kind have the same fields in the same order.
    next_name: Vec<u32>,
    /// ID of the last value of each name. Together with `next_value`, the last value predicts the
    /// next value of the name.
    last_value: Vec<u32>,
    /// ID of the value that last followed each value of the same name. A name that occurs several
    /// times in an object usually has its values in the same sequence.
    next_value: Vec<u32>,
    seen: Seen,
}

/// IDs of the shared names, or of the shared values, found by the hash of the string.
#[derive(Debug, Default)]
struct StringIds {
    ids: HashTable<u32>,
    count: u32,
    bytes: usize,
}

impl Interner {
    pub(crate) fn new() -> Self {
        Self {
            hasher: RandomState::default(),
            names: StringIds::default(),
            values: StringIds::default(),
            next_name: Vec::new(),
            last_value: Vec::new(),
            next_value: Vec::new(),
            seen: Seen::default(),
        }
    }

    /// Returns the approximate memory of the strings, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let entries = self.names.count.saturating_add(self.values.count) as usize;
        // Each string has an entry in a chunk, an allocation, and a number in the table.
        self.names.bytes + self.values.bytes + entries * 56 + self.seen.slots.len() * 4
    }

    /// Returns the ID of the field name that is expected after the name `last`.
    pub(crate) fn expected(&self, last: u32) -> Option<u32> {
        let next = self.next_name.get(last as usize).copied()?;
        (next != NONE).then_some(next)
    }

    /// Returns the ID of the field name `name`, which follows the name `last`. `None` if the name
    /// is not shared.
    pub(crate) fn name(&mut self, vocabulary: &Vocabulary, last: u32, name: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(name);
        let is_same = |id: &u32| vocabulary.names.get(*id) == Some(name);
        let id = match self.names.ids.find(hash, is_same) {
            Some(id) => *id,
            None if self.names.count >= NAMES_MAX || name.len() > NAME_LENGTH_MAX => return None,
            None => {
                let hasher = &self.hasher;
                let id = self.names.add(&vocabulary.names, hash, name, |id| {
                    hasher.hash_one(vocabulary.names.get(id).unwrap_or_default())
                });
                self.next_name.push(NONE);
                self.last_value.push(NONE);
                id
            }
        };
        // The expected name is compared with the raw JSON text, in which a backslash starts an
        // escape.
        if let Some(next) = self.next_name.get_mut(last as usize)
            && !name.contains('\\')
        {
            *next = id;
        }
        Some(id)
    }

    /// Returns the ID of a value of the field `name`; `None` if the value is not shared. `object`
    /// is a hash of the object's key.
    pub(crate) fn value(
        &mut self,
        vocabulary: &Vocabulary,
        name: u32,
        value: &str,
        object: u32,
    ) -> Option<u32> {
        if !VALUE_LENGTHS.contains(&value.len()) {
            return None;
        }
        let last = self.last_value.get(name as usize).copied().unwrap_or(NONE);
        let expected = self.next_value.get(last as usize).copied().unwrap_or(NONE);
        if expected != NONE && vocabulary.values.get(expected) == Some(value) {
            self.record_value(name, NONE, expected);
            return Some(expected);
        }
        let hash = self.hasher.hash_one(value);
        let is_same = |id: &u32| vocabulary.values.get(*id) == Some(value);
        let id = match self.values.ids.find(hash, is_same) {
            Some(id) => *id,
            None if !self.seen.insert(hash, object) => return None,
            None => {
                let hasher = &self.hasher;
                let rehash = |id| hasher.hash_one(vocabulary.values.get(id).unwrap_or_default());
                let id = self.values.add(&vocabulary.values, hash, value, rehash);
                self.next_value.push(NONE);
                id
            }
        };
        self.record_value(name, last, id);
        Some(id)
    }

    /// Records that the field `name` has the value `id`, and that its previous value was `last`.
    fn record_value(&mut self, name: u32, last: u32, id: u32) {
        if let Some(next) = self.next_value.get_mut(last as usize) {
            *next = id;
        }
        if let Some(last) = self.last_value.get_mut(name as usize) {
            *last = id;
        }
    }
}

impl StringIds {
    fn add(
        &mut self,
        strings: &Strings,
        hash: u64,
        string: &str,
        rehash: impl Fn(u32) -> u64,
    ) -> u32 {
        let id = self.count;
        strings.set(id, string);
        self.ids.insert_unique(hash, id, |id| rehash(*id));
        self.count = self.count.saturating_add(1);
        self.bytes += string.len();
        id
    }
}

/// Values seen recently, and the object in which each value was seen. A table of limited size, in
/// which new entries overwrite old ones.
#[derive(Debug, Default)]
struct Seen {
    slots: Box<[u32]>,
    /// Number of values added since the table last grew.
    entered: usize,
}

const SEEN_MIN: usize = 1 << 10;
const SEEN_MAX: usize = 1 << 17;

impl Seen {
    /// Reports whether the value with this hash was recently seen in another object, and adds the
    /// value to the table.
    fn insert(&mut self, hash: u64, object: u32) -> bool {
        if self.entered * 2 >= self.slots.len() && self.slots.len() < SEEN_MAX {
            // The entries so far are dropped, which delays sharing by one occurrence.
            let size = (self.slots.len() * 4).clamp(SEEN_MIN, SEEN_MAX);
            self.slots = vec![0; size].into_boxed_slice();
            self.entered = 0;
        }
        let at = hash as usize & (self.slots.len() - 1);
        let Some(slot) = self.slots.get_mut(at) else {
            return false;
        };
        // 16 bits of the value, 16 bits of the object, and never 0.
        let value = (hash >> 40) as u32 & 0xffff_0000;
        let entered = value | (object & 0xffff) | 1;
        if *slot & 0xffff_0000 == value && *slot != 0 {
            return *slot != entered;
        }
        *slot = entered;
        self.entered += 1;
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_dense() {
        let mut expected =
            (0..5usize).flat_map(|chunk| (0..64 << chunk).map(move |at| (chunk, at)));
        for id in 0..1984 {
            assert_eq!(place(id), expected.next(), "{id}");
        }
    }

    #[test]
    fn values_are_shared_from_the_second_object_on() {
        let (vocabulary, mut interner) = (Vocabulary::default(), Interner::new());
        let mut value = |text, object| interner.value(&vocabulary, 0, text, object);
        assert_eq!(value("node-a", 2), None);
        assert_eq!(value("node-a", 2), None, "the same object again");
        assert_eq!(value("node-a", 4), Some(0));
        assert_eq!(value("node-a", 2), Some(0));
        assert_eq!(value("ab", 2), None);
        assert_eq!(value("ab", 4), None, "too short to be worth it");
        assert_eq!(vocabulary.values.get(0), Some("node-a"));
        assert_eq!(vocabulary.values.get(1), None);
    }

    #[test]
    fn names_are_shared_at_once_up_to_a_bound() {
        let (vocabulary, mut interner) = (Vocabulary::default(), Interner::new());
        for n in 0..NAMES_MAX {
            assert_eq!(interner.name(&vocabulary, NONE, &format!("n{n}")), Some(n));
        }
        assert_eq!(interner.name(&vocabulary, NONE, "one more"), None);
        assert_eq!(interner.name(&vocabulary, NONE, "n7"), Some(7));
        assert_eq!(interner.name(&vocabulary, 7, "n9"), Some(9));
        assert_eq!(interner.expected(7), Some(9));
        assert_eq!(vocabulary.names.get(4095), Some("n4095"));
    }
}
