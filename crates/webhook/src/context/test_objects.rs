//! The objects that a context for a test reads instead of a cache.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use kube::core::Selector;
use opkit_apimachinery::selector::LabelSelector;
use opkit_cache::{Indexer, Selection};
use opkit_client::{Object, ObjectKey};
use parking_lot::Mutex;
use serde_json::{Map, Value};

/// Objects by their Rust type.
#[derive(Default)]
pub(crate) struct TestObjects {
    stores: Mutex<HashMap<TypeId, Box<dyn Any + Send + Sync>>>,
}

impl fmt::Debug for TestObjects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TestObjects").finish_non_exhaustive()
    }
}

impl TestObjects {
    /// Adds objects of a type. A type without objects is known, too.
    pub(super) fn add<K: Object>(&self, objects: impl IntoIterator<Item = K>) {
        let mut stores = self.stores.lock();
        let store = stores.entry(TypeId::of::<K>());
        let store = store.or_insert_with(|| Box::new(Indexer::<K>::of_objects()));
        if let Some(store) = store.downcast_ref::<Indexer<K>>() {
            for object in objects {
                store.add(object);
            }
        }
    }

    /// Returns the object with this key. The outer `None` means that the type is not known.
    pub(super) fn get<K: Object>(&self, key: &ObjectKey) -> Option<Option<Arc<K>>> {
        Some(self.store::<K>()?.get(key))
    }

    /// Returns the selected objects, in the order of their keys, or `None` if the type is not
    /// known. There are no indexes, so a selection by one selects nothing.
    pub(super) fn list<K: Object>(&self, selection: &Selection) -> Option<Vec<Arc<K>>> {
        let store = self.store::<K>()?;
        let mut objects = store.list();
        objects.retain(|object| is_selected(object.meta(), selection));
        objects.sort_by_key(|object| store.key_of(object));
        Some(objects)
    }

    fn store<K: Object>(&self) -> Option<Indexer<K>> {
        let stores = self.stores.lock();
        let store = stores.get(&TypeId::of::<K>())?;
        store.downcast_ref::<Indexer<K>>().cloned()
    }
}

fn is_selected(meta: &kube::core::ObjectMeta, selection: &Selection) -> bool {
    let mut owners = meta.owner_references.iter().flatten();
    let is_owned = |uid: &String| owners.any(|owner| owner.uid == *uid);
    selection.index.is_none()
        && (selection.namespace.is_none() || selection.namespace == meta.namespace)
        && selection.owner_uid.as_ref().is_none_or(is_owned)
        && (selection.labels.as_ref()).is_none_or(|selector| matches(selector, meta))
}

fn matches(selector: &Selector, meta: &kube::core::ObjectMeta) -> bool {
    let labels = meta.labels.iter().flatten();
    let labels: Map<String, Value> = labels
        .map(|(name, value)| (name.clone(), value.clone().into()))
        .collect();
    LabelSelector::parse(&selector.to_string()).is_ok_and(|it| it.matches(Some(&labels)))
}
