//! Reading the cache with a Rust type.

use std::marker::PhantomData;
use std::sync::Arc;

use kube::core::{Selector, SelectorExt};
use opkit_client::{Object, ObjectKey};

use crate::store::number;
use crate::{DecodeError, Informer, downcast};

/// Which objects of a kind: by default all.
///
/// # Examples
/// ```
/// use opkit_cache::Selection;
/// let mine = Selection::default().namespace("shops").owned_by("a-uid");
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Selection {
    /// Only this namespace.
    pub namespace: Option<String>,
    /// All namespaces, also where another default would apply: a reconcile's own.
    pub all_namespaces: bool,
    /// Only objects with such labels.
    pub labels: Option<Selector>,
    /// Only objects with an owner reference to this UID.
    pub owner_uid: Option<String>,
}

impl Selection {
    /// Only objects of `namespace`.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self.all_namespaces = false;
        self
    }

    /// Objects of all namespaces.
    pub fn all_namespaces(mut self) -> Self {
        self.namespace = None;
        self.all_namespaces = true;
        self
    }

    /// Only objects whose labels match.
    pub fn labels(mut self, selector: impl Into<Selector>) -> Self {
        self.labels = Some(selector.into());
        self
    }

    /// Only objects with an owner reference to `uid`.
    pub fn owned_by(mut self, uid: impl Into<String>) -> Self {
        self.owner_uid = Some(uid.into());
        self
    }
}

impl From<()> for Selection {
    fn from((): ()) -> Self {
        Selection::default()
    }
}

impl From<Selector> for Selection {
    fn from(selector: Selector) -> Self {
        Selection::default().labels(selector)
    }
}

/// Reads one kind from the cache as `K`. Nothing is copied: objects are shared.
#[derive(Debug)]
pub struct Lister<K> {
    informer: Informer,
    kind: PhantomData<fn() -> K>,
}

impl<K> Clone for Lister<K> {
    fn clone(&self) -> Self {
        Lister {
            informer: self.informer.clone(),
            kind: PhantomData,
        }
    }
}

impl<K: Object> Lister<K> {
    /// A lister over an informer of the same type.
    pub(crate) fn new(informer: Informer) -> Self {
        Lister {
            informer,
            kind: PhantomData,
        }
    }

    /// The informer behind.
    pub fn informer(&self) -> &Informer {
        &self.informer
    }

    /// The object, if it is in the cache.
    ///
    /// # Errors
    /// When the object is there but does not fit its Rust type.
    pub fn get(&self, key: &ObjectKey) -> Result<Option<Arc<K>>, Arc<DecodeError>> {
        Ok(self.informer.get(key)?.and_then(|object| downcast(&object)))
    }

    /// `object` itself, or what the cache has if that is a later version of the same object.
    pub fn newest(&self, object: &Arc<K>) -> Arc<K> {
        let version = |object: &K| number(object.meta().resource_version.as_deref());
        let cached = self.get(&ObjectKey::of(object.meta())).ok().flatten();
        cached
            .filter(|cached| cached.meta().uid == object.meta().uid)
            .filter(|cached| version(cached) > version(object))
            .unwrap_or_else(|| object.clone())
    }

    /// The selected objects, in no particular order. Objects that do not fit their type are left out.
    pub fn list(&self, selection: &Selection) -> Vec<Arc<K>> {
        let selected = self
            .informer
            .select(selection.owner_uid.as_deref(), |object| {
                let meta = object.object_meta();
                let namespace = selection.namespace.as_deref();
                (namespace.is_none() || meta.namespace.as_deref() == namespace)
                    && selection
                        .labels
                        .as_ref()
                        .is_none_or(|selector| match &meta.labels {
                            Some(labels) => selector.matches(labels),
                            None => selector.matches(&Default::default()),
                        })
            });
        selected.iter().filter_map(downcast).collect()
    }

    /// How many objects are in the cache.
    pub fn len(&self) -> usize {
        self.informer.len()
    }

    /// Whether the cache has no object of the kind.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
