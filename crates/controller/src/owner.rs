//! The object that is reconciled, as the owner of children and the subject of events.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use opkit_client::{Kind, ObjectKey};
use serde::Deserialize;
use serde_json::{Value, json};

/// Kind, key and identity of the reconciled object.
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    pub(crate) kind: Kind,
    pub(crate) key: ObjectKey,
    pub(crate) uid: String,
    pub(crate) generation: i64,
    pub(crate) resource_version: Option<String>,
}

impl Owner {
    pub(crate) fn new(kind: Kind, meta: &ObjectMeta) -> Self {
        Owner {
            kind,
            key: ObjectKey::of(meta),
            uid: meta.uid.clone().unwrap_or_default(),
            generation: meta.generation.unwrap_or(0),
            resource_version: meta.resource_version.clone(),
        }
    }

    /// What a key form is called with for an object that is gone: it owns nothing.
    pub(crate) fn gone(kind: Kind, key: ObjectKey) -> Self {
        Owner {
            kind,
            key,
            uid: String::new(),
            generation: 0,
            resource_version: None,
        }
    }

    /// The controller reference that a child has to this object.
    pub(crate) fn reference(&self) -> Value {
        json!({
            "apiVersion": self.kind.api_version(),
            "kind": self.kind.kind,
            "name": self.key.name,
            "uid": self.uid,
            "controller": true,
            "blockOwnerDeletion": true,
        })
    }

    /// Whether `child` is controlled by this very object.
    pub(crate) fn controls(&self, child: &ObjectMeta) -> bool {
        controller_of(child).is_some_and(|reference| reference.uid == self.uid)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.kind, self.key)
    }
}

/// Only the metadata of an answer.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Head {
    #[serde(default)]
    pub(crate) metadata: ObjectMeta,
}

/// The one owner reference that is marked as the controller.
pub(crate) fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references
        .iter()
        .flatten()
        .find(|reference| reference.controller == Some(true))
}
