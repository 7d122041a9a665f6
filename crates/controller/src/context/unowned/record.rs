//! The record of an owner's children without owner references.
//!
//! The record is an annotation of the owner. The annotation is written together with a finalizer of
//! the same name before the first child is applied, and a child is removed from the record only
//! after the child's deletion. So every child that was ever applied can be found, even after a
//! crash. The name of the annotation contains the field manager, so that two controllers of one
//! kind have separate records.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use opkit_client::{Kind, ObjectKey};
use serde::{Deserialize, Serialize};

/// A recorded child. The record contains neither the API version nor the Rust type with which the
/// child was applied.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Recorded {
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) group: String,
    pub(crate) kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
}

impl Recorded {
    pub(crate) fn new(kind: &Kind, key: &ObjectKey) -> Self {
        Self {
            group: kind.group.clone(),
            kind: kind.kind.clone(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
        }
    }

    pub(crate) fn key(&self) -> ObjectKey {
        ObjectKey {
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        }
    }

    /// Reports whether the child is of this kind, in any version.
    pub(crate) fn is_of(&self, kind: &Kind) -> bool {
        self.group == kind.group && self.kind == kind.kind
    }
}

/// Returns the name of the record of the controller with this field manager: the name of the
/// annotation and of the finalizer.
pub(crate) fn record_name(manager: &str) -> String {
    format!("unowned.opkit.dev/{manager}")
}

/// Parses the record; a missing or empty annotation means that there are no children.
pub(crate) fn parse(annotation: Option<&str>) -> Result<Vec<Recorded>, serde_json::Error> {
    match annotation {
        None | Some("") => Ok(Vec::new()),
        Some(annotation) => serde_json::from_str(annotation),
    }
}

/// Returns the children that the annotation `name` of an object records.
pub(crate) fn recorded(meta: &ObjectMeta, name: &str) -> Result<Vec<Recorded>, serde_json::Error> {
    let annotations = meta.annotations.as_ref();
    parse(
        annotations
            .and_then(|all| all.get(name))
            .map(String::as_str),
    )
}
