//! The result of a deletion.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use crate::{Call, RequestError};

/// The result of a deletion that the server accepted.
///
/// # Examples
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use opkit_client::{Client, Deleted, RequestError};
///
/// async fn remove(client: &Client, map: &ConfigMap) -> Result<(), RequestError> {
///     match client.delete(map).await? {
///         Deleted::Gone => println!("the name is free"),
///         Deleted::Terminating(map) => println!("waiting for {:?}", map.metadata.finalizers),
///     }
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deleted<T> {
    /// The object no longer exists.
    Gone,
    /// The object still exists, until its finalizers are removed or its grace period ends.
    Terminating(T),
}

impl<T> Deleted<T> {
    /// Returns whether the object no longer exists.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Gone)
    }

    /// Converts the object of [`Terminating`](Self::Terminating) by calling `form`.
    pub fn map<U>(self, form: impl FnOnce(T) -> U) -> Deleted<U> {
        match self {
            Self::Gone => Deleted::Gone,
            Self::Terminating(object) => Deleted::Terminating(form(object)),
        }
    }
}

/// Returns whether the server removed an object, given the metadata in the response to a write.
///
/// The server removes an object with the write that removes its last finalizer, or with a deletion
/// without a grace period, and still returns the object. Such an object has a deletion timestamp,
/// no finalizers and a grace period of 0 s. An object without a grace period in its metadata still
/// exists: a Namespace has none, and exists until the finalizers in its spec are removed.
pub fn is_removed(meta: &ObjectMeta) -> bool {
    meta.deletion_timestamp.is_some()
        && meta.finalizers.as_deref().unwrap_or_default().is_empty()
        && meta.deletion_grace_period_seconds == Some(0)
}

/// Returns whether the object no longer exists, given the response to its deletion. The server
/// reports a removed object with a `Status` or, for kinds such as ServiceAccount, with the object
/// without a deletion timestamp.
pub(crate) fn is_gone(call: &Call, response: &[u8]) -> Result<bool, RequestError> {
    #[derive(Deserialize)]
    struct Response {
        #[serde(default)]
        kind: String,
        #[serde(default)]
        metadata: ObjectMeta,
    }
    let response = serde_json::from_slice(response);
    let Response { kind, metadata } = response.map_err(|cause| RequestError::Decode {
        call: Box::new(call.clone()),
        cause,
    })?;
    Ok(kind == "Status" || metadata.deletion_timestamp.is_none() || is_removed(&metadata))
}

#[cfg(test)]
mod tests;
