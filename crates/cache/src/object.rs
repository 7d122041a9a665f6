//! Type-erased cached objects, and the codec that decodes them into their Rust type.

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

/// Cached object of any type, whose metadata can be read and which can be cast back to its type.
pub trait CachedObject: Any + Send + Sync {
    /// Returns the metadata.
    fn object_meta(&self) -> &ObjectMeta;
    /// Returns the object as `dyn Any`; see [`downcast`].
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

/// Shared, type-erased object.
pub type AnyObject = Arc<dyn CachedObject>;

/// Casts an object back to the type `K`; `None` if the object has another type.
pub fn downcast<K: Object>(object: &AnyObject) -> Option<Arc<K>> {
    object.clone().into_any().downcast().ok()
}

/// Object of a kind that is known only at run time. A `DynamicObject` dereferences to an
/// [`Unstructured`], which has all fields of the object.
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
    /// Returns the metadata as an [`ObjectMeta`].
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

/// Byte ranges of a stored object (tape) whose fields the Rust type does not read.
pub(crate) type Ignored = RefCell<Vec<Range<usize>>>;

type Decode =
    fn(&[u8], &Vocabulary, Types<'_>, Option<&Ignored>) -> Result<AnyObject, serde_json::Error>;

/// Kind of a Rust type, and the function that decodes the type from the stored binary form (tape).
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

    /// Creates the codec of a kind that has no Rust type.
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

    /// Decodes an object from its stored binary form (tape), and records in `ignored` the fields
    /// that the Rust type does not read.
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

    /// Returns the protobuf message type of the kind, or that of its metadata alone. `None` if the
    /// kind has no message type: custom resources are sent as JSON only.
    pub(crate) fn message(&self, metadata_only: bool) -> Option<MessageType> {
        match metadata_only {
            true => MessageType::of("meta.k8s.io/v1", "PartialObjectMetadata"),
            false => MessageType::of(&self.api_version, &self.kind.kind),
        }
    }
}
