//! Responses in bytes, and the format that a request asks for.

use bytes::Bytes;
use opkit_apimachinery::protobuf;
use serde::de::DeserializeOwned;

use crate::{Call, RequestError, codec};

/// Encoding of the bytes of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Encoding {
    /// JSON. The response to a watch is one document per line.
    #[default]
    Json,
    /// Kubernetes' protobuf. The response to a watch is a sequence of frames, each preceded by its
    /// length.
    Protobuf,
}

impl Encoding {
    /// Returns the encoding that the headers of a response name.
    pub(super) fn of(headers: &http::HeaderMap) -> Self {
        let content_type = headers.get(http::header::CONTENT_TYPE);
        match content_type.and_then(|value| value.to_str().ok()) {
            Some(value) if value.starts_with(protobuf::CONTENT_TYPE) => Self::Protobuf,
            _ => Self::Json,
        }
    }
}

/// Format of the objects that a request asks for. The default is whole objects in JSON.
///
/// # Examples
/// ```
/// use opkit_client::ResponseFormat;
/// let format = ResponseFormat { metadata_only: true, protobuf: true };
/// assert_ne!(format, ResponseFormat::default());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct ResponseFormat {
    /// Whether the server sends the metadata alone, as `PartialObjectMetadata`.
    pub metadata_only: bool,
    /// Whether the server sends protobuf for kinds that have it, and JSON for the others.
    pub protobuf: bool,
}

impl ResponseFormat {
    /// Returns the `Accept` header for a single object, also used for a watch, whose events contain
    /// single objects.
    pub(super) fn accept_object(self) -> &'static str {
        match (self.metadata_only, self.protobuf) {
            (false, false) => "application/json",
            (false, true) => "application/vnd.kubernetes.protobuf,application/json",
            (true, false) => "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
            (true, true) => {
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,\
                application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
            }
        }
    }

    /// Returns the `Accept` header for a list.
    pub(super) fn accept_list(self) -> &'static str {
        match (self.metadata_only, self.protobuf) {
            (false, _) => self.accept_object(),
            (true, false) => "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            (true, true) => {
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,\
                application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
            }
        }
    }
}

/// Successful response to a request, not yet decoded.
///
/// # Examples
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use opkit_client::{Kind, ListOptions, ObjectList, RequestError, ResponseFormat, RestClient};
///
/// async fn count(client: &RestClient) -> Result<usize, RequestError> {
///     let format = ResponseFormat { protobuf: true, ..Default::default() };
///     let response = client.list(&Kind::of::<ConfigMap>(), &ListOptions::new(), format).await?;
///     println!("{} bytes", response.body.len());
///     Ok(response.decode::<ObjectList<ConfigMap>>()?.items.len())
/// }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Response {
    /// Body of the response.
    pub body: Bytes,
    /// Encoding of the body.
    pub encoding: Encoding,
    /// Request that the response belongs to, for errors.
    pub(crate) call: Box<Call>,
}

impl Response {
    /// Decodes the body.
    ///
    /// # Errors
    /// [`RequestError::Decode`], which names the request, if the body does not fit the type.
    pub fn decode<T: DeserializeOwned>(self) -> Result<T, RequestError> {
        let decoded = codec::from_slice(&self.body, self.encoding);
        decoded.map_err(|cause| RequestError::Decode {
            call: self.call,
            cause,
        })
    }
}
