//! Store with indexes that a program fills itself.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;

use foldhash::fast::RandomState;
use opkit_client::{Object, ObjectKey};
use parking_lot::RwLock;

use crate::ReflectorStore;

type KeyOf<T, K> = dyn Fn(&T) -> K + Send + Sync;
type ValuesOf<T> = dyn Fn(&T) -> Vec<String> + Send + Sync;
type Map<K, V> = HashMap<K, V, RandomState>;

/// Thread-safe store with indexes, for any type, that a program or a
/// [`Reflector`](crate::Reflector) fills. client-go's `Indexer`. A clone is another handle to the
/// same store.
///
/// Objects are shared, not copied. The functions of keys and indexes are called while the store is
/// locked: they must not use the store.
///
/// # Examples
/// ```
/// use opkit_cache::{Indexer, IndexerError};
///
/// struct Route {
///     path: &'static str,
///     host: &'static str,
/// }
///
/// # fn main() -> Result<(), IndexerError> {
/// let routes: Indexer<Route, String> = Indexer::new(|route: &Route| route.path.to_owned());
/// routes.add_index("host", |route| vec![route.host.to_owned()])?;
///
/// routes.add(Route { path: "/a", host: "one" });
/// routes.add(Route { path: "/b", host: "two" });
/// routes.update(Route { path: "/b", host: "one" });
/// assert_eq!(routes.by_index("host", "one")?.len(), 2);
/// assert!(routes.by_index("host", "two")?.is_empty());
///
/// routes.replace([Route { path: "/c", host: "two" }]);
/// assert_eq!(routes.index_keys("host", "two")?, ["/c"]);
/// assert!(routes.delete(&"/c".to_owned()).is_some());
/// assert!(routes.is_empty());
/// # Ok(())
/// # }
/// ```
pub struct Indexer<T, K = ObjectKey> {
    shared: Arc<Shared<T, K>>,
}

struct Shared<T, K> {
    key_of: Box<KeyOf<T, K>>,
    state: RwLock<State<T, K>>,
}

struct State<T, K> {
    objects: Map<K, Arc<T>>,
    indexes: Map<String, IndexOf<T, K>>,
}

/// Index of a store.
struct IndexOf<T, K> {
    values_of: Arc<ValuesOf<T>>,
    /// Keys of the objects that have a value.
    keys: Map<String, HashSet<K, RandomState>>,
    /// Values of each object, as they were when it was stored.
    values: Map<K, Vec<String>>,
}

/// Error of an index of an [`Indexer`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IndexerError {
    /// The store has no index with this name.
    #[error("the store has no index {index:?}: it has {}", list(known))]
    NoIndex {
        /// Name of the index.
        index: String,
        /// Names of the indexes of the store, sorted.
        known: Vec<String>,
    },
    /// The store already has an index with this name.
    #[error("the store already has an index {index:?}")]
    Exists {
        /// Name of the index.
        index: String,
    },
}

fn list(names: &[String]) -> String {
    match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    }
}

impl<T, K> Clone for Indexer<T, K> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<T, K> fmt::Debug for Indexer<T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Indexer")
            .field("len", &self.shared.state.read().objects.len())
            .finish_non_exhaustive()
    }
}

impl<T: Object> Indexer<T> {
    /// Creates an empty store of objects, whose keys are namespace and name.
    pub fn of_objects() -> Self {
        Self::new(|object: &T| ObjectKey::of(object.meta()))
    }
}

impl<T, K: Clone + Eq + Hash> Indexer<T, K> {
    /// Creates an empty store. `key_of` returns the key of an object.
    pub fn new(key_of: impl Fn(&T) -> K + Send + Sync + 'static) -> Self {
        let state = State {
            objects: Map::default(),
            indexes: Map::default(),
        };
        Self {
            shared: Arc::new(Shared {
                key_of: Box::new(key_of),
                state: RwLock::new(state),
            }),
        }
    }

    /// Returns the key of an object, which need not be stored.
    pub fn key_of(&self, object: &T) -> K {
        (self.shared.key_of)(object)
    }

    /// Stores an object, and returns the one that had its key.
    pub fn add(&self, object: impl Into<Arc<T>>) -> Option<Arc<T>> {
        let object = object.into();
        let key = self.key_of(&object);
        self.shared.state.write().insert(key, object)
    }

    /// Same as [`add`](Self::add), as in client-go: an object that is not stored is added.
    pub fn update(&self, object: impl Into<Arc<T>>) -> Option<Arc<T>> {
        self.add(object)
    }

    /// Removes and returns the object with this key.
    pub fn delete(&self, key: &K) -> Option<Arc<T>> {
        self.shared.state.write().remove(key)
    }

    /// Replaces all objects. Readers see either the previous objects or the new ones.
    pub fn replace<I>(&self, objects: I)
    where
        I: IntoIterator<Item: Into<Arc<T>>>,
    {
        let objects = objects.into_iter().map(|object| {
            let object = object.into();
            (self.key_of(&object), object)
        });
        let objects: Vec<_> = objects.collect();
        let mut state = self.shared.state.write();
        state.clear();
        for (key, object) in objects {
            state.insert(key, object);
        }
    }

    /// Returns the object with this key.
    pub fn get(&self, key: &K) -> Option<Arc<T>> {
        self.shared.state.read().objects.get(key).cloned()
    }

    /// Returns all objects, in no particular order.
    pub fn list(&self) -> Vec<Arc<T>> {
        self.shared.state.read().objects.values().cloned().collect()
    }

    /// Returns the keys of all objects, in no particular order.
    pub fn keys(&self) -> Vec<K> {
        self.shared.state.read().objects.keys().cloned().collect()
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.shared.state.read().objects.len()
    }

    /// Reports whether no object is stored.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an index, also of the objects that are stored. `values_of` returns the values that an
    /// object has in the index.
    ///
    /// # Errors
    /// If the store has an index with this name.
    pub fn add_index(
        &self,
        index: impl Into<String>,
        values_of: impl Fn(&T) -> Vec<String> + Send + Sync + 'static,
    ) -> Result<(), IndexerError> {
        let index = index.into();
        let mut state = self.shared.state.write();
        if state.indexes.contains_key(&index) {
            return Err(IndexerError::Exists { index });
        }
        let mut added = IndexOf {
            values_of: Arc::new(values_of),
            keys: Map::default(),
            values: Map::default(),
        };
        for (key, object) in &state.objects {
            added.insert(key, object);
        }
        state.indexes.insert(index, added);
        Ok(())
    }

    /// Returns the names of the indexes, sorted.
    pub fn indexes(&self) -> Vec<String> {
        self.shared.state.read().index_names()
    }

    /// Returns the objects that have this value in an index, in no particular order.
    ///
    /// # Errors
    /// If the store has no index with this name.
    pub fn by_index(&self, index: &str, value: &str) -> Result<Vec<Arc<T>>, IndexerError> {
        let state = self.shared.state.read();
        let keys = state.index(index)?.keys.get(value);
        let found = keys.into_iter().flatten();
        Ok(found
            .filter_map(|key| state.objects.get(key).cloned())
            .collect())
    }

    /// Returns the keys of the objects that have this value in an index, in no particular order.
    ///
    /// # Errors
    /// If the store has no index with this name.
    pub fn index_keys(&self, index: &str, value: &str) -> Result<Vec<K>, IndexerError> {
        let state = self.shared.state.read();
        let keys = state.index(index)?.keys.get(value);
        Ok(keys.into_iter().flatten().cloned().collect())
    }

    /// Returns the objects that share a value with `object` in an index, each once. client-go's
    /// `Index`.
    ///
    /// # Errors
    /// If the store has no index with this name.
    pub fn with_values_of(&self, index: &str, object: &T) -> Result<Vec<Arc<T>>, IndexerError> {
        let state = self.shared.state.read();
        let index = state.index(index)?;
        let values = (index.values_of)(object);
        let keys = values.iter().filter_map(|value| index.keys.get(value));
        let keys: HashSet<_, RandomState> = keys.flatten().collect();
        let objects = keys.into_iter().filter_map(|key| state.objects.get(key));
        Ok(objects.cloned().collect())
    }

    /// Returns the values that the objects have in an index, in no particular order.
    ///
    /// # Errors
    /// If the store has no index with this name.
    pub fn index_values(&self, index: &str) -> Result<Vec<String>, IndexerError> {
        let state = self.shared.state.read();
        Ok(state.index(index)?.keys.keys().cloned().collect())
    }
}

impl<T, K: Clone + Eq + Hash> State<T, K> {
    fn insert(&mut self, key: K, object: Arc<T>) -> Option<Arc<T>> {
        for index in self.indexes.values_mut() {
            index.remove(&key);
            index.insert(&key, &object);
        }
        self.objects.insert(key, object)
    }

    fn remove(&mut self, key: &K) -> Option<Arc<T>> {
        for index in self.indexes.values_mut() {
            index.remove(key);
        }
        self.objects.remove(key)
    }

    fn clear(&mut self) {
        for index in self.indexes.values_mut() {
            index.keys.clear();
            index.values.clear();
        }
        self.objects.clear();
    }

    fn index_names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.indexes.keys().cloned().collect();
        names.sort_unstable();
        names
    }

    fn index(&self, index: &str) -> Result<&IndexOf<T, K>, IndexerError> {
        self.indexes
            .get(index)
            .ok_or_else(|| IndexerError::NoIndex {
                index: index.to_owned(),
                known: self.index_names(),
            })
    }
}

impl<T, K: Clone + Eq + Hash> IndexOf<T, K> {
    fn insert(&mut self, key: &K, object: &T) {
        let values = (self.values_of)(object);
        for value in &values {
            let keys = self.keys.entry(value.clone()).or_default();
            keys.insert(key.clone());
        }
        if !values.is_empty() {
            self.values.insert(key.clone(), values);
        }
    }

    fn remove(&mut self, key: &K) {
        for value in self.values.remove(key).unwrap_or_default() {
            if let Some(keys) = self.keys.get_mut(&value) {
                keys.remove(key);
                if keys.is_empty() {
                    self.keys.remove(&value);
                }
            }
        }
    }
}

impl<T: Object> ReflectorStore<T> for Indexer<T> {
    fn add(&mut self, object: Arc<T>) {
        Self::add(self, object);
    }

    fn update(&mut self, object: Arc<T>) {
        Self::update(self, object);
    }

    fn delete(&mut self, key: &ObjectKey, _: Option<Arc<T>>) {
        Self::delete(self, key);
    }

    fn replace(&mut self, objects: Vec<Arc<T>>, _: &str) {
        Self::replace(self, objects);
    }
}

#[cfg(test)]
mod tests;
