//! Entries of the indexes of the store: pointers to stored objects that are ordered by key, or
//! hashed by UID or by place. An entry has no copy of the key or of the UID.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::{Key, Stored};

/// An object in the order of namespaces and names.
#[derive(Clone, Debug)]
pub(super) struct ByKey(pub(super) Arc<Stored>);

/// A namespace and a name, of an object or of a key to look up.
pub(super) trait Named {
    fn named(&self) -> (&str, &str);
}

impl Named for Stored {
    fn named(&self) -> (&str, &str) {
        (self.namespace(), self.name())
    }
}

impl Named for ByKey {
    fn named(&self) -> (&str, &str) {
        self.0.named()
    }
}

impl Named for Key {
    fn named(&self) -> (&str, &str) {
        (&self.namespace, &self.name)
    }
}

impl<'a> Borrow<dyn Named + 'a> for ByKey {
    fn borrow(&self) -> &(dyn Named + 'a) {
        self
    }
}

impl PartialEq for dyn Named + '_ {
    fn eq(&self, other: &Self) -> bool {
        self.named() == other.named()
    }
}

impl Eq for dyn Named + '_ {}

impl PartialOrd for dyn Named + '_ {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for dyn Named + '_ {
    fn cmp(&self, other: &Self) -> Ordering {
        self.named().cmp(&other.named())
    }
}

impl PartialEq for ByKey {
    fn eq(&self, other: &Self) -> bool {
        self.named() == other.named()
    }
}

impl Eq for ByKey {}

impl PartialOrd for ByKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ByKey {
    fn cmp(&self, other: &Self) -> Ordering {
        self.named().cmp(&other.named())
    }
}

/// An object that is found by its UID.
#[derive(Clone, Debug)]
pub(super) struct ByUid(pub(super) Arc<Stored>);

impl Borrow<str> for ByUid {
    fn borrow(&self) -> &str {
        self.0.uid()
    }
}

impl PartialEq for ByUid {
    fn eq(&self, other: &Self) -> bool {
        self.0.uid() == other.0.uid()
    }
}

impl Eq for ByUid {}

impl Hash for ByUid {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.uid().hash(state);
    }
}

/// An object that is found by its resource and its key.
#[derive(Clone, Debug)]
pub(super) struct ByPlace(pub(super) Arc<Stored>);

impl ByPlace {
    pub(super) fn place(&self) -> (&str, &str, &str) {
        (self.0.resource(), self.0.namespace(), self.0.name())
    }
}

impl PartialEq for ByPlace {
    fn eq(&self, other: &Self) -> bool {
        self.place() == other.place()
    }
}

impl Eq for ByPlace {}

impl Hash for ByPlace {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.place().hash(state);
    }
}
