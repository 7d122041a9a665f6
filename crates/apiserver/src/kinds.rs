//! The kinds this server serves: a table for the built-in ones, and whatever CRDs add.
//!
//! Nothing else in this crate knows a kind by name: storage, watch, patch and printing read what
//! they need from here.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use serde_json::Value;

mod builtin;
pub(crate) mod defaults;
mod definitions;
mod selectors;
#[cfg(test)]
mod tests;

pub(crate) use definitions::Definitions;

/// One served resource: a plural in a version of a group.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Kind {
    /// Empty for the core group.
    #[serde(default)]
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    #[serde(default)]
    pub(crate) short_names: Vec<String>,
    #[serde(default)]
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    pub(crate) verbs: Vec<String>,
    #[serde(default)]
    pub(crate) subresources: Vec<Subresource>,
    /// What `kubectl get` prints, beside what the client adds itself.
    #[serde(default)]
    pub(crate) columns: Vec<Column>,
    /// Where the schema is.
    pub(crate) schema: SchemaSource,
}

/// A subresource, such as `status` or `scale`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Subresource {
    pub(crate) name: String,
    pub(crate) verbs: Vec<String>,
    /// Group, version and kind of its body where they differ from the parent's.
    #[serde(default)]
    pub(crate) response: Option<(String, String, String)>,
    /// For the `scale` of a custom resource: its paths.
    #[serde(default)]
    pub(crate) scale: Option<ScalePaths>,
}

/// Where a kind keeps what its `scale` subresource shows, as simple JSON paths (`.spec.replicas`).
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ScalePaths {
    pub(crate) spec_replicas: String,
    pub(crate) status_replicas: String,
    #[serde(default)]
    pub(crate) label_selector: Option<String>,
}

/// One printer column, with where its cells come from.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Column {
    pub(crate) name: String,
    #[serde(rename = "type")]
    pub(crate) type_: String,
    #[serde(default)]
    pub(crate) format: String,
    #[serde(default)]
    pub(crate) description: String,
    /// 0 is always shown, anything higher with `-o wide`.
    #[serde(default)]
    pub(crate) priority: i32,
    /// A JSONPath (`.spec.replicas`), or the name of a computed cell. Empty if nobody said.
    #[serde(default)]
    pub(crate) cell: String,
}

/// A kind's OpenAPI schema.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum SchemaSource {
    /// The name of a definition in the table of built-in kinds.
    Definition(String),
    /// The `openAPIV3Schema` of a CRD version.
    Custom(Arc<Value>),
}

impl Kind {
    /// `v1` or `apps/v1`.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The subresource of that name.
    pub(crate) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources
            .iter()
            .find(|subresource| subresource.name == name)
    }

    /// `apps/v1 deployments`: how the data files name a resource.
    fn resource_line(&self) -> String {
        format!("{} {}", self.api_version(), self.plural)
    }

    /// `deployments.apps`, or `pods` in the core group: how Kubernetes names a resource in
    /// messages.
    pub(crate) fn group_resource(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }
}

/// Every kind served at the moment.
#[derive(Debug, Default)]
pub(crate) struct Catalog {
    kinds: RwLock<BTreeMap<(String, String, String), Arc<Kind>>>,
    /// Custom kinds that no version of is served, but whose objects are still there.
    unserved: RwLock<BTreeMap<String, Arc<Kind>>>,
    /// Grows with every change, so that whatever is made from the catalog can be kept.
    generation: AtomicU64,
    /// What has been made from it for clients that ask for OpenAPI.
    openapi: crate::openapi::Cache,
}

impl Catalog {
    /// The kinds that a real API server of the modelled version serves by itself.
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

    /// The groups of the built-in kinds in the order of a real server, without the core group.
    pub(crate) fn builtin_groups() -> impl Iterator<Item = &'static str> {
        builtin::groups()
    }

    /// The OpenAPI documents made from this catalog.
    pub(crate) fn openapi(&self) -> &crate::openapi::Cache {
        &self.openapi
    }

    /// How often the catalog has changed.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The kind served at `group`, `version`, `plural`.
    pub(crate) fn get(&self, group: &str, version: &str, plural: &str) -> Option<Arc<Kind>> {
        let key = (group.to_owned(), version.to_owned(), plural.to_owned());
        self.kinds.read().get(&key).cloned()
    }

    /// All of them, by group, version and plural.
    pub(crate) fn all(&self) -> Vec<Arc<Kind>> {
        self.kinds.read().values().cloned().collect()
    }

    /// Whether a resource is built in, and so not for a CRD to define.
    pub(crate) fn is_builtin(group: &str, plural: &str) -> bool {
        let mut kinds = builtin::kinds().iter();
        kinds.any(|kind| kind.group == group && kind.plural == plural)
    }

    /// A kind by the name of its resource, though none of its versions is served.
    pub(crate) fn unserved(&self, group_resource: &str) -> Option<Arc<Kind>> {
        self.unserved.read().get(group_resource).cloned()
    }

    /// Serves a resource in these versions and no others, from one moment to the next.
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

    /// Serves `kind` from now on, in place of what was served there.
    #[cfg(test)]
    pub(crate) fn insert(&self, kind: Kind) {
        let mut kinds = self.kinds.write();
        kinds.insert(key(&kind), Arc::new(kind));
        self.generation.fetch_add(1, Ordering::Release);
    }

    /// Stops serving a resource in all versions of its group.
    pub(crate) fn remove(&self, group: &str, plural: &str) {
        self.unserved.write().remove(&format!("{plural}.{group}"));
        let mut kinds = self.kinds.write();
        kinds.retain(|(g, _, p), _| g != group || p != plural);
        self.generation.fetch_add(1, Ordering::Release);
    }
}

fn key(kind: &Kind) -> (String, String, String) {
    (
        kind.group.clone(),
        kind.version.clone(),
        kind.plural.clone(),
    )
}

/// Cuts a hand-written file: a line without indent begins a section, those with one belong to it,
/// and `#` begins a comment.
fn sections(text: &'static str) -> BTreeMap<&'static str, Vec<&'static str>> {
    let mut sections: BTreeMap<&'static str, Vec<&'static str>> = BTreeMap::new();
    let mut current = "";
    for line in text.lines() {
        if line.trim().is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        if line.starts_with(' ') {
            sections.entry(current).or_default().push(line.trim());
        } else {
            current = line.trim();
        }
    }
    sections
}
