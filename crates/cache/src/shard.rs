//! One kind, read by several watches, or in part: split by the hash of each object's UID or
//! namespace, as Kubernetes splits it (`shardSelector`, the feature gate `ShardedListAndWatch`). A
//! server that does not know it sends everything, and the rest is left out here, by the same hash.

use std::borrow::Cow;

pub use opkit_apimachinery::shard::{ShardKey, ShardRange, ShardSelector};

use crate::Stored;

/// How an informer's kind is split over watches, and which part of it is read at all.
///
/// # Examples
/// ```
/// use opkit_cache::{ShardKey, Shards};
///
/// // The second of three processes, each of which reads its part by four watches.
/// let shards = Shards::part(ShardKey::Uid, 1, 3).watches(4);
/// assert_eq!(shards.watches, 4);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Shards {
    /// The part that is read; everything without one.
    pub range: Option<ShardSelector>,
    /// How many watches read it, into one store; at least one.
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
    /// One of `of` equal parts, counted from 0: for one of `of` processes.
    pub fn part(key: ShardKey, index: u32, of: u32) -> Self {
        Self::range(ShardSelector::part(key, index, of))
    }

    /// A part that is given from outside.
    pub fn range(range: ShardSelector) -> Self {
        Self {
            range: Some(range),
            ..Default::default()
        }
    }

    /// By so many watches.
    pub fn watches(mut self, watches: u32) -> Self {
        self.watches = watches.max(1);
        self
    }

    /// What each reflector reads of these namespaces.
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

/// What one reflector reads of a kind.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Part {
    /// One namespace, or all.
    pub(crate) namespace: Option<String>,
    /// One shard, or everything.
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
    /// Whether an object of this namespace and UID belongs to it.
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
