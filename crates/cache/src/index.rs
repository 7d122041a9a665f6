//! Indexes: find objects by a value computed from each object, such as its node or its owner.

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use foldhash::fast::RandomState;
use opkit_client::Object;
use tracing::warn;

use crate::Stored;
use crate::tape::meta::Meta;

type Values = dyn Fn(&Stored) -> Vec<String> + Send + Sync;

/// Index of an informer, with a name. An object can have several values in an index, or none.
///
/// Indexes on metadata and on single fields read the stored form of the objects. An index on the
/// Rust type decodes each version of each object once.
///
/// The function that computes the values is called while the informer is locked: it must not read
/// the cache, which would deadlock. An object for which the function panics has no value in the
/// index. Objects whose body was evicted by a memory budget keep their values; an index added later
/// sees only the metadata of such objects.
///
/// # Examples
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use opkit_cache::Index;
///
/// let by_node = Index::field("node", "spec.nodeName");
/// let by_app = Index::meta("app", |meta| meta.label("app").map(String::from).into_iter().collect());
/// let by_image = Index::typed("image", |pod: &Pod| {
///     let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
///     containers.filter_map(|container| container.image.clone()).collect()
/// });
/// # let _ = (by_node, by_app, by_image);
/// ```
#[derive(Clone)]
pub struct Index {
    pub(crate) name: String,
    values: Arc<Values>,
    /// Whether the values of each object are kept, because computing the values again is expensive,
    /// or because the body of the object may have been evicted.
    keeps_values: bool,
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Index {
    /// Creates an index by the values that the function `values` returns for an object's metadata.
    /// `values` must be deterministic.
    pub fn meta(
        name: impl Into<String>,
        values: impl Fn(&Meta<'_>) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            values: Arc::new(move |stored| values(&stored.meta())),
            keeps_values: false,
        }
    }

    /// Creates an index by the text of a field, such as `spec.nodeName`. Objects without the field
    /// have no value. Not supported by informers that store Rust objects; use
    /// [`typed`](Index::typed) with such informers.
    pub fn field(name: impl Into<String>, path: impl Into<String>) -> Self {
        let path = path.into();
        Self {
            name: name.into(),
            values: Arc::new(move |stored| {
                stored.field(&path).map(String::from).into_iter().collect()
            }),
            keeps_values: true,
        }
    }

    /// Creates an index by the values that the function `values` returns for an object. Objects
    /// that cannot be decoded as `K` have no value.
    pub fn typed<K: Object>(
        name: impl Into<String>,
        values: impl Fn(&K) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            values: Arc::new(move |stored| {
                stored
                    .get::<K>()
                    .map(|object| values(&object))
                    .unwrap_or_default()
            }),
            keeps_values: true,
        }
    }
}

/// Slots (positions in the store) of the objects, by the values of one index.
#[derive(Debug)]
pub(crate) struct Indexed {
    pub(crate) index: Index,
    slots: HashMap<Box<str>, BTreeSet<u32>, RandomState>,
    /// Values of the object in each slot; empty if the index does not keep values.
    values: HashMap<u32, Vec<String>, RandomState>,
}

impl Indexed {
    pub(crate) fn new(index: Index) -> Self {
        Self {
            index,
            slots: HashMap::default(),
            values: HashMap::default(),
        }
    }

    /// Replaces the values of a slot's old object by those of its new object.
    pub(crate) fn set(&mut self, slot: u32, old: Option<&Stored>, new: Option<&Stored>) {
        let values = new.map(|new| self.values_of(new)).unwrap_or_default();
        let before = match self.index.keeps_values {
            true if values.is_empty() => self.values.remove(&slot),
            true => self.values.insert(slot, values.clone()),
            false => old.map(|old| self.values_of(old)),
        };
        let before = before.unwrap_or_default();
        if before == values {
            return;
        }
        for value in before {
            if let Some(slots) = self.slots.get_mut(&*value) {
                slots.remove(&slot);
                if slots.is_empty() {
                    self.slots.remove(&*value);
                }
            }
        }
        for value in values {
            self.slots.entry(value.into()).or_default().insert(slot);
        }
    }

    /// Computes the values of an object. If the user's function panics, the object has no values,
    /// so that the watch continues and the store stays consistent.
    fn values_of(&self, stored: &Stored) -> Vec<String> {
        let values = AssertUnwindSafe(|| (self.index.values)(stored));
        catch_unwind(values).unwrap_or_else(|_| {
            let (index, key) = (&self.index.name, stored.key());
            warn!(index, %key, "index function panicked; the object has no value in this index");
            Vec::new()
        })
    }

    pub(crate) fn slots(&self, value: &str) -> impl Iterator<Item = u32> {
        self.slots.get(value).into_iter().flatten().copied()
    }

    /// Returns the values that at least one object has.
    pub(crate) fn values(&self) -> impl Iterator<Item = &str> {
        self.slots.keys().map(|value| &**value)
    }
}

/// Slots (positions in the store) by the hash of a value such as a UID. The value itself is not
/// stored.
#[derive(Debug, Default)]
pub(crate) struct HashIndex {
    slots: HashMap<u64, BTreeSet<u32>, RandomState>,
}

impl HashIndex {
    pub(crate) fn insert(&mut self, value: u64, slot: u32) {
        self.slots.entry(value).or_default().insert(slot);
    }

    pub(crate) fn remove(&mut self, value: u64, slot: u32) {
        if let Some(slots) = self.slots.get_mut(&value) {
            slots.remove(&slot);
            if slots.is_empty() {
                self.slots.remove(&value);
            }
        }
    }

    /// Returns the slots with the value, and possibly slots of other values that have the same
    /// hash.
    pub(crate) fn slots(&self, value: u64) -> impl Iterator<Item = u32> {
        self.slots.get(&value).into_iter().flatten().copied()
    }
}
