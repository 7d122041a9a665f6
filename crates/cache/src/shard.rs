//! Splitting a kind over several watches, or reading only a part of a kind. Objects are split by
//! the hash of their UID or namespace, as Kubernetes does (`shardSelector`, feature gate
//! `ShardedListAndWatch`). A server without that feature sends all objects; the reflector then
//! drops the objects of other parts, which it finds by the same hash.
//!
//! Dependents can also be split by the UIDs of their owners, so that the process that reads an
//! owner reads its dependents. No server supports that: the reflector receives all objects, and
//! drops those of other parts before they are stored.

pub use opkit_apimachinery::shard::{ShardKey, ShardRange, ShardSelector};

use opkit_apimachinery::shard::hash;

use crate::Stored;

/// Largest number of ranges in the selector of a request, which is part of its URL. A selector of
/// more ranges is replaced by a wider one, and the reflector drops the objects that are too many.
const RANGES_MAX: usize = 32;

/// Part of a kind that an informer reads, and the number of watches that read this part.
///
/// # Examples
/// ```
/// use opkit_cache::{ShardKey, ShardSelector, Shards};
///
/// // The second of three processes, each of which reads its part with four watches.
/// let shards = Shards::part(ShardKey::Uid, 1, 3).watches(4);
/// assert_eq!(shards.watches, 4);
/// // The dependents of the objects in slots 4, 5 and 9 of 16.
/// let dependents = Shards::owners(ShardSelector::slots(ShardKey::Uid, [4, 5, 9], 16));
/// assert!(dependents.by_owner);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Shards {
    /// Part of the kind that is read; `None` reads all objects. If the part is empty, no request
    /// is sent, and the informer counts as synced.
    pub range: Option<ShardSelector>,
    /// Whether a range of UIDs applies to the owners of an object, instead of the object itself:
    /// an object belongs to the part if the UID of one of its owner references does. A range of
    /// namespaces is not affected.
    pub by_owner: bool,
    /// Number of watches that together read the part; at least 1.
    pub watches: u32,
}

impl Default for Shards {
    fn default() -> Self {
        Self {
            range: None,
            by_owner: false,
            watches: 1,
        }
    }
}

impl Shards {
    /// Selects the part `index` (from 0) of `of` equal parts, so that `of` processes can share a
    /// kind.
    pub fn part(key: ShardKey, index: u32, of: u32) -> Self {
        Self::range(ShardSelector::part(key, index, of))
    }

    /// Selects the part of a kind that a shard selector describes.
    pub fn range(range: ShardSelector) -> Self {
        Self {
            range: Some(range),
            ..Default::default()
        }
    }

    /// Selects the objects that have an owner in the part that a shard selector of UIDs describes.
    /// An object with owners in several parts belongs to each of them, and an object without an
    /// owner to none. If the owners of an object change, the informer reports that the object was
    /// added or deleted.
    ///
    /// The server sends all objects, and one watch reads them. Objects of other parts are dropped
    /// while they are decoded. A transform must keep the owner references.
    pub fn owners(range: ShardSelector) -> Self {
        Self {
            by_owner: true,
            ..Self::range(range)
        }
    }

    /// Sets the number of watches that together read the part.
    pub fn watches(mut self, watches: u32) -> Self {
        self.watches = watches.max(1);
        self
    }

    /// Reports whether the part is selected by the owners of the objects.
    fn selects_owners(&self) -> bool {
        let range = self.range.as_ref();
        self.by_owner && range.is_some_and(|range| range.key() == ShardKey::Uid)
    }

    /// Returns the part as it distinguishes informers, without the number of watches.
    pub(crate) fn selected(&self) -> Self {
        Self {
            range: self.range.clone(),
            by_owner: self.selects_owners(),
            watches: 1,
        }
    }

    /// Returns the parts that the reflectors read, given the namespaces to read.
    pub(crate) fn parts(&self, namespaces: &[Option<String>]) -> Vec<Part> {
        let by_owner = self.selects_owners();
        let shards: Vec<Option<ShardSelector>> = match (&self.range, self.watches) {
            (Some(range), _) if range.is_empty() => Vec::new(),
            (range, 0 | 1) => vec![range.clone()],
            // Each watch would receive all objects.
            (range, _) if by_owner => vec![range.clone()],
            (Some(range), watches) => {
                let mut ranges = range.split(watches);
                ranges.retain(|range| !range.is_empty());
                ranges.into_iter().map(Some).collect()
            }
            (None, watches) => {
                let part = |index| ShardSelector::part(ShardKey::Uid, index, watches);
                (0..watches).map(part).map(Some).collect()
            }
        };
        let part = |namespace: &Option<String>, shard: &Option<ShardSelector>| Part {
            namespace: namespace.clone(),
            shard: shard.clone(),
            by_owner,
        };
        namespaces
            .iter()
            .flat_map(|namespace| shards.iter().map(move |shard| part(namespace, shard)))
            .collect()
    }
}

/// Part of a kind that one reflector reads.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Part {
    /// Namespace of the part; `None` for all namespaces.
    pub(crate) namespace: Option<String>,
    /// Shard of the part; `None` for all objects.
    pub(crate) shard: Option<ShardSelector>,
    /// Whether the shard is that of an owner of the object. Such a part is read by one watch, which
    /// reports all objects of the namespace.
    pub(crate) by_owner: bool,
}

impl From<Option<String>> for Part {
    fn from(namespace: Option<String>) -> Self {
        Self {
            namespace,
            ..Self::default()
        }
    }
}

impl Part {
    /// Returns the `shardSelector` of the requests; empty to request all objects.
    pub(crate) fn selector(&self) -> String {
        let shard = self.shard.as_ref().filter(|_| !self.by_owner);
        let cover = shard.map(|shard| shard.cover(RANGES_MAX).to_string());
        cover.unwrap_or_default()
    }

    /// Reports whether the watch of this part shares the objects of a namespace with watches of
    /// other parts.
    pub(crate) fn is_shared(&self) -> bool {
        self.shard.is_some() && !self.by_owner
    }

    /// Reports whether the watch of this part reports the object with this namespace and UID. Not
    /// every reported object is [stored](Self::keeps).
    pub(crate) fn covers(&self, namespace: Option<&str>, uid: Option<&str>) -> bool {
        let shard = self.shard.as_ref().filter(|_| !self.by_owner);
        (self.namespace.is_none() || self.namespace.as_deref() == namespace)
            && shard.is_none_or(|shard| {
                shard.matches(uid.unwrap_or_default(), namespace.unwrap_or_default())
            })
    }

    /// Same as [`covers`](Self::covers), for a stored object.
    pub(crate) fn covers_stored(&self, stored: &Stored) -> bool {
        let uid = match self.is_shared() {
            true => stored.meta().uid(),
            false => None,
        };
        self.covers(stored.namespace().as_deref(), uid.as_deref())
    }

    /// Reports whether a reported object with owners of these UIDs belongs to the part.
    pub(crate) fn has_owner<U: AsRef<str>>(&self, mut uids: impl Iterator<Item = U>) -> bool {
        let shard = self.shard.as_ref().filter(|_| self.by_owner);
        shard.is_none_or(|shard| uids.any(|uid| shard.contains(hash(uid.as_ref()))))
    }

    /// Reports whether a stored object belongs to the part.
    pub(crate) fn keeps(&self, stored: &Stored) -> bool {
        self.covers_stored(stored)
            && (!self.by_owner || {
                let owners = stored.meta().owners();
                self.has_owner(owners.into_iter().map(|owner| owner.uid))
            })
    }
}

#[cfg(test)]
mod tests;
