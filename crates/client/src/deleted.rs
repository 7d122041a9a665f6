//! What became of an object that was deleted.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Deserialize;

use crate::{Call, RequestError};

/// The outcome of a deletion that the server accepted.
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
    /// The object is gone.
    Gone,
    /// The object, which stays until its finalizers are removed or its grace period ends.
    Terminating(T),
}

impl<T> Deleted<T> {
    /// Whether the object is gone.
    pub fn is_gone(&self) -> bool {
        matches!(self, Self::Gone)
    }

    /// Returns the outcome with another form of the object.
    pub fn map<U>(self, form: impl FnOnce(T) -> U) -> Deleted<U> {
        match self {
            Self::Gone => Deleted::Gone,
            Self::Terminating(object) => Deleted::Terminating(form(object)),
        }
    }
}

/// Returns whether an object of this metadata, as a write returned it, is gone: it is being deleted
/// and nothing holds it any longer.
///
/// The server removes such an object with the write that takes the last finalizer, or with a
/// deletion without a grace period, and still returns it. Without a grace period in its metadata an
/// object counts as there: a Namespace has none and stays for the finalizers in its spec.
pub fn has_ended(meta: &ObjectMeta) -> bool {
    meta.deletion_timestamp.is_some()
        && meta.finalizers.as_deref().unwrap_or_default().is_empty()
        && meta.deletion_grace_period_seconds == Some(0)
}

/// Returns whether the response to a deletion means that the object is gone. It is a `Status` then,
/// or, of kinds such as ServiceAccount, the object as it was.
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
    Ok(kind == "Status" || metadata.deletion_timestamp.is_none() || has_ended(&metadata))
}

#[cfg(test)]
mod tests;
