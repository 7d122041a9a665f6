//! Indexes: objects by a value that is computed from each, such as their node or their owner.

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

/// An index of an informer, by name. An object may have several values, or none.
///
/// Indexes on metadata and on plain fields read the stored form; one on the Rust type makes the
/// Rust object of each version once.
///
/// The functions are called while the informer is locked: they must not read the cache, which would
/// wait for itself. An object for which one panics has no value in that index. Objects whose body
/// has given way to a memory budget keep the values they had; an index that is added later sees
/// only their metadata.
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
    /// Whether values are remembered: it costs to compute them again, or the body they came from
    /// may have given way to a memory budget.
    remembers: bool,
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Index")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Index {
    /// By what `values` answers for an object's metadata; always the same for the same metadata.
    pub fn meta(
        name: impl Into<String>,
        values: impl Fn(&Meta<'_>) -> Vec<String> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            values: Arc::new(move |stored| values(&stored.meta())),
            remembers: false,
        }
    }

    /// By the text of a field, such as `spec.nodeName`. Objects without it have no value. Informers
    /// that store Rust objects cannot have it: use [`typed`](Index::typed).
    pub fn field(name: impl Into<String>, path: impl Into<String>) -> Self {
        let path = path.into();
        Self {
            name: name.into(),
            values: Arc::new(move |stored| {
                stored.field(&path).map(String::from).into_iter().collect()
            }),
            remembers: true,
        }
    }

    /// By what `values` answers for an object. Objects that do not fit their type have no value.
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
            remembers: true,
        }
    }
}

/// The objects of a store, by slot, for each value of one index.
#[derive(Debug)]
pub(crate) struct Indexed {
    pub(crate) index: Index,
    slots: HashMap<Box<str>, BTreeSet<u32>, RandomState>,
    /// The values of each slot, if they are remembered.
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

    /// Enters what is stored in a slot now, in place of `old`.
    pub(crate) fn set(&mut self, slot: u32, old: Option<&Stored>, new: Option<&Stored>) {
        let values = new.map(|new| self.values_of(new)).unwrap_or_default();
        let before = match self.index.remembers {
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

    /// The function is the user's: a panic of its own must neither end the watch nor leave the
    /// store half changed.
    fn values_of(&self, stored: &Stored) -> Vec<String> {
        let values = AssertUnwindSafe(|| (self.index.values)(stored));
        catch_unwind(values).unwrap_or_else(|_| {
            let (index, key) = (&self.index.name, stored.key());
            warn!(index, %key, "the function of an index panicked");
            Vec::new()
        })
    }

    pub(crate) fn slots(&self, value: &str) -> impl Iterator<Item = u32> {
        self.slots.get(value).into_iter().flatten().copied()
    }

    /// The values there are.
    pub(crate) fn values(&self) -> impl Iterator<Item = &str> {
        self.slots.keys().map(|value| &**value)
    }
}

/// A value that is a UID or the like, by which the store finds objects without strings.
#[derive(Debug, Default)]
pub(crate) struct Compact {
    slots: HashMap<u64, BTreeSet<u32>, RandomState>,
}

impl Compact {
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

    /// The slots with the value, and perhaps others whose value hashes alike.
    pub(crate) fn slots(&self, value: u64) -> impl Iterator<Item = u32> {
        self.slots.get(&value).into_iter().flatten().copied()
    }
}
