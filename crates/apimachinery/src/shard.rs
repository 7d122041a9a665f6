//! Shards: the objects of a kind, split by a hash of their uid or namespace.
//!
//! A list or watch with `shardSelector` returns only the objects whose hash is in the given ranges
//! (feature gate `ShardedListAndWatch`, alpha and off in Kubernetes 1.36). A server without the
//! feature ignores the parameter and returns all objects. A server with the feature sets
//! `metadata.shardInfo`, but only in full lists of built-in kinds: not for custom resources, not in
//! lists of metadata and not in watches. A client therefore does not always know whether the server
//! has filtered the objects, and filters them again by the same hash; this costs one hash per
//! object.

mod parser;

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

pub use crate::error::ShardError;

/// Exclusive end of the range that contains all hashes: 2^64.
const END: u128 = 1 << 64;

/// Returns the hash of a uid or namespace, by which objects are split: 64-bit FNV-1a.
///
/// # Examples
///
/// ```
/// assert_eq!(opkit_apimachinery::shard::hash("foobar"), 0x85944171f73967e8);
/// ```
pub fn hash(value: &str) -> u64 {
    value.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Returns the number of the slot, of `of` slots of equal size, that contains a hash. Slots are
/// counted from 0. Slot `index` is the part that [`ShardSelector::part`] selects.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::shard::{hash, slot};
///
/// assert_eq!(slot(0, 8), 0);
/// assert_eq!(slot(u64::MAX, 8), 7);
/// assert_eq!(slot(hash("default"), 1), 0);
/// ```
pub fn slot(hash: u64, of: u32) -> u32 {
    // The edge before a slot is rounded down, so a slot can begin one hash early.
    let scaled = (u128::from(hash) + 1) * u128::from(of.max(1)) - 1;
    u32::try_from(scaled / END).unwrap_or(u32::MAX)
}

/// The field whose hash determines the shard of an object.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::shard::ShardKey;
///
/// assert_eq!(ShardKey::Uid.to_string(), "object.metadata.uid");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ShardKey {
    /// The uid of the object: the objects of a namespace are distributed over all shards.
    Uid,
    /// The namespace of the object: all objects of a namespace are in the same shard.
    Namespace,
}

impl fmt::Display for ShardKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Uid => "object.metadata.uid",
            Self::Namespace => "object.metadata.namespace",
        })
    }
}

/// A range of hashes from `start` (inclusive) to `end` (exclusive).
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::shard::ShardRange;
///
/// let upper = ShardRange::new(1 << 63, 1 << 64);
/// assert!(upper.contains(u64::MAX) && !upper.contains(0));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ShardRange {
    start: u128,
    end: u128,
}

impl ShardRange {
    /// Creates a range from `start` (inclusive) to `end` (exclusive). `end` is at most 2^64.
    pub fn new(start: u64, end: u128) -> Self {
        Self {
            start: start.into(),
            end: end.min(END),
        }
    }

    /// Returns the first hash of the range.
    pub fn start(self) -> u64 {
        u64::try_from(self.start).unwrap_or(u64::MAX)
    }

    /// Reports whether a hash is in the range.
    pub fn contains(self, hash: u64) -> bool {
        (self.start..self.end).contains(&hash.into())
    }
}

/// The `shardSelector` of a list or watch, which selects the objects of one shard.
///
/// # Examples
///
/// ```
/// use opkit_apimachinery::shard::{ShardKey, ShardSelector};
///
/// let halves = [0, 1].map(|index| ShardSelector::part(ShardKey::Uid, index, 2));
/// let uid = "2f2352df-824c-4774-9e99-0c1a6fca3e24";
/// assert_eq!(halves.iter().filter(|half| half.matches(uid, "default")).count(), 1);
/// assert_eq!(
///     halves[0].to_string(),
///     "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')"
/// );
/// assert_eq!(halves[0].to_string().parse().as_ref(), Ok(&halves[0]));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ShardSelector {
    key: ShardKey,
    ranges: Vec<ShardRange>,
}

impl ShardSelector {
    /// Creates a selector of the objects whose hash is in one of `ranges`.
    pub fn new(key: ShardKey, ranges: Vec<ShardRange>) -> Self {
        Self { key, ranges }
    }

    /// Creates a selector of part number `index` of `of` equal parts, where `index` counts from 0.
    /// Together the parts contain every object exactly once.
    pub fn part(key: ShardKey, index: u32, of: u32) -> Self {
        let (index, of) = (u128::from(index), u128::from(of.max(1)));
        let range = ShardRange {
            start: edge(index, of),
            end: edge(index + 1, of),
        };
        Self::new(key, vec![range])
    }

    /// Creates a selector of the given slots of `of` slots of equal size. Slots are counted from 0,
    /// as by [`slot`]. Adjacent slots become one range. The selector of no slots is
    /// [empty](Self::is_empty).
    ///
    /// # Examples
    ///
    /// ```
    /// use opkit_apimachinery::shard::{ShardKey, ShardSelector};
    ///
    /// let half = ShardSelector::slots(ShardKey::Uid, [2, 3], 4);
    /// assert_eq!(half, ShardSelector::part(ShardKey::Uid, 1, 2));
    /// assert!(ShardSelector::slots(ShardKey::Uid, [], 4).is_empty());
    /// ```
    pub fn slots(key: ShardKey, slots: impl IntoIterator<Item = u32>, of: u32) -> Self {
        let slots: BTreeSet<u32> = slots.into_iter().filter(|slot| *slot < of).collect();
        let mut ranges: Vec<ShardRange> = Vec::new();
        for slot in slots {
            let next = edge(slot.into(), of.into())..edge(u128::from(slot) + 1, of.into());
            match ranges.last_mut() {
                Some(range) if range.end == next.start => range.end = next.end,
                _ => ranges.push(ShardRange {
                    start: next.start,
                    end: next.end,
                }),
            }
        }
        Self::new(key, ranges)
    }

    /// Returns a selector of at most `ranges_max` ranges that selects all objects of this one, and
    /// perhaps more: ranges with the smallest gaps between them are joined. The result is short
    /// enough for a URL. The objects that it selects have to be filtered again by this selector.
    ///
    /// # Examples
    ///
    /// ```
    /// use opkit_apimachinery::shard::{ShardKey, ShardSelector};
    ///
    /// let parts = ShardSelector::slots(ShardKey::Uid, [0, 2, 7], 8);
    /// assert_eq!(parts.cover(2), ShardSelector::slots(ShardKey::Uid, [0, 1, 2, 7], 8));
    /// ```
    pub fn cover(&self, ranges_max: usize) -> Self {
        let mut ranges = self.ranges.clone();
        ranges.retain(|range| range.start < range.end);
        ranges.sort_by_key(|range| range.start);
        // Hashes between a range and the next one, with the index of the next one.
        let pairs = ranges.iter().zip(ranges.iter().skip(1));
        let gap = |(one, next): (&ShardRange, &ShardRange)| next.start.saturating_sub(one.end);
        let mut gaps: Vec<_> = pairs.map(gap).zip(1..).collect();
        gaps.sort_unstable();
        gaps.truncate(ranges.len().saturating_sub(ranges_max.max(1)));
        let joined: BTreeSet<usize> = gaps.into_iter().map(|(_, index)| index).collect();
        let mut cover: Vec<ShardRange> = Vec::new();
        for (index, range) in ranges.into_iter().enumerate() {
            match cover.last_mut() {
                Some(last) if joined.contains(&index) => last.end = last.end.max(range.end),
                _ => cover.push(range),
            }
        }
        Self::new(self.key, cover)
    }

    /// Returns a selector of the objects that this selector or another one of the same field
    /// selects. Its ranges do not overlap.
    ///
    /// # Examples
    ///
    /// ```
    /// use opkit_apimachinery::shard::{ShardKey, ShardSelector};
    ///
    /// let slots = |slots: [u32; 2]| ShardSelector::slots(ShardKey::Uid, slots, 4);
    /// assert_eq!(slots([0, 1]).union(&slots([1, 2])).ranges().len(), 1);
    /// ```
    pub fn union(&self, other: &Self) -> Self {
        let mut ranges: Vec<_> = self.ranges.iter().chain(&other.ranges).copied().collect();
        ranges.retain(|range| range.start < range.end);
        ranges.sort_by_key(|range| range.start);
        let mut union: Vec<ShardRange> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match union.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => union.push(range),
            }
        }
        Self::new(self.key, union)
    }

    /// Reports whether the selector selects no object. The text of such a selector can be empty,
    /// which a server takes for a selector of all objects, so it must not be sent.
    pub fn is_empty(&self) -> bool {
        self.ranges.iter().all(|range| range.start >= range.end)
    }

    /// Splits the shard into `of` parts of about equal size. Together the parts contain every
    /// object of the shard exactly once.
    ///
    /// # Examples
    ///
    /// ```
    /// use opkit_apimachinery::shard::{ShardKey, ShardSelector};
    ///
    /// let half = ShardSelector::part(ShardKey::Uid, 1, 2);
    /// let last = ShardSelector::part(ShardKey::Uid, 3, 4);
    /// assert_eq!(half.split(2).get(1), Some(&last));
    /// ```
    pub fn split(&self, of: u32) -> Vec<Self> {
        let of = u128::from(of.max(1));
        let part = |index: u128| {
            let ranges = self.ranges.iter().map(|range| {
                let length = range.end.saturating_sub(range.start);
                let edge = |index: u128| range.start + length * index / of;
                ShardRange {
                    start: edge(index),
                    end: edge(index + 1),
                }
            });
            Self::new(self.key, ranges.collect())
        };
        (0..of).map(part).collect()
    }

    /// Returns the field whose hash determines the shard of an object.
    pub fn key(&self) -> ShardKey {
        self.key
    }

    /// Returns the ranges of hashes that are selected.
    pub fn ranges(&self) -> &[ShardRange] {
        &self.ranges
    }

    /// Reports whether the object with this uid and namespace is in the shard. The namespace of a
    /// cluster-scoped object is empty.
    pub fn matches(&self, uid: &str, namespace: &str) -> bool {
        self.contains(hash(match self.key {
            ShardKey::Uid => uid,
            ShardKey::Namespace => namespace,
        }))
    }

    /// Reports whether a hash is in one of the ranges.
    pub fn contains(&self, hash: u64) -> bool {
        self.ranges.iter().any(|range| range.contains(hash))
    }
}

/// Returns the first hash of part `index` of `of` equal parts; 2^64 if `index` is `of` or more.
fn edge(index: u128, of: u128) -> u128 {
    END * index.min(of) / of
}

impl fmt::Display for ShardSelector {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, range) in self.ranges.iter().enumerate() {
            let or = if at == 0 { "" } else { " || " };
            let ShardRange { start, end } = range;
            write!(
                out,
                "{or}shardRange({}, '0x{start:016x}', '0x{end:016x}')",
                self.key
            )?;
        }
        Ok(())
    }
}

impl FromStr for ShardSelector {
    type Err = ShardError;

    fn from_str(text: &str) -> Result<Self, ShardError> {
        parser::parse(text)
    }
}

#[cfg(test)]
mod tests;
