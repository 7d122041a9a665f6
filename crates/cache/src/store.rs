//! Store of the objects of one kind by key, with their indexes. The store is synchronous and does
//! no I/O. Every change returns the previous object.

mod overlay;

use std::collections::VecDeque;
use std::hash::BuildHasher;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use opkit_client::ObjectKey;

#[cfg(test)]
pub(crate) use self::overlay::ABSENT_MAX;
pub(crate) use self::overlay::{Fault, Listed, ObjectVersion, Overlay};
use crate::Stored;
use crate::index::{HashIndex, Index, Indexed};
use crate::record::Origin;
use crate::tape::strings::Interner;

/// Value of `Slot::listed` for an object that no list has contained.
const UNLISTED: u32 = 0;
/// Number of objects that each write re-encodes with a new set of shared strings.
const MOVED_PER_WRITE: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct Store {
    slots: Vec<Slot>,
    free: Vec<u32>,
    by_key: HashTable<u32>,
    hasher: RandomState,
    by_owner: HashIndex,
    by_namespace: HashIndex,
    indexes: Vec<Indexed>,
    /// Approximate memory of the stored objects, in bytes.
    bytes: usize,
    /// Slots whose object may have a body to evict, in the order in which the eviction checks them.
    /// Slots without a body are not checked again. `None` if bodies are never evicted.
    bodies: Option<VecDeque<u32>>,
    /// Next slot to re-encode with a new set of shared strings; `None` if no re-encoding is in
    /// progress.
    move_cursor: Option<usize>,
    /// Number of slots that the eviction has checked.
    #[cfg(test)]
    checked_slots: u64,
}

#[derive(Debug)]
struct Slot {
    stored: Option<Stored>,
    /// Number of the last list that contained the object.
    listed: u32,
    /// Whether the slot is in `bodies`.
    in_bodies: bool,
}

impl Store {
    pub(crate) fn get(&self, key: &ObjectKey) -> Option<&Stored> {
        self.stored(self.find(key)?)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Returns the approximate memory of all objects, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Stored> {
        self.slots.iter().filter_map(|slot| slot.stored.as_ref())
    }

    /// Returns the first object at or after the place `from`, and its place. An object keeps its
    /// place until it is removed.
    pub(crate) fn first_from(&self, from: usize) -> Option<(usize, &Stored)> {
        let slots = self.slots.get(from..)?;
        let mut places = (from..).zip(slots);
        places.find_map(|(place, slot)| Some((place, slot.stored.as_ref()?)))
    }

    /// Returns the objects that have an owner reference to `uid`.
    pub(crate) fn owned_by<'a>(&'a self, uid: &'a str) -> impl Iterator<Item = &'a Stored> {
        let slots = self.by_owner.slots(self.hasher.hash_one(uid));
        let stored = slots.filter_map(|slot| self.stored(slot));
        stored.filter(move |stored| stored.meta().owners().iter().any(|owner| owner.uid == uid))
    }

    /// Returns the objects of a namespace.
    pub(crate) fn in_namespace<'a>(
        &'a self,
        namespace: &'a str,
    ) -> impl Iterator<Item = &'a Stored> {
        let slots = self.by_namespace.slots(self.hasher.hash_one(namespace));
        let stored = slots.filter_map(|slot| self.stored(slot));
        stored.filter(move |stored| stored.namespace().as_deref() == Some(namespace))
    }

    /// Returns the objects that have `value` in an index; `None` if there is no such index.
    pub(crate) fn by_index(
        &self,
        index: &str,
        value: &str,
    ) -> Option<impl Iterator<Item = &Stored>> {
        let slots = self.index(index)?.slots(value);
        Some(slots.filter_map(|slot| self.stored(slot)))
    }

    /// Returns the values of an index; `None` if there is no such index.
    pub(crate) fn index_values(&self, index: &str) -> Option<impl Iterator<Item = &str>> {
        Some(self.index(index)?.values())
    }

    pub(crate) fn has_index(&self, name: &str) -> bool {
        self.index(name).is_some()
    }

    fn index(&self, name: &str) -> Option<&Indexed> {
        self.indexes
            .iter()
            .find(|indexed| indexed.index.name == name)
    }

    /// Adds an index and fills it with the stored objects.
    pub(crate) fn add_index(&mut self, index: Index) {
        let mut indexed = Indexed::new(index);
        for (slot, stored) in self.numbered() {
            indexed.set(slot, None, Some(stored));
        }
        self.indexes.push(indexed);
    }

    fn numbered(&self) -> impl Iterator<Item = (u32, &Stored)> {
        let slots = (0u32..).zip(&self.slots);
        slots.filter_map(|(number, slot)| Some((number, slot.stored.as_ref()?)))
    }

    /// Stores an object and returns the previous object with the same key.
    pub(crate) fn insert(&mut self, stored: Stored) -> Option<Stored> {
        let hash = self.hash(stored.namespace().as_deref(), &stored.name());
        let found = self
            .by_key
            .find(hash, |slot| self.has_key_of(*slot, &stored))
            .copied();
        let slot = match found {
            Some(slot) => slot,
            None => {
                let slot = self.free.pop().unwrap_or_else(|| {
                    self.slots.push(Slot {
                        stored: None,
                        listed: UNLISTED,
                        in_bodies: false,
                    });
                    // More than 2^32 objects do not fit into memory.
                    u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
                });
                let (slots, hasher) = (&self.slots, &self.hasher);
                self.by_key.insert_unique(hash, slot, |slot| {
                    let stored = slots
                        .get(*slot as usize)
                        .and_then(|slot| slot.stored.as_ref());
                    // The object that is being inserted is not in its slot yet, and is not hashed
                    // again.
                    stored.map_or(hash, |stored| {
                        key_hash(hasher, stored.namespace().as_deref(), &stored.name())
                    })
                });
                slot
            }
        };
        self.set(slot, Some(stored))
    }

    /// Removes an object and returns it.
    pub(crate) fn remove(&mut self, key: &ObjectKey) -> Option<Stored> {
        let slot = self.find(key)?;
        self.remove_slot(slot)
    }

    fn remove_slot(&mut self, slot: u32) -> Option<Stored> {
        let stored = self.stored(slot)?;
        let hash = self.hash(stored.namespace().as_deref(), &stored.name());
        if let Ok(entry) = self.by_key.find_entry(hash, |found| *found == slot) {
            entry.remove();
        }
        let old = self.set(slot, None);
        if let Some(slot) = self.slots.get_mut(slot as usize) {
            slot.listed = UNLISTED;
        }
        self.free.push(slot);
        old
    }

    /// Records that the list with the number `list` contained an object.
    pub(crate) fn mark(&mut self, key: &ObjectKey, list: u32) {
        if let Some(slot) = self.find(key)
            && let Some(slot) = self.slots.get_mut(slot as usize)
        {
            slot.listed = list;
        }
    }

    /// Reports whether the list with the number `list` contained the object.
    pub(crate) fn is_marked(&self, key: &ObjectKey, list: u32) -> bool {
        let slot = self
            .find(key)
            .and_then(|slot| self.slots.get(slot as usize));
        slot.is_some_and(|slot| slot.listed == list)
    }

    /// Removes the objects that `covers` selects and that the complete list with the number `list`
    /// did not contain. Returns the removed objects.
    pub(crate) fn sweep(&mut self, list: u32, covers: impl Fn(&Stored) -> bool) -> Vec<Stored> {
        let unlisted = |(number, slot): (u32, &Slot)| {
            let stored = slot.stored.as_ref()?;
            (slot.listed != list && covers(stored)).then_some(number)
        };
        let removed: Vec<u32> = (0u32..).zip(&self.slots).filter_map(unlisted).collect();
        removed
            .into_iter()
            .filter_map(|slot| self.remove_slot(slot))
            .collect()
    }

    /// Removes the objects that `which` selects, and returns them.
    pub(crate) fn take(&mut self, which: impl Fn(&Stored) -> bool) -> Vec<Stored> {
        let taken = self.numbered().filter(|(_, stored)| which(stored));
        let taken: Vec<u32> = taken.map(|(slot, _)| slot).collect();
        taken
            .into_iter()
            .filter_map(|slot| self.remove_slot(slot))
            .collect()
    }

    /// Enables [`evict`](Self::evict): tracks from now on which objects have a body to evict.
    pub(crate) fn evictable(mut self) -> Self {
        self.bodies.get_or_insert_default();
        self
    }

    /// Drops the bodies of objects that were not read recently, until the memory of the store is at
    /// most `budget` bytes. Returns the number of evicted bodies.
    pub(crate) fn evict(&mut self, budget: usize) -> usize {
        let Some(bodies) = &mut self.bodies else {
            return 0;
        };
        let mut evicted = 0;
        // Two rounds: the first one spares objects that were read recently.
        let mut steps = bodies.len() * 2;
        while self.bytes > budget && steps > 0 {
            steps -= 1;
            #[cfg(test)]
            {
                self.checked_slots += 1;
            }
            let Some(number) = bodies.pop_front() else {
                break;
            };
            let Some(slot) = self.slots.get_mut(number as usize) else {
                continue;
            };
            if slot.stored.as_ref().is_some_and(Stored::take_hot) {
                bodies.push_back(number);
                continue;
            }
            slot.in_bodies = false;
            if let Some(stored) = &slot.stored
                && let Some(rest) = stored.evicted()
            {
                self.bytes = self.bytes - stored.bytes() + rest.bytes();
                slot.stored = Some(rest);
                evicted += 1;
            }
        }
        evicted
    }

    /// Returns the number of slots that the eviction has checked.
    #[cfg(test)]
    pub(crate) fn checked_slots(&self) -> u64 {
        self.checked_slots
    }

    /// Starts to re-encode all objects with a new set of shared strings;
    /// [`move_some`](Self::move_some) continues.
    pub(crate) fn begin_move(&mut self) {
        self.move_cursor = Some(0);
    }

    /// Re-encodes some objects with the shared strings of `origin`. Returns whether more objects
    /// remain.
    pub(crate) fn move_some(&mut self, origin: &Arc<Origin>, interner: &mut Interner) -> bool {
        let Some(from) = self.move_cursor else {
            return false;
        };
        let slots = self.slots.get_mut(from..).unwrap_or_default();
        let next = from + MOVED_PER_WRITE;
        for slot in slots.iter_mut().take(MOVED_PER_WRITE) {
            if let Some(stored) = slot
                .stored
                .as_ref()
                .filter(|stored| !stored.has_origin(origin))
                && let Some(moved) = stored.moved_to(origin, interner)
            {
                self.bytes = self.bytes - stored.bytes() + moved.bytes();
                slot.stored = Some(moved);
            }
        }
        self.move_cursor = (next < self.slots.len()).then_some(next);
        self.move_cursor.is_some()
    }

    fn set(&mut self, slot: u32, stored: Option<Stored>) -> Option<Stored> {
        let place = self.slots.get_mut(slot as usize)?;
        for indexed in &mut self.indexes {
            indexed.set(slot, place.stored.as_ref(), stored.as_ref());
        }
        if let Some(bodies) = &mut self.bodies
            && stored.is_some()
            && !std::mem::replace(&mut place.in_bodies, true)
        {
            bodies.push_back(slot);
        }
        let old = std::mem::replace(&mut place.stored, stored);
        let new = place.stored.as_ref();
        let owners = |stored: Option<&Stored>| -> Vec<u64> {
            let owners = stored
                .map(|stored| stored.meta().owners())
                .unwrap_or_default();
            owners
                .iter()
                .map(|owner| self.hasher.hash_one(&*owner.uid))
                .collect()
        };
        let (before, after) = (owners(old.as_ref()), owners(new));
        if before != after {
            before
                .into_iter()
                .for_each(|owner| self.by_owner.remove(owner, slot));
            after
                .into_iter()
                .for_each(|owner| self.by_owner.insert(owner, slot));
        }
        if old.is_some() != new.is_some() {
            let either = new.or(old.as_ref());
            if let Some(namespace) = either.and_then(|stored| stored.namespace()) {
                let namespace = self.hasher.hash_one(&*namespace);
                match new {
                    Some(_) => self.by_namespace.insert(namespace, slot),
                    None => self.by_namespace.remove(namespace, slot),
                }
            }
        }
        let size = |stored: Option<&Stored>| stored.map_or(0, Stored::bytes);
        self.bytes = self.bytes + size(new) - size(old.as_ref());
        old
    }

    fn stored(&self, slot: u32) -> Option<&Stored> {
        self.slots.get(slot as usize)?.stored.as_ref()
    }

    fn find(&self, key: &ObjectKey) -> Option<u32> {
        let hash = self.hash(key.namespace.as_deref(), &key.name);
        let found = self.by_key.find(hash, |slot| {
            self.stored(*slot).is_some_and(|stored| {
                stored.name() == key.name
                    && stored.namespace().as_deref() == key.namespace.as_deref()
            })
        });
        found.copied()
    }

    fn has_key_of(&self, slot: u32, other: &Stored) -> bool {
        self.stored(slot).is_some_and(|stored| {
            stored.name() == other.name() && stored.namespace() == other.namespace()
        })
    }

    fn hash(&self, namespace: Option<&str>, name: &str) -> u64 {
        key_hash(&self.hasher, namespace, name)
    }
}

fn key_hash(hasher: &RandomState, namespace: Option<&str>, name: &str) -> u64 {
    hasher.hash_one((namespace.unwrap_or_default(), name))
}

/// Parses a resourceVersion as a number, so that versions can be compared (KEP-5504). Returns
/// `None` if the resourceVersion is not a number.
pub(crate) fn number(version: Option<&str>) -> Option<u64> {
    version?.parse().ok()
}
