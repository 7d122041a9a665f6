//! Strings that the objects of one kind share.
//!
//! [`Strings`] only grows, so that tapes are read without a lock while another is written; the
//! [`Interner`] is the writing side. Names of fields are shared from the first sight on, up to a
//! bound; values from the second sight on, in another object: what is an object's own, such as
//! its name, is never shared however often it changes. What nobody uses any more goes when the
//! store begins a new generation of strings.

use std::hash::BuildHasher;
use std::sync::OnceLock;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

/// The strings of the first chunk; each further chunk has twice as many.
const FIRST: u32 = 64;
const CHUNKS: usize = 24;
/// Names beyond this many stand in the tapes themselves: data of users, not fields.
const NAMES_MAX: u32 = 4096;
/// Names and values outside of these lengths are never shared.
const NAME_LENGTH_MAX: usize = 128;
const VALUE_LENGTHS: std::ops::RangeInclusive<usize> = 3..=256;
/// No name, no value: for predictions.
const NONE: u32 = u32::MAX;

/// An append-only list of strings that can be read while it grows.
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
            // Each number is given out once.
            let _ = slot.set(string.into());
        }
    }
}

/// Which chunk a string is in, and where in it.
#[inline]
fn place(id: u32) -> Option<(usize, usize)> {
    let scaled = id.checked_add(FIRST)? / FIRST;
    let chunk = scaled.ilog2();
    let first = FIRST.checked_mul((1u32 << chunk) - 1)?;
    Some((chunk as usize, id.checked_sub(first)? as usize))
}

/// The strings of one generation: names of fields, and values.
#[derive(Debug, Default)]
pub(crate) struct Vocabulary {
    pub(crate) names: Strings,
    pub(crate) values: Strings,
}

/// The writing side of a [`Vocabulary`].
#[derive(Debug)]
pub(crate) struct Interner {
    hasher: RandomState,
    names: Side,
    values: Side,
    /// The name that came after each name last: most objects of a kind are alike.
    next_name: Vec<u32>,
    /// The value that each name had last, and the value that came after each value under the same
    /// name: a name of which there are several in an object has its values in turn.
    last_value: Vec<u32>,
    next_value: Vec<u32>,
    seen: Seen,
}

/// The numbers of the strings of one side, by hash.
#[derive(Debug, Default)]
struct Side {
    ids: HashTable<u32>,
    count: u32,
    bytes: usize,
}

impl Interner {
    pub(crate) fn new() -> Self {
        Self {
            hasher: RandomState::default(),
            names: Side::default(),
            values: Side::default(),
            next_name: Vec::new(),
            last_value: Vec::new(),
            next_value: Vec::new(),
            seen: Seen::default(),
        }
    }

    /// The memory of the strings, as far as one can tell.
    pub(crate) fn bytes(&self) -> usize {
        let entries = self.names.count.saturating_add(self.values.count) as usize;
        // A string has its place in a chunk, its allocation, and its number in the table.
        self.names.bytes + self.values.bytes + entries * 56 + self.seen.slots.len() * 4
    }

    /// The name that is expected after `last`.
    pub(crate) fn expected(&self, last: u32) -> Option<u32> {
        let next = self.next_name.get(last as usize).copied()?;
        (next != NONE).then_some(next)
    }

    /// The number of a name that follows `last`, if names of its kind are shared.
    pub(crate) fn name(&mut self, vocabulary: &Vocabulary, last: u32, name: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(name);
        let same = |id: &u32| vocabulary.names.get(*id) == Some(name);
        let id = match self.names.ids.find(hash, same) {
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
        // What is expected is compared with the text as it came, in which a backslash is an escape.
        if let Some(next) = self.next_name.get_mut(last as usize)
            && !name.contains('\\')
        {
            *next = id;
        }
        Some(id)
    }

    /// The number of a value of the field `name`, if it is shared. `object` says which object it
    /// is of: any number that differs from that of most others.
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
            self.note_value(name, NONE, expected);
            return Some(expected);
        }
        let hash = self.hasher.hash_one(value);
        let same = |id: &u32| vocabulary.values.get(*id) == Some(value);
        let id = match self.values.ids.find(hash, same) {
            Some(id) => *id,
            None if !self.seen.elsewhere(hash, object) => return None,
            None => {
                let hasher = &self.hasher;
                let rehash = |id| hasher.hash_one(vocabulary.values.get(id).unwrap_or_default());
                let id = self.values.add(&vocabulary.values, hash, value, rehash);
                self.next_value.push(NONE);
                id
            }
        };
        self.note_value(name, last, id);
        Some(id)
    }

    /// Notes that `name` has the value `id` now, after `last`.
    fn note_value(&mut self, name: u32, last: u32, id: u32) {
        if let Some(next) = self.next_value.get_mut(last as usize) {
            *next = id;
        }
        if let Some(last) = self.last_value.get_mut(name as usize) {
            *last = id;
        }
    }
}

impl Side {
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

/// Which values were seen lately, and in which object: a small table that forgets.
#[derive(Debug, Default)]
struct Seen {
    slots: Box<[u32]>,
    /// How many values were noted since it last grew.
    noted: usize,
}

const SEEN_MIN: usize = 1 << 10;
const SEEN_MAX: usize = 1 << 17;

impl Seen {
    /// Whether the value with this hash was seen in another object; notes it.
    fn elsewhere(&mut self, hash: u64, object: u32) -> bool {
        if self.noted * 2 >= self.slots.len() && self.slots.len() < SEEN_MAX {
            // What was noted so far is forgotten: it costs one more sight.
            let size = (self.slots.len() * 4).clamp(SEEN_MIN, SEEN_MAX);
            self.slots = vec![0; size].into_boxed_slice();
            self.noted = 0;
        }
        let at = hash as usize & (self.slots.len() - 1);
        let Some(slot) = self.slots.get_mut(at) else {
            return false;
        };
        // 16 bits of the value, 16 of the object, and never 0.
        let value = (hash >> 40) as u32 & 0xffff_0000;
        let noted = value | (object & 0xffff) | 1;
        if *slot & 0xffff_0000 == value && *slot != 0 {
            return *slot != noted;
        }
        *slot = noted;
        self.noted += 1;
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
