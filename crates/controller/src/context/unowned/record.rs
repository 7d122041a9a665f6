//! The record, on an owner, of its children without owner references.
//!
//! The record is an annotation of the owner, written together with a finalizer of the same name
//! before the first child is applied, and a child leaves it only when it is gone. So whatever
//! happens in between, every child that was ever applied is found again. The name has the field
//! manager in it: two controllers of one kind have records of their own.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use opkit_client::{Kind, ObjectKey};
use serde::{Deserialize, Serialize};

/// A child without an owner reference. The version and the Rust type it was applied as do not
/// matter.
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

    /// Whether it is of this kind, in any version.
    pub(crate) fn is_of(&self, kind: &Kind) -> bool {
        self.group == kind.group && self.kind == kind.kind
    }
}

/// The name of the annotation and of the finalizer of the controller with this field manager.
pub(crate) fn record_name(manager: &str) -> String {
    format!("unowned.opkit.dev/{manager}")
}

/// Reads the annotation; there are no children where there is none.
pub(crate) fn parse(annotation: Option<&str>) -> Result<Vec<Recorded>, serde_json::Error> {
    match annotation {
        None | Some("") => Ok(Vec::new()),
        Some(annotation) => serde_json::from_str(annotation),
    }
}

/// The children that are recorded on an object.
pub(crate) fn recorded(meta: &ObjectMeta, name: &str) -> Result<Vec<Recorded>, serde_json::Error> {
    let annotations = meta.annotations.as_ref();
    parse(
        annotations
            .and_then(|all| all.get(name))
            .map(String::as_str),
    )
}
