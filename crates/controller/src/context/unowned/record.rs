//! The record, on an owner, of its children without owner references.
//!
//! The record is an annotation of the owner. It is written together with a finalizer of the same
//! name before the first child is applied, and a child is removed from it only after its deletion.
//! So every child that was ever applied can be found, whatever happens in between. The name
//! contains the field manager, so that two controllers of one kind have separate records.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use opkit_client::{Kind, ObjectKey};
use serde::{Deserialize, Serialize};

/// A recorded child. The version and the Rust type with which it was applied do not matter.
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

/// Returns the name of the annotation and of the finalizer of the controller with this field
/// manager.
pub(crate) fn record_name(manager: &str) -> String {
    format!("unowned.opkit.dev/{manager}")
}

/// Parses the annotation; a missing annotation has no children.
pub(crate) fn parse(annotation: Option<&str>) -> Result<Vec<Recorded>, serde_json::Error> {
    match annotation {
        None | Some("") => Ok(Vec::new()),
        Some(annotation) => serde_json::from_str(annotation),
    }
}

/// Returns the children that are recorded on an object.
pub(crate) fn recorded(meta: &ObjectMeta, name: &str) -> Result<Vec<Recorded>, serde_json::Error> {
    let annotations = meta.annotations.as_ref();
    parse(
        annotations
            .and_then(|all| all.get(name))
            .map(String::as_str),
    )
}
