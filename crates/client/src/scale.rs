//! The scale of anything that has one.

use k8s_openapi::api::autoscaling::v1::Scale;
use serde_json::json;

use crate::calls::{Calls, Payload};
use crate::client::{decode, part};
use crate::{Kind, ObjectKey, Patch, RequestError, WriteOptions, codec};

/// Reads and writes `/scale` of one resource, built-in or custom.
///
/// # Examples
/// ```
/// use k8s_openapi::api::apps::v1::Deployment;
/// use opkit_client::{Kind, RequestError, ScaleClient};
///
/// async fn grow(kube: kube::Client) -> Result<i32, RequestError> {
///     let scales = ScaleClient::new(kube, Kind::of::<Deployment>());
///     let scale = scales.get(("shops", "web")).await?;
///     let replicas = scale.spec.and_then(|spec| spec.replicas).unwrap_or_default() + 1;
///     scales.set(("shops", "web"), replicas).await?;
///     Ok(replicas)
/// }
/// ```
#[derive(Debug, Clone)]
pub struct ScaleClient {
    calls: Calls,
    kind: Kind,
}

impl ScaleClient {
    /// For the resource of `kind`, which may come from a [`RestMapper`](crate::RestMapper) or from
    /// [`Kind::at`].
    pub fn new(kube: kube::Client, kind: Kind) -> Self {
        Self::from_calls(Calls::new(kube), kind)
    }

    pub(crate) fn from_calls(calls: Calls, kind: Kind) -> Self {
        Self { calls, kind }
    }

    /// This client, writing as `options` say.
    pub fn with(mut self, options: WriteOptions) -> Self {
        self.calls.write = options;
        self
    }

    /// Reads the scale of an object.
    ///
    /// # Errors
    /// A [`RequestError`] that names the call; not found if there is no such object, or its
    /// resource has no scale.
    ///
    /// # Cancel safety
    /// As [`Client::get`](crate::Client::get).
    pub async fn get(&self, key: impl Into<ObjectKey>) -> Result<Scale, RequestError> {
        let key = self.calls.key(&self.kind, key);
        let target = part(&self.kind, &key, "scale");
        let accept = codec::accept(&Kind::of::<Scale>());
        decode(self.calls.get(target, accept).await?)
    }

    /// Sets how many replicas an object wants.
    ///
    /// # Errors
    /// As [`get`](ScaleClient::get).
    ///
    /// # Cancel safety
    /// As [`Client::get`](crate::Client::get).
    pub async fn set(
        &self,
        key: impl Into<ObjectKey>,
        replicas: i32,
    ) -> Result<Scale, RequestError> {
        let patch = json!({"spec": {"replicas": replicas}});
        self.patch(key, Patch::Merge(&patch)).await
    }

    /// Replaces the scale of an object; only of the version that it carries, if it does.
    ///
    /// # Errors
    /// As [`get`](ScaleClient::get); [`is_conflict`](RequestError::is_conflict).
    ///
    /// # Cancel safety
    /// As [`Client::get`](crate::Client::get).
    pub async fn update(&self, scale: &Scale) -> Result<Scale, RequestError> {
        let key = self.calls.key(&self.kind, ObjectKey::of(&scale.metadata));
        let target = part(&self.kind, &key, "scale");
        let payload = Payload {
            protobuf: None,
            json: &|| serde_json::to_vec(scale),
        };
        decode(self.calls.update(target, payload).await?)
    }

    /// Changes the scale of an object by a patch.
    ///
    /// # Errors
    /// As [`get`](ScaleClient::get).
    ///
    /// # Cancel safety
    /// As [`Client::get`](crate::Client::get).
    pub async fn patch(
        &self,
        key: impl Into<ObjectKey>,
        patch: Patch<'_>,
    ) -> Result<Scale, RequestError> {
        let key = self.calls.key(&self.kind, key);
        let target = part(&self.kind, &key, "scale");
        let accept = codec::accept(&Kind::of::<Scale>());
        decode(self.calls.patch(target, patch, accept).await?)
    }
}
