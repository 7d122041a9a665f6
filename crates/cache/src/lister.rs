//! Reading the cache with a Rust type.

use std::marker::PhantomData;
use std::sync::Arc;

use kube::core::Selector;
use opkit_apimachinery::selector::LabelSelector;
use opkit_client::{Object, ObjectKey};

use crate::informer::Among;
use crate::options::matches;
use crate::store::number;
use crate::{FetchError, Informer, ObjectError, Stored, downcast};

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
    /// Only objects that have this value in the index of this name.
    pub index: Option<(String, String)>,
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

    /// Only objects that have `value` in the index `name`. An index that the informer does not have
    /// has no objects.
    pub fn by_index(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.index = Some((name.into(), value.into()));
        self
    }

    /// Where to look: the smallest set of objects that holds all that are selected.
    fn among(&self) -> Among<'_> {
        match (&self.index, &self.owner_uid, &self.namespace) {
            (Some((name, value)), ..) => Among::Index(name, value),
            (None, Some(uid), _) => Among::Owner(uid),
            (None, None, Some(namespace)) => Among::Namespace(namespace),
            (None, None, None) => Among::All,
        }
    }

    /// The labels to look for; `None` if their selector is not one.
    fn label_selector(&self) -> Option<LabelSelector> {
        match &self.labels {
            None => Some(LabelSelector::everything()),
            Some(labels) => LabelSelector::parse(&labels.to_string()).ok(),
        }
    }

    fn selects(&self, stored: &Stored, labels: &LabelSelector) -> bool {
        let namespace = self.namespace.as_deref();
        let owned = |uid: &String| stored.meta().owners().iter().any(|owner| owner.uid == *uid);
        (namespace.is_none() || stored.namespace().as_deref() == namespace)
            // Either of the two found it; if both are given, the owner is still to be checked.
            && (self.index.is_none() || self.owner_uid.as_ref().is_none_or(owned))
            && (labels.is_empty() || matches(labels, stored))
    }
}

impl From<()> for Selection {
    fn from((): ()) -> Self {
        Self::default()
    }
}

impl From<Selector> for Selection {
    fn from(selector: Selector) -> Self {
        Self::default().labels(selector)
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
        Self {
            informer: self.informer.clone(),
            kind: PhantomData,
        }
    }
}

impl<K: Object> Lister<K> {
    /// A lister over an informer of the same type.
    pub(crate) fn new(informer: Informer) -> Self {
        Self {
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
    /// When the object is there but does not fit its Rust type, or its body has given way to a
    /// memory budget.
    pub fn get(&self, key: &ObjectKey) -> Result<Option<Arc<K>>, Arc<ObjectError>> {
        Ok(self.informer.get(key)?.and_then(|object| downcast(&object)))
    }

    /// The object, read from the API if its body has given way to a memory budget.
    ///
    /// # Errors
    /// When the object does not fit its Rust type, or the API cannot be asked.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn fetch(&self, key: &ObjectKey) -> Result<Option<Arc<K>>, FetchError> {
        let object = self.informer.fetch(key).await?;
        Ok(object.and_then(|object| downcast(&object)))
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

    /// The selected objects, in no particular order. Objects that do not fit their type, or are not
    /// in memory, are left out.
    pub fn list(&self, selection: &Selection) -> Vec<Arc<K>> {
        let stored = self.stored(selection);
        stored
            .iter()
            .filter_map(|stored| stored.get().ok())
            .collect()
    }

    /// The selected objects as they are stored, for reading their metadata: none is decoded.
    pub fn stored(&self, selection: &Selection) -> Vec<Stored> {
        self.informer.select(selection)
    }

    /// The keys of the selected objects: none is decoded.
    pub fn keys(&self, selection: &Selection) -> Vec<ObjectKey> {
        self.informer.collect(selection, Stored::key)
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

impl Informer {
    /// The selected objects as they are stored, in no particular order: none is decoded.
    pub fn select(&self, selection: &Selection) -> Vec<Stored> {
        self.collect(selection, Stored::clone)
    }

    fn collect<T>(&self, selection: &Selection, take: impl Fn(&Stored) -> T) -> Vec<T> {
        let mut found = Vec::new();
        let Some(labels) = selection.label_selector() else {
            return found;
        };
        self.visit(selection.among(), |stored| {
            if selection.selects(stored, &labels) {
                found.push(take(stored));
            }
        });
        found
    }
}
