//! Options of lists and watches.

use std::time::Duration;

use http::header;

use crate::RestRequest;

/// Default time after which the server ends a watch. Same as kube's default, which is below kube's
/// limit of 295 seconds.
const WATCH_TIMEOUT: Duration = Duration::from_secs(290);

/// Selection of the objects of a kind, for a list or a watch. The default selects all objects in
/// all namespaces.
///
/// # Examples
/// ```
/// use opkit_client::ListOptions;
/// let options = ListOptions::new().in_namespace("shops").labels("app=web").limit(500);
/// assert_eq!(options.namespace.as_deref(), Some("shops"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ListOptions {
    /// Namespace of the objects. `None` selects all namespaces.
    pub namespace: Option<String>,
    /// Label selector. An empty selector selects all objects.
    pub label_selector: String,
    /// Field selector. An empty selector selects all objects.
    pub field_selector: String,
    /// Shard selector, which selects objects by a hash range of their UIDs (alpha in Kubernetes
    /// 1.36). An empty selector selects all objects.
    pub shard_selector: String,
    /// Maximum number of objects in the response to a list. 0 sets no maximum.
    pub limit: u32,
    /// Continue token of the previous page of a list.
    pub continue_token: Option<String>,
    /// resourceVersion that a list returns, subject to `version_match`, or after which a watch
    /// starts. An empty string selects the newest resourceVersion. Ignored for a list with a
    /// continue token, because all pages have the resourceVersion of the first page.
    pub resource_version: String,
    /// Whether a list has exactly `resource_version`, or may have a newer version.
    pub version_match: VersionMatch,
    /// Time after which the server ends a watch.
    pub watch_timeout: Duration,
    /// Whether a watch starts with an event for each existing object, followed by a bookmark. The
    /// state of the objects is not older than `resource_version`. Kubernetes calls such a watch a
    /// streaming list.
    pub send_initial_events: bool,
}

/// Whether a list has exactly the given resourceVersion, or may have a newer one.
///
/// # Examples
/// ```
/// use opkit_client::{ListOptions, VersionMatch};
/// // Any version that the server has in its cache.
/// let options = ListOptions::new().version("0", VersionMatch::NotOlderThan);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum VersionMatch {
    /// The list has the given version or a newer version. With version "0" the server may respond
    /// from its cache.
    #[default]
    NotOlderThan,
    /// The list has exactly the given version. Fails once the server has compacted the version.
    Exact,
}

impl Default for ListOptions {
    fn default() -> Self {
        Self {
            namespace: None,
            label_selector: String::new(),
            field_selector: String::new(),
            shard_selector: String::new(),
            limit: 0,
            continue_token: None,
            resource_version: String::new(),
            version_match: VersionMatch::default(),
            watch_timeout: WATCH_TIMEOUT,
            send_initial_events: false,
        }
    }
}

impl ListOptions {
    /// Creates options that select all objects in all namespaces.
    pub fn new() -> Self {
        Self::default()
    }

    /// Selects the objects of one namespace.
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Selects the objects whose labels match, such as `app=web,tier!=test`.
    pub fn labels(mut self, selector: &str) -> Self {
        self.label_selector = selector.to_owned();
        self
    }

    /// Selects the objects whose fields match, such as `spec.nodeName=one`. The server defines the
    /// fields that can be selected.
    pub fn fields(mut self, selector: &str) -> Self {
        self.field_selector = selector.to_owned();
        self
    }

    /// Sets the maximum number of objects in a response.
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = limit;
        self
    }

    /// Selects the page after the one that returned this continue token.
    pub fn continue_from(mut self, token: &str) -> Self {
        self.continue_token = Some(token.to_owned());
        self
    }

    /// Sets the resourceVersion that a list returns, or after which a watch starts.
    pub fn version(mut self, resource_version: &str, version_match: VersionMatch) -> Self {
        self.resource_version = resource_version.to_owned();
        self.version_match = version_match;
        self
    }

    /// Adds these options to the query of a list or of the deletion of a collection.
    pub(crate) fn add_to_list(&self, mut request: RestRequest) -> RestRequest {
        if self.limit > 0 {
            request = request.query("limit", &self.limit.to_string());
        }
        request = match &self.continue_token {
            Some(token) => request.query_if("continue", token),
            // The server refuses a version beside a token.
            None if !self.resource_version.is_empty() => {
                let version_match = match self.version_match {
                    VersionMatch::NotOlderThan => "NotOlderThan",
                    VersionMatch::Exact => "Exact",
                };
                request
                    .query("resourceVersion", &self.resource_version)
                    .query("resourceVersionMatch", version_match)
            }
            None => request,
        };
        self.add_selectors(request)
    }

    /// Adds these options to the query of a watch, and requests bookmarks.
    pub(crate) fn add_to_watch(&self, request: RestRequest) -> RestRequest {
        let mut request = request
            .query("watch", "true")
            .query("allowWatchBookmarks", "true")
            .query("timeoutSeconds", &self.watch_timeout.as_secs().to_string());
        if self.send_initial_events {
            request = request
                .query("sendInitialEvents", "true")
                .query("resourceVersionMatch", "NotOlderThan");
        }
        self.add_selectors(request)
            .query_if("resourceVersion", &self.resource_version)
            // Servers from 1.37 on compress each event separately, which tower-http cannot decode.
            .header(header::ACCEPT_ENCODING, "identity")
    }

    fn add_selectors(&self, request: RestRequest) -> RestRequest {
        request
            .query_if("labelSelector", &self.label_selector)
            .query_if("fieldSelector", &self.field_selector)
            .query_if("shardSelector", &self.shard_selector)
    }
}
