//! Typed reads of the cache.

use std::marker::PhantomData;
use std::sync::Arc;

use kube::core::Selector;
use opkit_apimachinery::selector::LabelSelector;
use opkit_client::{Object, ObjectKey};

use crate::informer::Candidates;
use crate::options::matches;
use crate::store::number;
use crate::{FetchError, Informer, ObjectError, Stored, downcast};

/// Selection of the objects of a kind; selects all by default.
///
/// # Examples
/// ```
/// use opkit_cache::Selection;
/// let mine = Selection::default().namespace("shops").owned_by("a-uid");
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Selection {
    /// Namespace of the objects; `None` selects all namespaces.
    pub namespace: Option<String>,
    /// Whether all namespaces are selected even where a default namespace would apply, such as the
    /// namespace of the reconciled object.
    pub all_namespaces: bool,
    /// Label selector of the objects; `None` selects all objects.
    pub labels: Option<Selector>,
    /// UID that an owner reference of the object must have.
    pub owner_uid: Option<String>,
    /// Name of an index, and the value that the object must have in the index.
    pub index: Option<(String, String)>,
}

impl Selection {
    /// Selects only objects in `namespace`.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self.all_namespaces = false;
        self
    }

    /// Selects objects in all namespaces.
    pub fn all_namespaces(mut self) -> Self {
        self.namespace = None;
        self.all_namespaces = true;
        self
    }

    /// Selects only objects whose labels match `selector`.
    pub fn labels(mut self, selector: impl Into<Selector>) -> Self {
        self.labels = Some(selector.into());
        self
    }

    /// Selects only objects with an owner reference to `uid`.
    pub fn owned_by(mut self, uid: impl Into<String>) -> Self {
        self.owner_uid = Some(uid.into());
        self
    }

    /// Selects only objects that have `value` in the index `name`. Selects nothing if the informer
    /// does not have the index.
    pub fn by_index(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.index = Some((name.into(), value.into()));
        self
    }

    /// Returns the smallest indexed set of objects that contains all selected objects.
    fn candidates(&self) -> Candidates<'_> {
        match (&self.index, &self.owner_uid, &self.namespace) {
            (Some((name, value)), ..) => Candidates::Index(name, value),
            (None, Some(uid), _) => Candidates::Owner(uid),
            (None, None, Some(namespace)) => Candidates::Namespace(namespace),
            (None, None, None) => Candidates::All,
        }
    }

    /// Returns the parsed label selector; `None` if the label selector is not valid.
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
            // The index or the owner found it; if both are given, the owner still has to be
            // checked.
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

/// Reader of the cached objects of one kind, as a Rust type. Objects are shared, not copied.
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

impl<K> AsRef<Informer> for Lister<K> {
    fn as_ref(&self) -> &Informer {
        &self.informer
    }
}

impl<K: Object> Lister<K> {
    /// Creates a lister of an informer whose objects have the type `K`.
    pub(crate) fn new(informer: Informer) -> Self {
        Self {
            informer,
            kind: PhantomData,
        }
    }

    /// Returns the informer that this lister reads.
    pub fn informer(&self) -> &Informer {
        &self.informer
    }

    /// Returns the object, or `None` if it is not in the cache.
    ///
    /// # Errors
    /// If the object is cached but does not match its Rust type, or its body was evicted by a
    /// memory budget.
    pub fn get(&self, key: &ObjectKey) -> Result<Option<Arc<K>>, Arc<ObjectError>> {
        Ok(self.informer.get(key)?.and_then(|object| downcast(&object)))
    }

    /// Returns the object. If its body was evicted by a memory budget, the object is read from the
    /// API.
    ///
    /// # Errors
    /// If the object does not match its Rust type, or the request to the API fails.
    ///
    /// # Cancel safety
    /// Safe to drop at any time.
    pub async fn fetch(&self, key: &ObjectKey) -> Result<Option<Arc<K>>, FetchError> {
        let object = self.informer.fetch(key).await?;
        Ok(object.and_then(|object| downcast(&object)))
    }

    /// Returns the cached object if it is a later version of `object`, otherwise `object` itself.
    pub fn newest(&self, object: &Arc<K>) -> Arc<K> {
        let version = |object: &K| number(object.meta().resource_version.as_deref());
        let cached = self.get(&ObjectKey::of(object.meta())).ok().flatten();
        cached
            .filter(|cached| cached.meta().uid == object.meta().uid)
            .filter(|cached| version(cached) > version(object))
            .unwrap_or_else(|| object.clone())
    }

    /// Returns the selected objects, in no particular order. Objects that do not match their type,
    /// or whose body was evicted, are left out.
    pub fn list(&self, selection: &Selection) -> Vec<Arc<K>> {
        let stored = self.stored(selection);
        stored
            .iter()
            .filter_map(|stored| stored.get().ok())
            .collect()
    }

    /// Returns the selected objects in their stored form, whose metadata can be read without
    /// decoding the objects.
    pub fn stored(&self, selection: &Selection) -> Vec<Stored> {
        self.informer.select(selection)
    }

    /// Returns the keys of the selected objects without decoding them.
    pub fn keys(&self, selection: &Selection) -> Vec<ObjectKey> {
        self.informer.collect(selection, Stored::key)
    }

    /// Returns the number of cached objects.
    pub fn len(&self) -> usize {
        self.informer.len()
    }

    /// Reports whether the cache has no object of the kind.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Informer {
    /// Returns the selected objects in their stored form, in no particular order. The objects are
    /// not decoded.
    pub fn select(&self, selection: &Selection) -> Vec<Stored> {
        self.collect(selection, Stored::clone)
    }

    fn collect<T>(&self, selection: &Selection, take: impl Fn(&Stored) -> T) -> Vec<T> {
        let mut found = Vec::new();
        let Some(labels) = selection.label_selector() else {
            return found;
        };
        self.visit(selection.candidates(), |stored| {
            if selection.selects(stored, &labels) {
                found.push(take(stored));
            }
        });
        found
    }
}
