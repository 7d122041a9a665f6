//! Which part of a collection a list or a watch asks for, and in which form.

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING};

use super::RestRequest;

/// How the bytes of an answer are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Encoding {
    /// JSON; a watch is one document per line.
    #[default]
    Json,
    /// Kubernetes' protobuf; a watch is a sequence of frames with their length before them.
    Protobuf,
}

impl Encoding {
    /// What the headers of an answer say.
    pub(super) fn of(headers: &http::HeaderMap) -> Self {
        let content_type = headers.get(http::header::CONTENT_TYPE);
        match content_type.and_then(|value| value.to_str().ok()) {
            Some(value) if value.starts_with(PROTOBUF) => Self::Protobuf,
            _ => Self::Json,
        }
    }
}

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";

/// Which objects of a collection are wanted, and in which form.
///
/// # Examples
/// ```
/// use opkit_client::CollectionOptions;
/// let options = CollectionOptions {
///     label_selector: "app=web".to_owned(),
///     metadata_only: true,
///     ..Default::default()
/// };
/// assert!(options.field_selector.is_empty());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct CollectionOptions {
    /// Only objects with these labels; all if empty.
    pub label_selector: String,
    /// Only objects with these fields; all if empty.
    pub field_selector: String,
    /// Only objects of this part of the hash space (alpha in Kubernetes 1.36); all if empty.
    pub shard_selector: String,
    /// Metadata alone, as `PartialObjectMetadata`.
    pub metadata_only: bool,
    /// Protobuf if the server has it for this kind, else JSON.
    pub protobuf: bool,
}

/// Which page of a list; see [`RestClient::list_page`](crate::RestClient::list_page).
///
/// # Examples
/// ```
/// use opkit_client::PageOptions;
/// let first = PageOptions { limit: 500, ..Default::default() };
/// assert!(first.continue_token.is_none());
/// ```
#[derive(Debug, Clone, Default)]
pub struct PageOptions {
    /// At most so many objects; 0 for all.
    pub limit: u32,
    /// Where the page before ended.
    pub continue_token: Option<String>,
    /// A version that the answer must not be older than; empty for the newest there is. The pages
    /// after the first are of the version of the first.
    pub resource_version: String,
    /// Which objects, in which form.
    pub collection: CollectionOptions,
}

/// What to watch from where; see [`RestClient::watch`](crate::RestClient::watch).
///
/// # Examples
/// ```
/// use std::time::Duration;
/// use opkit_client::WatchOptions;
/// let options = WatchOptions {
///     resource_version: "41".to_owned(),
///     timeout: Duration::from_secs(300),
///     ..Default::default()
/// };
/// assert!(!options.send_initial_events);
/// ```
#[derive(Debug, Clone, Default)]
pub struct WatchOptions {
    /// The version to continue from.
    pub resource_version: String,
    /// When the server shall end the watch.
    pub timeout: Duration,
    /// Whether the watch begins with every object there is, not older than the version, and says
    /// by a bookmark when that was all: a list by way of a watch.
    pub send_initial_events: bool,
    /// Which objects, in which form.
    pub collection: CollectionOptions,
}

/// The body of an answer, and how it is written.
#[derive(Debug, Clone)]
pub struct Page {
    /// The list.
    pub body: Bytes,
    /// How it is written.
    pub encoding: Encoding,
}

impl CollectionOptions {
    /// The `Accept` header of a list, or of a watch.
    fn accept(&self, watch: bool) -> String {
        let partial = match (self.metadata_only, watch) {
            (false, _) => "",
            (true, false) => ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            (true, true) => ";as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
        };
        match self.protobuf {
            true => format!("{PROTOBUF}{partial},application/json{partial}"),
            false => format!("application/json{partial}"),
        }
    }

    fn query(&self, request: RestRequest) -> RestRequest {
        request
            .query_if("labelSelector", &self.label_selector)
            .query_if("fieldSelector", &self.field_selector)
            .query_if("shardSelector", &self.shard_selector)
    }
}

impl PageOptions {
    pub(super) fn add_to(&self, mut request: RestRequest) -> RestRequest {
        if self.limit > 0 {
            request = request.query("limit", &self.limit.to_string());
        }
        request = match &self.continue_token {
            Some(token) => request.query_if("continue", token),
            None if !self.resource_version.is_empty() => request
                .query("resourceVersion", &self.resource_version)
                .query("resourceVersionMatch", "NotOlderThan"),
            None => request,
        };
        let accept = self.collection.accept(false);
        self.collection.query(request).header(ACCEPT, &accept)
    }
}

impl WatchOptions {
    pub(super) fn add_to(&self, request: RestRequest) -> RestRequest {
        let mut request = request
            .query("watch", "true")
            .query("allowWatchBookmarks", "true")
            .query("timeoutSeconds", &self.timeout.as_secs().to_string());
        if self.send_initial_events {
            request = request
                .query("sendInitialEvents", "true")
                .query("resourceVersionMatch", "NotOlderThan");
        }
        self.collection
            .query(request)
            .query_if("resourceVersion", &self.resource_version)
            // Servers from 1.37 on compress each event by itself, which tower-http cannot read.
            .header(ACCEPT_ENCODING, "identity")
            .header(ACCEPT, &self.collection.accept(true))
    }
}
