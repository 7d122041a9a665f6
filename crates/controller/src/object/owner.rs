//! The reconciled object as the owner of children and the subject of events.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use opkit_cache::{AnyObject, Informer, Meta, Owner as Reference, Selection, Stored};
use opkit_client::Kind;
use opkit_events::ObjectReference;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::object::Request;

/// Kind, key and metadata of the reconciled object.
#[derive(Debug, Clone)]
pub(crate) struct Owner {
    pub(crate) kind: Arc<Kind>,
    pub(crate) key: Request,
    object: Version,
}

/// Where the metadata of the reconciled object comes from.
#[derive(Debug, Clone)]
enum Version {
    /// The metadata is read from the informer when it is first used. Many reconcile functions that
    /// take a key never use the metadata.
    Later(Informer, OnceLock<Option<Stored>>),
    Object(AnyObject),
    Deleted,
}

impl Owner {
    pub(crate) fn new(kind: Arc<Kind>, key: Request, object: AnyObject) -> Self {
        let object = Version::Object(object);
        Self { kind, key, object }
    }

    /// Creates the owner of a request for a function that takes a key. The object is read from
    /// `informer` only if needed.
    pub(crate) fn of_key(kind: Arc<Kind>, key: Request, informer: Informer) -> Self {
        let object = Version::Later(informer, OnceLock::new());
        Self { kind, key, object }
    }

    #[cfg(test)]
    pub(crate) fn of(kind: Kind, meta: &ObjectMeta) -> Self {
        let key = opkit_client::ObjectKey::of(meta);
        let object = k8s_openapi::api::core::v1::ConfigMap {
            metadata: meta.clone(),
            ..Default::default()
        };
        Self::new(Arc::new(kind), key.into(), Arc::new(object))
    }

    /// Creates the owner of a request whose object is deleted. A deleted object has no UID, so it
    /// cannot own children.
    pub(crate) fn deleted(kind: Arc<Kind>, key: Request) -> Self {
        let object = Version::Deleted;
        Self { kind, key, object }
    }

    fn meta(&self) -> Option<Meta<'_>> {
        match &self.object {
            Version::Later(informer, found) => {
                let found = found.get_or_init(|| informer.stored(&self.key));
                found.as_ref().map(Stored::meta)
            }
            Version::Object(object) => Some(Meta::from(object.object_meta())),
            Version::Deleted => None,
        }
    }

    /// Returns the UID; empty for a deleted object.
    pub(crate) fn uid(&self) -> Cow<'_, str> {
        self.meta().and_then(|meta| meta.uid()).unwrap_or_default()
    }

    pub(crate) fn generation(&self) -> i64 {
        self.meta().and_then(|meta| meta.generation()).unwrap_or(0)
    }

    pub(crate) fn resource_version(&self) -> Option<Cow<'_, str>> {
        self.meta()?.resource_version()
    }

    /// Returns the reference to this object for an event.
    pub(crate) fn object_reference(&self) -> ObjectReference {
        ObjectReference {
            kind: self.kind.clone(),
            key: self.key.key().clone(),
            uid: self.uid().into_owned(),
            resource_version: self.resource_version().map(Cow::into_owned),
        }
    }

    /// Returns the controller reference of a child to this object.
    pub(crate) fn reference(&self) -> Value {
        json!({
            "apiVersion": self.kind.api_version(),
            "kind": self.kind.kind,
            "name": self.key.name,
            "uid": self.uid(),
            "controller": true,
            "blockOwnerDeletion": true,
        })
    }

    /// Returns a selection of the objects with an owner reference to this object, in the namespaces
    /// where such objects can be. [`controls`](Owner::controls) decides which of these objects are
    /// children.
    pub(crate) fn dependents(&self) -> Selection {
        let selection = Selection::default().owned_by(self.uid());
        match &self.key.namespace {
            Some(namespace) => selection.namespace(namespace),
            None => selection,
        }
    }

    /// Reports whether this object controls `child`. The UID alone is not proof: a user who may
    /// create an object in another namespace can write any owner reference there. An object in a
    /// namespace therefore has children in that namespace only, as in Kubernetes' garbage
    /// collector, and the reference must match in UID, name and kind.
    pub(crate) fn controls(&self, child: &Meta<'_>) -> bool {
        let Some(reference) = child.controller() else {
            return false;
        };
        let namespace = self.key.namespace.as_deref();
        !reference.uid.is_empty()
            && reference.uid == self.uid()
            && reference.name == self.key.name
            && is_of_kind(&reference, &self.kind)
            && (namespace.is_none() || child.namespace().as_deref() == namespace)
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.kind, self.key.key())
    }
}

/// The metadata of an object in a response; other fields of the response are not decoded.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Head {
    #[serde(default)]
    pub(crate) metadata: ObjectMeta,
}

/// Reports whether an owner reference refers to an object of `kind`. The API version is not
/// compared, because the reference may have been written with another version.
pub(crate) fn is_of_kind(reference: &Reference<'_>, kind: &Kind) -> bool {
    let group = reference.api_version.split_once('/');
    let group = group.map_or("", |(group, _)| group);
    reference.kind == kind.kind && group == kind.group
}

/// Returns the owner reference that is marked as the controller.
pub(crate) fn controller_of(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references
        .iter()
        .flatten()
        .find(|reference| reference.controller == Some(true))
}

#[cfg(test)]
mod tests;
