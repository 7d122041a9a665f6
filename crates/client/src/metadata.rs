//! Objects of any kind, of which only the metadata is read.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use crate::calls::{Calls, Form};
use crate::client::{ObjectList, all, decode, decode_deleted, events, whole};
use crate::{
    DeleteOptions, Deleted, Kind, ListOptions, ObjectKey, Patch, RequestError, WriteOptions,
};

/// In protobuf where the server has it, which it does for every kind, custom ones included.
const ACCEPT: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,\
    application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const ACCEPT_LIST: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,\
    application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// The metadata of an object, and nothing else of it.
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
    /// `meta.k8s.io/v1`, not that of the object.
    #[serde(default)]
    pub api_version: String,
    /// `PartialObjectMetadata`, not that of the object.
    #[serde(default)]
    pub kind: String,
    /// The metadata.
    #[serde(default)]
    pub metadata: ObjectMeta,
}

/// Reads metadata alone, which for large objects costs a fraction of the whole.
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
    calls: Calls,
}

impl MetadataClient {
    /// Sends through `kube`.
    pub fn new(kube: kube::Client) -> Self {
        Self {
            calls: Calls::new(kube),
        }
    }

    /// This client, writing as `options` say.
    pub fn with(mut self, options: WriteOptions) -> Self {
        self.calls.write = options;
        self
    }

    /// Reads the metadata of an object.
    ///
    /// # Errors
    /// A [`RequestError`] that names the call.
    ///
    /// # Cancel safety
    /// As [`Client::get`](crate::Client::get).
    pub async fn get(
        &self,
        kind: &Kind,
        key: impl Into<ObjectKey>,
    ) -> Result<PartialObjectMetadata, RequestError> {
        let key = self.calls.key(kind, key);
        decode(self.calls.get(whole(kind, &key), ACCEPT).await?)
    }

    /// Reads the metadata of a collection: one page of it, if the options have a limit.
    ///
    /// # Errors
    /// As [`get`](MetadataClient::get).
    ///
    /// # Cancel safety
    /// As [`Client::get`](crate::Client::get).
    pub async fn list(
        &self,
        kind: &Kind,
        options: &ListOptions,
    ) -> Result<ObjectList<PartialObjectMetadata>, RequestError> {
        decode(self.calls.list(kind, options, ACCEPT_LIST).await?)
    }

    /// Reads the metadata of a collection page by page; see
    /// [`Client::list_all`](crate::Client::list_all).
    ///
    /// # Errors
    /// As [`get`](MetadataClient::get).
    ///
    /// # Cancel safety
    /// As [`Client::get`](crate::Client::get).
    pub async fn list_all(
        &self,
        kind: &Kind,
        options: &ListOptions,
    ) -> Result<ObjectList<PartialObjectMetadata>, RequestError> {
        all(options, async |options| self.list(kind, &options).await).await
    }

    /// Follows a collection; see [`Client::watch`](crate::Client::watch).
    ///
    /// # Errors
    /// As [`get`](MetadataClient::get).
    ///
    /// # Cancel safety
    /// As [`Client::get`](crate::Client::get).
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
        let frames = self.calls.watch(kind, options, Form::Metadata).await?;
        Ok(events(kind.clone(), options.namespace.clone(), frames))
    }

    /// Changes metadata, such as labels and finalizers, by a patch of the object.
    ///
    /// # Errors
    /// As [`get`](MetadataClient::get).
    ///
    /// # Cancel safety
    /// As [`Client::get`](crate::Client::get).
    pub async fn patch(
        &self,
        kind: &Kind,
        key: impl Into<ObjectKey>,
        patch: Patch<'_>,
    ) -> Result<PartialObjectMetadata, RequestError> {
        let key = self.calls.key(kind, key);
        decode(self.calls.patch(whole(kind, &key), patch, ACCEPT).await?)
    }

    /// Deletes an object, and returns whether it is gone or stays for a while.
    ///
    /// # Errors
    /// As [`get`](MetadataClient::get).
    ///
    /// # Cancel safety
    /// As [`Client::get`](crate::Client::get).
    pub async fn delete(
        &self,
        kind: &Kind,
        key: impl Into<ObjectKey>,
        options: &DeleteOptions,
    ) -> Result<Deleted<PartialObjectMetadata>, RequestError> {
        let key = self.calls.key(kind, key);
        decode_deleted(self.calls.delete(whole(kind, &key), options).await?)
    }
}
