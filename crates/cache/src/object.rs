//! A cached object without its Rust type, and what the engine knows of the type.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use opkit_apimachinery::protobuf::MessageType;
use opkit_client::{Kind, Object, Unstructured};
use serde::Deserialize;

use crate::tape::deserialize::{self, Types};
use crate::tape::strings::Vocabulary;

/// An object in the cache: its metadata can be read, and it can be cast back to its type.
pub trait CachedObject: Any + Send + Sync {
    /// The metadata.
    fn object_meta(&self) -> &ObjectMeta;
    /// The object as any value; see [`downcast`].
    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync>;
}

impl<K: Object> CachedObject for K {
    fn object_meta(&self) -> &ObjectMeta {
        kube::Resource::meta(self)
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

impl std::fmt::Debug for dyn CachedObject {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CachedObject")
            .field("namespace", &self.object_meta().namespace)
            .field("name", &self.object_meta().name)
            .field("resource_version", &self.object_meta().resource_version)
            .finish_non_exhaustive()
    }
}

/// A shared object without its type.
pub type AnyObject = Arc<dyn CachedObject>;

/// The object with its type back; `None` if it has another.
pub fn downcast<K: Object>(object: &AnyObject) -> Option<Arc<K>> {
    object.clone().into_any().downcast().ok()
}

/// An object of a kind that is known only at run time: its metadata, and all its fields as an
/// [`Unstructured`], to which it dereferences.
#[derive(Debug, Clone)]
pub struct DynamicObject {
    metadata: ObjectMeta,
    object: Unstructured,
}

impl std::ops::Deref for DynamicObject {
    type Target = Unstructured;

    fn deref(&self) -> &Unstructured {
        &self.object
    }
}

impl DynamicObject {
    /// The metadata as a Rust type.
    pub fn metadata(&self) -> &ObjectMeta {
        &self.metadata
    }
}

impl CachedObject for DynamicObject {
    fn object_meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn into_any(self: Arc<Self>) -> Arc<dyn Any + Send + Sync> {
        self
    }
}

/// Entries of a tape that a type does not look at.
pub(crate) type Ignored = RefCell<Vec<Range<usize>>>;

type Decode =
    fn(&[u8], &Vocabulary, Types<'_>, Option<&Ignored>) -> Result<AnyObject, serde_json::Error>;

/// What the engine knows of a Rust type: its kind, and how to read it from a tape.
#[derive(Debug, Clone)]
pub(crate) struct Codec {
    pub(crate) kind: Kind,
    pub(crate) type_id: TypeId,
    api_version: String,
    decode: Decode,
}

impl Codec {
    pub(crate) fn of<K: Object>() -> Self {
        let kind = Kind::of::<K>();
        Self {
            api_version: kind.api_version(),
            kind,
            type_id: TypeId::of::<K>(),
            decode: |tape, vocabulary, types, ignored| {
                let object: K = deserialize::decode(tape, vocabulary, types, ignored)?;
                Ok(Arc::new(object))
            },
        }
    }

    /// Of a kind that has no Rust type.
    pub(crate) fn dynamic(kind: Kind) -> Self {
        Self {
            api_version: kind.api_version(),
            kind,
            type_id: TypeId::of::<DynamicObject>(),
            decode: |tape, vocabulary, types, ignored| {
                let object: Unstructured = deserialize::decode(tape, vocabulary, types, ignored)?;
                let metadata = match object.fields().get("metadata") {
                    Some(metadata) => ObjectMeta::deserialize(metadata)?,
                    None => ObjectMeta::default(),
                };
                Ok(Arc::new(DynamicObject { metadata, object }))
            },
        }
    }

    /// Reads a tape; notes in `ignored` what the type does not look at.
    pub(crate) fn decode(
        &self,
        tape: &[u8],
        vocabulary: &Vocabulary,
        ignored: Option<&Ignored>,
    ) -> Result<AnyObject, serde_json::Error> {
        let types = Types {
            api_version: &self.api_version,
            kind: &self.kind.kind,
        };
        (self.decode)(tape, vocabulary, types, ignored)
    }

    /// The protobuf message of the kind, or of its metadata alone; `None` if it has none: custom
    /// resources are sent as JSON only.
    pub(crate) fn message(&self, metadata_only: bool) -> Option<MessageType> {
        match metadata_only {
            true => MessageType::of("meta.k8s.io/v1", "PartialObjectMetadata"),
            false => MessageType::of(&self.api_version, &self.kind.kind),
        }
    }
}
