//! The byte-level client: one method per verb, which takes the kind as a value, and requests to any
//! path.

mod request;
mod response;
mod send;
mod verbs;
mod watch;

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value;

pub use self::request::RestRequest;
pub use self::response::{Encoding, Response, ResponseFormat};
pub(crate) use self::verbs::{Payload, Target};
pub use self::watch::WatchFrames;
use crate::{
    DeleteOptions, Deleted, Kind, ListOptions, ObjectKey, Patch, RequestError, WriteOptions,
};

/// Client that returns responses as bytes, and names verb, kind and object in each error. Keys of
/// namespaced objects must contain the namespace: the client adds no default namespace. Cloning is
/// cheap.
///
/// # Examples
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use opkit_client::{Kind, RequestError, RestClient};
///
/// async fn read(kube: kube::Client) -> Result<(), RequestError> {
///     let client = RestClient::new(kube);
///     match client.get(&Kind::of::<ConfigMap>(), &("default", "settings").into()).await {
///         Err(error) if error.is_not_found() => Ok(()),
///         response => response.map(drop),
///     }
/// }
/// ```
#[derive(Clone)]
pub struct RestClient {
    kube: kube::Client,
    /// Kinds for which the server refused protobuf. Has at most as many entries as there are kinds.
    json_only: Arc<Mutex<HashSet<Kind>>>,
}

impl std::fmt::Debug for RestClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RestClient").finish_non_exhaustive()
    }
}

impl RestClient {
    /// Creates a client that sends through `kube`.
    pub fn new(kube: kube::Client) -> Self {
        let json_only = Arc::default();
        Self { kube, json_only }
    }

    /// Returns the kube client that requests are sent through.
    pub fn kube(&self) -> kube::Client {
        self.kube.clone()
    }

    /// Reads an object.
    ///
    /// # Errors
    /// A [`RequestError`] that names the request, as for every method of this client.
    ///
    /// # Cancel safety
    /// Dropping the future drops the request. Whether the server has acted on the request is then
    /// unknown. This holds for every method of this client.
    pub async fn get(&self, kind: &Kind, key: &ObjectKey) -> Result<Bytes, RequestError> {
        let response = self.verbs().get(Target::object(kind, key), None).await?;
        Ok(response.body)
    }

    /// Reads a collection, or one page of it if the options have a limit.
    ///
    /// # Cancel safety
    /// Same as [`get`](RestClient::get).
    pub async fn list(
        &self,
        kind: &Kind,
        options: &ListOptions,
        format: ResponseFormat,
    ) -> Result<Response, RequestError> {
        self.verbs().list(kind, options, format).await
    }

    /// Watches a collection, with bookmarks.
    ///
    /// # Cancel safety
    /// Same as [`get`](RestClient::get).
    pub async fn watch(
        &self,
        kind: &Kind,
        options: &ListOptions,
        format: ResponseFormat,
    ) -> Result<WatchFrames, RequestError> {
        self.verbs().watch(kind, options, format).await
    }

    /// Creates an object. Fails if an object with the same name exists.
    ///
    /// # Cancel safety
    /// Same as [`get`](RestClient::get).
    pub async fn create(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        object: &Value,
        options: &WriteOptions,
    ) -> Result<Bytes, RequestError> {
        let name = object.pointer("/metadata/name").and_then(Value::as_str);
        let key = ObjectKey {
            namespace: namespace.map(str::to_owned),
            name: name.unwrap_or_default().to_owned(),
        };
        let payload = Payload {
            protobuf: None,
            json: &|| serde_json::to_vec(object),
        };
        let created = self
            .verbs()
            .create(kind, &key, payload, None, options)
            .await;
        Ok(created?.body)
    }

    /// Patches an object, or its `subresource`. An apply takes fields from other field managers
    /// only if [`options.force`](WriteOptions::force) is set.
    ///
    /// # Cancel safety
    /// Same as [`get`](RestClient::get).
    pub async fn patch(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        subresource: Option<&str>,
        patch: Patch<'_>,
        options: &WriteOptions,
    ) -> Result<Bytes, RequestError> {
        let target = Target {
            subresource,
            ..Target::object(kind, key)
        };
        let patched = self.verbs().patch(target, patch, None, options).await;
        Ok(patched?.body)
    }

    /// Deletes an object. Returns [`Deleted::Gone`], or [`Deleted::Terminating`] with the object if
    /// finalizers or a grace period delay the removal.
    ///
    /// # Cancel safety
    /// Same as [`get`](RestClient::get).
    pub async fn delete(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        options: &DeleteOptions,
    ) -> Result<Deleted<Bytes>, RequestError> {
        let (target, write) = (Target::object(kind, key), WriteOptions::default());
        let deleted = self.verbs().delete(target, options, None, &write).await?;
        Ok(deleted.map(|response| response.body))
    }

    /// Returns the key, with the client's default namespace if the key has no namespace. For a
    /// cluster-scoped kind, returns the key without a namespace.
    pub(crate) fn key(&self, kind: &Kind, key: impl Into<ObjectKey>) -> ObjectKey {
        let mut key = key.into();
        if kind.namespaced {
            key = key.or_namespace(Some(self.kube.default_namespace()));
        } else {
            key.namespace = None;
        }
        key
    }

    fn is_json_only(&self, kind: &Kind) -> bool {
        self.json_only.lock().contains(kind)
    }

    fn set_json_only(&self, kind: &Kind) {
        self.json_only.lock().insert(kind.clone());
    }
}

#[cfg(test)]
mod tests;
