//! Parts of objects that have a path of their own.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Client, decode, part};
use crate::{Kind, Object, ObjectKey, Patch, RequestError, codec};

/// Reads and writes one subresource; see [`Client::status`] and [`Client::subresource`].
///
/// # Examples
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use opkit_client::{Client, Patch, RequestError};
/// use serde_json::json;
///
/// async fn observed(client: &Client) -> Result<Deployment, RequestError> {
///     let patch = json!({"status": {"observedGeneration": 3}});
///     client.status().patch(("shops", "web"), Patch::Merge(&patch)).await
/// }
/// ```
#[derive(Debug, Clone)]
pub struct SubresourceClient {
    client: Client,
    name: String,
}

impl SubresourceClient {
    pub(super) fn new(client: Client, name: &str) -> Self {
        let name = name.to_owned();
        Self { client, name }
    }

    /// Reads the subresource of an object of the kind `K`, which may be of another kind `T`.
    ///
    /// # Errors
    /// As [`Client::get`].
    ///
    /// # Cancel safety
    /// As [`Client::get`].
    pub async fn get<K: Object, T: DeserializeOwned>(
        &self,
        key: impl Into<ObjectKey>,
    ) -> Result<T, RequestError> {
        let kind = Kind::of::<K>();
        let calls = &self.client.calls;
        let key = calls.key(&kind, key);
        let target = part(&kind, &key, &self.name);
        decode(calls.get(target, codec::accept(&kind)).await?)
    }

    /// Replaces the subresource by that of `object`.
    ///
    /// # Errors
    /// As [`Client::update`].
    ///
    /// # Cancel safety
    /// As [`Client::get`].
    pub async fn update<K: Object>(&self, object: &K) -> Result<K, RequestError> {
        self.client.update_part(object, Some(&self.name)).await
    }

    /// Changes the subresource by a patch.
    ///
    /// # Errors
    /// As [`Client::patch`].
    ///
    /// # Cancel safety
    /// As [`Client::get`].
    pub async fn patch<K: Object>(
        &self,
        key: impl Into<ObjectKey>,
        patch: Patch<'_>,
    ) -> Result<K, RequestError> {
        let key = key.into();
        self.client.patch_part(key, Some(&self.name), patch).await
    }

    /// Applies the subresource of `object`; its other fields must be empty but for its identity.
    ///
    /// # Errors
    /// As [`Client::apply`].
    ///
    /// # Cancel safety
    /// As [`Client::get`].
    pub async fn apply<K: Object>(&self, object: &K) -> Result<K, RequestError> {
        self.client.apply_part(object, Some(&self.name)).await
    }

    /// Makes what the subresource of an object of the kind `K` makes, such as a token.
    ///
    /// # Errors
    /// As [`Client::create`].
    ///
    /// # Cancel safety
    /// As [`Client::get`].
    pub async fn create<K: Object, T: DeserializeOwned>(
        &self,
        key: impl Into<ObjectKey>,
        body: &impl Serialize,
    ) -> Result<T, RequestError> {
        let kind = Kind::of::<K>();
        let calls = &self.client.calls;
        let key = calls.key(&kind, key);
        let target = part(&kind, &key, &self.name);
        let body = serde_json::to_value(body).map_err(|cause| RequestError::Build {
            call: Box::new(crate::Call::object(crate::Verb::Create, &kind, &key)),
            cause: cause.into(),
        })?;
        decode(calls.create_part(target, &body).await?)
    }
}
