//! The kinds this server serves: a table for the built-in ones, and whatever CRDs add.
//!
//! Nothing else in this crate knows a kind by name: storage, watch, patch and printing read what
//! they need from here.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

mod builtin;
mod catalog;
pub(crate) mod defaults;
mod definitions;
mod selectors;
#[cfg(test)]
mod tests;
mod verb;

pub(crate) use self::catalog::{Catalog, NotServed};
pub(crate) use self::definitions::Definitions;
pub(crate) use self::verb::Verb;

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
    pub(crate) verbs: Vec<Verb>,
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
    pub(crate) verbs: Vec<Verb>,
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

    /// Reports whether the kind is defined by a CRD, and not built in.
    pub(crate) fn is_custom(&self) -> bool {
        matches!(self.schema, SchemaSource::Custom(_))
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
