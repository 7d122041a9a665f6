//! The bounds of a Rust type that stands for a Kubernetes kind.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A Rust type of a Kubernetes kind: what kube's derive and k8s-openapi make.
///
/// It has no methods: it is short for the bounds that every generic function here would repeat, and
/// is implemented for each type that meets them.
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
