//! The client of the subresource `scale`.

use k8s_openapi::api::autoscaling::v1::Scale;
use serde_json::json;

use crate::rest::{Payload, Target};
use crate::{
    Kind, ObjectKey, Patch, RequestError, ResponseFormat, RestClient, WriteOptions, codec,
};

/// Client of the subresource `scale` of one kind, built-in or custom.
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
    rest: RestClient,
    write: WriteOptions,
    kind: Kind,
}

impl ScaleClient {
    /// Creates a client for the objects of `kind`, which sends through `kube`.
    pub fn new(kube: kube::Client, kind: Kind) -> Self {
        Self::from_parts(RestClient::new(kube), WriteOptions::default(), kind)
    }

    pub(crate) fn from_parts(rest: RestClient, write: WriteOptions, kind: Kind) -> Self {
        Self { rest, write, kind }
    }

    /// Sets the options of all writes.
    pub fn with(mut self, options: WriteOptions) -> Self {
        self.write = options;
        self
    }

    /// Reads the scale of an object.
    ///
    /// # Errors
    /// A [`RequestError`] that names the request; [`is_not_found`](RequestError::is_not_found) if
    /// the object does not exist, or its kind has no scale.
    ///
    /// # Cancel safety
    /// Same as [`Client::get`](crate::Client::get).
    pub async fn get(&self, key: impl Into<ObjectKey>) -> Result<Scale, RequestError> {
        let key = self.rest.key(&self.kind, key);
        let response = self.rest.verbs().get(self.target(&key), Some(format()));
        response.await?.decode()
    }

    /// Sets the number of desired replicas of an object.
    ///
    /// # Errors
    /// Same as [`get`](ScaleClient::get).
    ///
    /// # Cancel safety
    /// Same as [`Client::get`](crate::Client::get).
    pub async fn set(
        &self,
        key: impl Into<ObjectKey>,
        replicas: i32,
    ) -> Result<Scale, RequestError> {
        let patch = json!({"spec": {"replicas": replicas}});
        self.patch(key, Patch::Merge(&patch)).await
    }

    /// Replaces the scale of an object. Fails with a conflict if `scale` has a resourceVersion that
    /// is not the newest.
    ///
    /// # Errors
    /// Same as [`get`](ScaleClient::get); [`is_conflict`](RequestError::is_conflict).
    ///
    /// # Cancel safety
    /// Same as [`Client::get`](crate::Client::get).
    pub async fn update(&self, scale: &Scale) -> Result<Scale, RequestError> {
        let key = self.rest.key(&self.kind, ObjectKey::of(&scale.metadata));
        let payload = Payload {
            protobuf: None,
            json: &|| serde_json::to_vec(scale),
        };
        let verbs = self.rest.verbs();
        let response = verbs.update(self.target(&key), payload, &self.write);
        response.await?.decode()
    }

    /// Patches the scale of an object.
    ///
    /// # Errors
    /// Same as [`get`](ScaleClient::get).
    ///
    /// # Cancel safety
    /// Same as [`Client::get`](crate::Client::get).
    pub async fn patch(
        &self,
        key: impl Into<ObjectKey>,
        patch: Patch<'_>,
    ) -> Result<Scale, RequestError> {
        let key = self.rest.key(&self.kind, key);
        let (verbs, target) = (self.rest.verbs(), self.target(&key));
        let response = verbs.patch(target, patch, Some(format()), &self.write);
        response.await?.decode()
    }

    fn target<'a>(&'a self, key: &'a ObjectKey) -> Target<'a> {
        Target::object(&self.kind, key).subresource("scale")
    }
}

fn format() -> ResponseFormat {
    codec::format(&Kind::of::<Scale>())
}
