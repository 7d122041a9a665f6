//! The trait bounds for Rust types of Kubernetes kinds.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Rust type of a Kubernetes kind, as kube's derive and k8s-openapi generate it.
///
/// The trait has no methods: it abbreviates the bounds that every generic function of this crate
/// would repeat, and is implemented for each type that meets these bounds.
pub trait Object:
    kube::Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

impl<K> Object for K where
    K: kube::Resource<DynamicType = ()>
        + Clone
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}
