//! A cached object without its Rust type.

use std::any::Any;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use opkit_client::{Kind, Object};

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

/// What the engine knows of a Rust type: its kind, and how to decode it.
#[derive(Debug, Clone)]
pub(crate) struct Codec {
    pub(crate) kind: Kind,
    pub(crate) decode: fn(&[u8]) -> Result<AnyObject, serde_json::Error>,
}

impl Codec {
    pub(crate) fn of<K: Object>() -> Self {
        Codec {
            kind: Kind::of::<K>(),
            decode: |bytes| Ok(Arc::new(serde_json::from_slice::<K>(bytes)?)),
        }
    }
}
