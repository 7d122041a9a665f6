//! The kinds that this server serves: the built-in kinds, which are read from data files, and the
//! kinds of CRDs.
//!
//! Other modules of the API server read scope, verbs, schema and columns of a kind from this
//! module.

use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use opkit_apimachinery::identity::Verb;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::crd::Versions;

mod builtin;
mod catalog;
pub(crate) mod defaults;
mod definitions;
mod selectors;
#[cfg(test)]
mod tests;

pub(crate) use self::catalog::{Catalog, NotServed};
pub(crate) use self::definitions::Definitions;

/// A kind in one version, and the resource that serves it.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Kind {
    /// API group; empty for the core group.
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
    /// The columns of `kubectl get`, without the columns that kubectl adds.
    #[serde(default)]
    pub(crate) columns: Vec<Column>,

    /// Warning that each response about the kind has, if this version of the kind is deprecated.
    #[serde(default)]
    pub(crate) deprecation: Option<String>,

    pub(crate) schema: SchemaSource,

    /// The part of a custom kind that a built-in kind does not have.
    #[serde(skip)]
    pub(crate) custom: Option<Arc<CustomKind>>,
}

/// The part of a custom kind that a built-in kind does not have.
#[derive(Debug)]
pub(crate) struct CustomKind {
    /// All versions of the kind.
    pub(crate) versions: Arc<Versions>,
    /// The kind of lists.
    pub(crate) list_kind: String,
    /// The names of the fields that field selectors can use, such as `spec.color`.
    pub(crate) selectable_fields: Vec<String>,
}

/// A subresource, such as `status` or `scale`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Subresource {
    pub(crate) name: String,
    pub(crate) verbs: Vec<Verb>,
    /// Group, version and kind of the objects that the subresource returns. `None` if the
    /// subresource returns objects of the parent resource's kind.
    #[serde(default)]
    pub(crate) response: Option<(String, String, String)>,
    /// The field paths of the subresource `scale` of a custom resource.
    #[serde(default)]
    pub(crate) scale: Option<ScalePaths>,
}

/// The paths to the fields of an object that its `scale` subresource contains, such as
/// `.spec.replicas`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ScalePaths {
    pub(crate) spec_replicas: String,
    pub(crate) status_replicas: String,
    #[serde(default)]
    pub(crate) label_selector: Option<String>,
}

/// One printer column.
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
    /// Priority: 0 if the column is always shown, higher if it is shown only with `-o wide`.
    #[serde(default)]
    pub(crate) priority: i32,
    /// The source of the cells' values: a JSONPath such as `.spec.replicas`, or the name of a
    /// function that computes the cell. Empty if the source is not known.
    #[serde(default)]
    pub(crate) cell: String,
}

/// The source of a kind's OpenAPI schema.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum SchemaSource {
    /// The name of a definition in the table of built-in kinds.
    Definition(String),
    /// The `openAPIV3Schema` of a CRD version.
    Custom(Arc<Value>),
}

impl Kind {
    /// Returns the `apiVersion` of objects, such as `v1` or `apps/v1`.
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

    /// Returns the kind of lists of this kind.
    pub(crate) fn list_kind(&self) -> String {
        match &self.custom {
            Some(custom) => custom.list_kind.clone(),
            None => format!("{}List", self.kind),
        }
    }

    /// Returns the versions of a custom kind.
    pub(crate) fn versions(&self) -> Option<&Versions> {
        self.custom.as_deref().map(|custom| &*custom.versions)
    }

    /// Returns the subresource with this name.
    pub(crate) fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources
            .iter()
            .find(|subresource| subresource.name == name)
    }

    /// Returns the name of the resource in the data files, such as `apps/v1 deployments`.
    fn resource_line(&self) -> String {
        format!("{} {}", self.api_version(), self.plural)
    }

    /// Returns the name of the resource in messages of Kubernetes, such as `deployments.apps`, or
    /// `pods` in the core group.
    pub(crate) fn group_resource(&self) -> String {
        if self.group.is_empty() {
            self.plural.clone()
        } else {
            format!("{}.{}", self.plural, self.group)
        }
    }
}

/// Splits a data file into sections. A line without indent is the name of a section, and the
/// indented lines that follow are the content of the section. `#` starts a comment.
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
