//! The client that reads only the metadata of objects.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use crate::client::{ObjectList, Pages, decode_deleted, events};
use crate::rest::Target;
use crate::{
    DeleteOptions, Deleted, Kind, ListOptions, ObjectKey, Patch, RequestError, ResponseFormat,
    RestClient, WriteOptions,
};

/// Format of the requested objects. The server can encode the metadata of every kind in protobuf,
/// including custom resources.
const METADATA: ResponseFormat = ResponseFormat {
    metadata_only: true,
    protobuf: true,
};

/// Metadata of an object, without spec, status and other fields.
///
/// # Examples
/// ```
/// use opkit_client::PartialObjectMetadata;
/// let object: PartialObjectMetadata = serde_json::from_str(r#"{"metadata": {"name": "a"}}"#)?;
/// assert_eq!(object.metadata.name.as_deref(), Some("a"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartialObjectMetadata {
    /// API version of this type, `meta.k8s.io/v1`, not of the object.
    #[serde(default)]
    pub api_version: String,
    /// Kind of this type, `PartialObjectMetadata`, not of the object.
    #[serde(default)]
    pub kind: String,
    /// Metadata of the object.
    #[serde(default)]
    pub metadata: ObjectMeta,
}

/// Client that reads only the metadata of objects. For large objects, the responses are much
/// smaller than with other clients.
///
/// # Examples
/// ```
/// use k8s_openapi::api::core::v1::Secret;
/// use opkit_client::{Kind, ListOptions, MetadataClient, RequestError};
///
/// async fn names(kube: kube::Client) -> Result<Vec<String>, RequestError> {
///     let client = MetadataClient::new(kube);
///     let list = client.list(&Kind::of::<Secret>(), &ListOptions::new()).await?;
///     Ok(list.into_iter().filter_map(|object| object.metadata.name).collect())
/// }
/// ```
#[derive(Debug, Clone)]
pub struct MetadataClient {
    rest: RestClient,
    write: WriteOptions,
}

impl MetadataClient {
    /// Creates a client that sends through `kube`.
    pub fn new(kube: kube::Client) -> Self {
        Self {
            rest: RestClient::new(kube),
            write: WriteOptions::default(),
        }
    }

    /// Sets the options of all writes.
    pub fn with(mut self, options: WriteOptions) -> Self {
        self.write = options;
        self
    }

    /// Reads the metadata of an object.
    ///
    /// # Errors
    /// A [`RequestError`] that names the request.
    ///
    /// # Cancel safety
    /// Same as [`Client::get`](crate::Client::get).
    pub async fn get(
        &self,
        kind: &Kind,
        key: impl Into<ObjectKey>,
    ) -> Result<PartialObjectMetadata, RequestError> {
        let key = self.rest.key(kind, key);
        let target = Target::object(kind, &key);
        let response = self.rest.verbs().get(target, Some(METADATA));
        response.await?.decode()
    }

    /// Reads the metadata of a collection, or one page of it if the options have a limit.
    ///
    /// # Errors
    /// Same as [`get`](MetadataClient::get).
    ///
    /// # Cancel safety
    /// Same as [`Client::get`](crate::Client::get).
    pub async fn list(
        &self,
        kind: &Kind,
        options: &ListOptions,
    ) -> Result<ObjectList<PartialObjectMetadata>, RequestError> {
        let verbs = self.rest.verbs();
        verbs.list(kind, options, METADATA).await?.decode()
    }

    /// Reads the metadata of a whole collection in pages; see
    /// [`Client::list_all`](crate::Client::list_all).
    ///
    /// # Errors
    /// Same as [`get`](MetadataClient::get).
    ///
    /// # Cancel safety
    /// Same as [`Client::get`](crate::Client::get).
    pub async fn list_all(
        &self,
        kind: &Kind,
        options: &ListOptions,
    ) -> Result<ObjectList<PartialObjectMetadata>, RequestError> {
        let mut pages = Pages::new(options);
        loop {
            let page = self.list(kind, pages.next()).await;
            if let Some(whole) = pages.add(page)? {
                return Ok(whole);
            }
        }
    }

    /// Watches the metadata of a collection; see [`Client::watch`](crate::Client::watch).
    ///
    /// # Errors
    /// Same as [`get`](MetadataClient::get).
    ///
    /// # Cancel safety
    /// Same as [`Client::get`](crate::Client::get).
    pub async fn watch(
        &self,
        kind: &Kind,
        options: &ListOptions,
    ) -> Result<
        impl futures::Stream<Item = Result<kube::core::WatchEvent<PartialObjectMetadata>, RequestError>>
        + Send
        + Unpin
        + use<>,
        RequestError,
    > {
        let verbs = self.rest.verbs();
        Ok(events(verbs.watch(kind, options, METADATA).await?))
    }

    /// Patches an object, for instance its labels or finalizers, and returns its metadata.
    ///
    /// # Errors
    /// Same as [`get`](MetadataClient::get).
    ///
    /// # Cancel safety
    /// Same as [`Client::get`](crate::Client::get).
    pub async fn patch(
        &self,
        kind: &Kind,
        key: impl Into<ObjectKey>,
        patch: Patch<'_>,
    ) -> Result<PartialObjectMetadata, RequestError> {
        let key = self.rest.key(kind, key);
        let (verbs, target) = (self.rest.verbs(), Target::object(kind, &key));
        let response = verbs.patch(target, patch, Some(METADATA), &self.write);
        response.await?.decode()
    }

    /// Deletes an object. Returns [`Deleted::Gone`], or [`Deleted::Terminating`] with the metadata
    /// if finalizers or a grace period delay the removal.
    ///
    /// # Errors
    /// Same as [`get`](MetadataClient::get).
    ///
    /// # Cancel safety
    /// Same as [`Client::get`](crate::Client::get).
    pub async fn delete(
        &self,
        kind: &Kind,
        key: impl Into<ObjectKey>,
        options: &DeleteOptions,
    ) -> Result<Deleted<PartialObjectMetadata>, RequestError> {
        let key = self.rest.key(kind, key);
        let (verbs, target) = (self.rest.verbs(), Target::object(kind, &key));
        let format = Some(ResponseFormat::default());
        decode_deleted(verbs.delete(target, options, format, &self.write).await?)
    }
}
