//! Shards: the objects of a kind split by the hash of their uid or namespace.
//!
//! A list or watch with `shardSelector` sees only the objects whose hash is in given ranges (the
//! feature gate `ShardedListAndWatch`, alpha and off in Kubernetes 1.36). A server without it
//! ignores the parameter and answers with everything. One with it says so in
//! `metadata.shardInfo`, but only in full lists of built-in kinds: not for custom resources, not
//! in lists of metadata and not in watches. A client that cannot know picks its objects by the
//! same hash once more; that costs a hash for each object.

mod parser;

use std::fmt;
use std::str::FromStr;

pub use crate::error::ShardError;

/// The end of all hashes: 2^64, which is one more than the last.
const END: u128 = 1 << 64;

/// The hash that objects are split by: 64-bit FNV-1a.
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

/// What objects are split by.
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
    /// The uid: every object for itself.
    Uid,
    /// The namespace: the objects of a namespace stay together.
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

/// Hashes from `start` up to but without `end`.
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
    /// Hashes from `start` up to but without `end`, which is 2^64 at most.
    pub fn new(start: u64, end: u128) -> Self {
        Self {
            start: start.into(),
            end: end.min(END),
        }
    }

    /// Whether a hash is in the range.
    pub fn contains(self, hash: u64) -> bool {
        (self.start..self.end).contains(&hash.into())
    }
}

/// The objects of one shard: the `shardSelector` of a list or watch.
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
    /// The objects whose hash is in one of the ranges.
    pub fn new(key: ShardKey, ranges: Vec<ShardRange>) -> Self {
        Self { key, ranges }
    }

    /// One of `of` equal parts, counted from 0. The parts are all objects, and no two of them
    /// share one.
    pub fn part(key: ShardKey, index: u32, of: u32) -> Self {
        let of = u128::from(of.max(1));
        let edge = |index: u128| END * index.min(of) / of;
        let index = u128::from(index);
        let range = ShardRange {
            start: edge(index),
            end: edge(index + 1),
        };
        Self::new(key, vec![range])
    }

    /// The shard in `of` parts, about equal. They are all its objects, and no two of them share
    /// one.
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

    /// What objects are split by.
    pub fn key(&self) -> ShardKey {
        self.key
    }

    /// The ranges.
    pub fn ranges(&self) -> &[ShardRange] {
        &self.ranges
    }

    /// Whether an object is in the shard. The namespace of a cluster-scoped object is empty.
    pub fn matches(&self, uid: &str, namespace: &str) -> bool {
        let hash = hash(match self.key {
            ShardKey::Uid => uid,
            ShardKey::Namespace => namespace,
        });
        self.ranges.iter().any(|range| range.contains(hash))
    }
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
