//! The typed client of a subresource.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Client;
use crate::rest::Target;
use crate::{ApplyConfiguration, Call, Kind, Object, ObjectKey, Patch, RequestError, Verb, codec};

/// Typed client of a subresource; see [`Client::status`] and [`Client::subresource`].
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

    /// Reads the subresource of an object of kind `K`. The subresource may have another kind, `T`.
    ///
    /// # Errors
    /// Same as [`Client::get`].
    ///
    /// # Cancel safety
    /// Same as [`Client::get`].
    pub async fn get<K: Object, T: DeserializeOwned>(
        &self,
        key: impl Into<ObjectKey>,
    ) -> Result<T, RequestError> {
        let kind = Kind::of::<K>();
        let rest = self.client.rest();
        let key = rest.key(&kind, key);
        let target = Target::object(&kind, &key).subresource(&self.name);
        let response = rest.verbs().get(target, Some(codec::format(&kind)));
        response.await?.decode()
    }

    /// Replaces the subresource, such as the status, with the one in `object`.
    ///
    /// # Errors
    /// Same as [`Client::update`].
    ///
    /// # Cancel safety
    /// Same as [`Client::get`].
    pub async fn update<K: Object>(&self, object: &K) -> Result<K, RequestError> {
        let client = &self.client;
        client.update_subresource(object, Some(&self.name)).await
    }

    /// Patches the subresource.
    ///
    /// # Errors
    /// Same as [`Client::patch`].
    ///
    /// # Cancel safety
    /// Same as [`Client::get`].
    pub async fn patch<K: Object>(
        &self,
        key: impl Into<ObjectKey>,
        patch: Patch<'_>,
    ) -> Result<K, RequestError> {
        let (client, key) = (&self.client, key.into());
        client.patch_subresource(key, Some(&self.name), patch).await
    }

    /// Applies the subresource of `object`. Besides the subresource, `object` must contain only a
    /// name and a namespace.
    ///
    /// # Errors
    /// Same as [`Client::apply`].
    ///
    /// # Cancel safety
    /// Same as [`Client::get`].
    pub async fn apply<K: Object>(&self, object: &K) -> Result<K, RequestError> {
        let client = &self.client;
        client.apply_subresource(object, Some(&self.name)).await
    }

    /// Applies only the fields of the subresource that an apply configuration sets. Besides the
    /// subresource, the configuration must contain only a name and a namespace.
    ///
    /// # Errors
    /// Same as [`Client::apply`].
    ///
    /// # Cancel safety
    /// Same as [`Client::get`].
    pub async fn apply_configuration<A: ApplyConfiguration>(
        &self,
        configuration: &A,
    ) -> Result<A::Object, RequestError> {
        let client = &self.client;
        client.apply_part(configuration, Some(&self.name)).await
    }

    /// Sends a create request with `body` to the subresource, such as `token` of a ServiceAccount.
    ///
    /// # Errors
    /// Same as [`Client::create`].
    ///
    /// # Cancel safety
    /// Same as [`Client::get`].
    pub async fn create<K: Object, T: DeserializeOwned>(
        &self,
        key: impl Into<ObjectKey>,
        body: &impl Serialize,
    ) -> Result<T, RequestError> {
        let kind = Kind::of::<K>();
        let Client { rest, write } = &self.client;
        let key = rest.key(&kind, key);
        let target = Target::object(&kind, &key).subresource(&self.name);
        let body = serde_json::to_value(body).map_err(|cause| RequestError::Build {
            call: Box::new(Call::object(Verb::Create, &kind, &key)),
            cause: cause.into(),
        })?;
        let response = rest.verbs().create_subresource(target, &body, write);
        response.await?.decode()
    }
}
