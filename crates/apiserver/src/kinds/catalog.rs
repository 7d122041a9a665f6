//! All kinds that the server serves at the moment, by group, version and plural name.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use opkit_apimachinery::identity::ResourcePath;
use parking_lot::RwLock;

use super::{Kind, builtin};

/// The priorities of the groups and versions of CRDs, as in Kubernetes.
pub(crate) const CUSTOM_PRIORITIES: (i64, i64) = (1000, 100);

/// Group, version and plural name.
type Key = (String, String, String);

/// The kinds that the server serves.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    kinds: RwLock<BTreeMap<Key, Arc<Kind>>>,
    /// Custom kinds of which no version is served, but of which objects may still be stored.
    unserved: RwLock<BTreeMap<String, Arc<Kind>>>,
    /// Number of changes of the catalog so far. A cache compares this number to find out whether it
    /// is stale.
    generation: AtomicU64,
}

/// The reason why a path leads to no resource. Kubernetes has a different 404 response for each
/// reason.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum NotServed {
    /// No handler is registered for the path: neither a custom resource nor a built-in group.
    Path,
    /// The handler of a built-in group does not have the resource.
    Resource,
}

impl Catalog {
    /// Returns the kinds that a real API server of the modelled version serves without CRDs.
    pub(crate) fn builtin() -> Self {
        let kinds = builtin::kinds()
            .iter()
            .map(|kind| (key(kind), Arc::clone(kind)))
            .collect();
        Self {
            kinds: RwLock::new(kinds),
            ..Self::default()
        }
    }

    /// Returns group and version of the APIServices that every server has.
    pub(crate) fn builtin_api_services() -> impl Iterator<Item = (&'static str, &'static str)> {
        builtin::api_services().map(|(group, version, ..)| (group, version))
    }

    /// Returns the priority of a group and of one of its versions, with which discovery sorts them.
    /// Those of groups that are not built in are the same for all CRDs.
    pub(crate) fn priorities(group: &str, version: &str) -> (i64, i64) {
        builtin::priorities(group, version).unwrap_or(CUSTOM_PRIORITIES)
    }

    /// Returns the number of changes of the catalog so far.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Returns the kind that is served at `path`.
    ///
    /// # Errors
    /// [`NotServed`] if no kind is served at the path, or if the path has a namespace where the
    /// kind has none, or lacks a namespace that the kind needs.
    pub(crate) fn lookup(&self, path: &ResourcePath<'_>) -> Result<Arc<Kind>, NotServed> {
        let key = |version: &str, plural: &str| {
            (
                path.group.as_ref().to_owned(),
                version.to_owned(),
                plural.to_owned(),
            )
        };
        let kinds = self.kinds.read();
        let found = kinds.get(&key(&path.version, &path.plural));
        if let Some(kind) = found.filter(|kind| is_in_scope(kind, path)) {
            return Ok(Arc::clone(kind));
        }
        let mut group = kinds
            .range(key("", "")..)
            .take_while(|((group, ..), _)| *group == path.group)
            .map(|(_, kind)| kind);
        match group.any(|kind| !kind.is_custom()) {
            true => Err(NotServed::Resource),
            false => Err(NotServed::Path),
        }
    }

    /// Reports whether a group has built-in kinds.
    pub(crate) fn has_builtin_group(&self, group: &str) -> bool {
        self.find(|kind| kind.group == group && !kind.is_custom())
            .is_some()
    }

    /// Returns the kind that is served in this group and version with this plural name.
    pub(crate) fn get(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Kind>> {
        let key = (group.to_owned(), version.to_owned(), plural.to_owned());
        self.kinds.read().get(&key).cloned()
    }

    /// Returns the first kind for which `is_wanted` returns true.
    pub(crate) fn find(&self, is_wanted: impl Fn(&Kind) -> bool) -> Option<Arc<Kind>> {
        let kinds = self.kinds.read();
        kinds.values().find(|kind| is_wanted(kind)).cloned()
    }

    /// Returns all served kinds, sorted by group, version and plural name.
    pub(crate) fn all(&self) -> Vec<Arc<Kind>> {
        self.kinds.read().values().cloned().collect()
    }

    /// Reports whether a resource is built in. A CRD cannot define a built-in resource.
    pub(crate) fn is_builtin(group: &str, plural: &str) -> bool {
        let mut kinds = builtin::kinds().iter();
        kinds.any(|kind| kind.group == group && kind.plural == plural)
    }

    /// Returns the custom kind of which no version is served and whose resource has this name.
    pub(crate) fn unserved(&self, group_resource: &str) -> Option<Arc<Kind>> {
        self.unserved.read().get(group_resource).cloned()
    }

    /// Serves a resource in exactly the versions in `served`. The change is atomic: no request sees
    /// only some of the versions.
    pub(crate) fn replace(&self, group: &str, plural: &str, served: Vec<Kind>, rest: Option<Kind>) {
        if let Some(kind) = rest {
            let mut unserved = self.unserved.write();
            unserved.insert(kind.group_resource(), Arc::new(kind));
        }
        let mut kinds = self.kinds.write();
        kinds.retain(|(g, _, p), _| g != group || p != plural);
        kinds.extend(served.into_iter().map(|kind| (key(&kind), Arc::new(kind))));
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Adds `kind`, and replaces a kind with the same group, version and plural name.
    #[cfg(test)]
    pub(crate) fn insert(&self, kind: Kind) {
        let mut kinds = self.kinds.write();
        kinds.insert(key(&kind), Arc::new(kind));
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Stops serving a resource, in all versions of its group.
    pub(crate) fn remove(&self, group: &str, plural: &str) {
        self.unserved.write().remove(&format!("{plural}.{group}"));
        let mut kinds = self.kinds.write();
        kinds.retain(|(g, _, p), _| g != group || p != plural);
        self.generation.fetch_add(1, Ordering::Release);
    }
}

fn key(kind: &Kind) -> Key {
    (
        kind.group.clone(),
        kind.version.clone(),
        kind.plural.clone(),
    )
}

/// Reports whether `path` has a namespace if the kind needs one, and has none if the kind is
/// cluster-scoped. A collection of a namespaced kind needs no namespace, because its objects can be
/// listed across all namespaces.
fn is_in_scope(kind: &Kind, path: &ResourcePath<'_>) -> bool {
    match kind.namespaced {
        true => path.namespace.is_some() || path.name.is_none(),
        false => path.namespace.is_none(),
    }
}
