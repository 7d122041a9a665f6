//! The object that is reconciled, as the owner of children and the subject of events.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use opkit_cache::Meta;
use opkit_client::Kind;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Request;

/// Kind, key and identity of the reconciled object.
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    pub(crate) kind: Arc<Kind>,
    pub(crate) key: Request,
    pub(crate) uid: String,
    pub(crate) generation: i64,
    pub(crate) resource_version: Option<String>,
}

impl Owner {
    pub(crate) fn new(kind: Arc<Kind>, key: Request, meta: &Meta<'_>) -> Self {
        Owner {
            kind,
            key,
            uid: meta.uid().map(Cow::into_owned).unwrap_or_default(),
            generation: meta.generation().unwrap_or(0),
            resource_version: meta.resource_version().map(Cow::into_owned),
        }
    }

    #[cfg(test)]
    pub(crate) fn of(kind: Kind, meta: &ObjectMeta) -> Self {
        let key = opkit_client::ObjectKey::of(meta);
        Owner::new(Arc::new(kind), key.into(), &Meta::from(meta))
    }

    /// What a key form is called with for an object that is gone: it owns nothing.
    pub(crate) fn gone(kind: Arc<Kind>, key: Request) -> Self {
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
        write!(f, "{} {}", self.kind.kind, self.key.key())
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
