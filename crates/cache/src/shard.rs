//! Splitting a kind over several watches, or reading only a part of a kind. Objects are split by
//! the hash of their UID or namespace, as Kubernetes does (`shardSelector`, feature gate
//! `ShardedListAndWatch`). A server without that feature sends all objects; the reflector then
//! drops the objects of other parts, which it finds by the same hash.

use std::borrow::Cow;

pub use opkit_apimachinery::shard::{ShardKey, ShardRange, ShardSelector};

use crate::Stored;

/// Part of a kind that an informer reads, and the number of watches that read this part.
///
/// # Examples
/// ```
/// use opkit_cache::{ShardKey, Shards};
///
/// // The second of three processes, each of which reads its part with four watches.
/// let shards = Shards::part(ShardKey::Uid, 1, 3).watches(4);
/// assert_eq!(shards.watches, 4);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Shards {
    /// Part of the kind that is read; `None` reads all objects.
    pub range: Option<ShardSelector>,
    /// Number of watches that together read the part; at least 1.
    pub watches: u32,
}

impl Default for Shards {
    fn default() -> Self {
        Self {
            range: None,
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

    /// Sets the number of watches that together read the part.
    pub fn watches(mut self, watches: u32) -> Self {
        self.watches = watches.max(1);
        self
    }

    /// Returns the parts that the reflectors read, given the namespaces to read.
    pub(crate) fn parts(&self, namespaces: &[Option<String>]) -> Vec<Part> {
        let shards: Vec<Option<ShardSelector>> = match (&self.range, self.watches) {
            (range, 0 | 1) => vec![range.clone()],
            (Some(range), watches) => range.split(watches).into_iter().map(Some).collect(),
            (None, watches) => {
                let part = |index| ShardSelector::part(ShardKey::Uid, index, watches);
                (0..watches).map(part).map(Some).collect()
            }
        };
        let part = |namespace: &Option<String>, shard: &Option<ShardSelector>| Part {
            namespace: namespace.clone(),
            shard: shard.clone(),
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
}

impl From<Option<String>> for Part {
    fn from(namespace: Option<String>) -> Self {
        Self {
            namespace,
            shard: None,
        }
    }
}

impl Part {
    /// Reports whether an object with this namespace and UID belongs to the part.
    pub(crate) fn covers(&self, namespace: Option<&str>, uid: Option<&str>) -> bool {
        (self.namespace.is_none() || self.namespace.as_deref() == namespace)
            && self.shard.as_ref().is_none_or(|shard| {
                shard.matches(uid.unwrap_or_default(), namespace.unwrap_or_default())
            })
    }

    pub(crate) fn covers_stored(&self, stored: &Stored) -> bool {
        let uid = match self.shard {
            Some(_) => stored.meta().uid(),
            None => None::<Cow<'_, str>>,
        };
        self.covers(stored.namespace().as_deref(), uid.as_deref())
    }
}

#[cfg(test)]
mod tests;
