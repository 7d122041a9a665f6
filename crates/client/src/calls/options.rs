//! What a caller may say about a list, a write or a deletion.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::RestRequest;

/// Which objects of a kind. The default is all of them, in all namespaces.
///
/// # Examples
/// ```
/// use opkit_client::ListOptions;
/// let options = ListOptions::new().in_namespace("shops").labels("app=web").limit(500);
/// assert_eq!(options.namespace.as_deref(), Some("shops"));
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ListOptions {
    /// Of one namespace; none for all.
    pub namespace: Option<String>,
    /// With these labels; empty for all.
    pub label_selector: String,
    /// With these fields; empty for all.
    pub field_selector: String,
    /// At most so many at a time; 0 for all at once.
    pub limit: u32,
    /// Where the page before ended.
    pub continue_token: Option<String>,
    /// The version of the answer, as `version_match` says; for a watch, where it begins. Empty for
    /// the newest.
    pub resource_version: String,
    /// How the version is meant.
    pub version_match: VersionMatch,
    /// After how long the server shall end a watch.
    pub watch_timeout: Duration,
}

/// How the resourceVersion of a list is meant.
///
/// # Examples
/// ```
/// use opkit_client::{ListOptions, VersionMatch};
/// // From the server's cache, however old.
/// let options = ListOptions::new().version("0", VersionMatch::NotOlderThan);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VersionMatch {
    /// That or newer; "0" may come from the server's cache.
    #[default]
    NotOlderThan,
    /// Exactly that, while the server still has it.
    Exact,
}

impl Default for ListOptions {
    fn default() -> Self {
        Self {
            namespace: None,
            label_selector: String::new(),
            field_selector: String::new(),
            limit: 0,
            continue_token: None,
            resource_version: String::new(),
            version_match: VersionMatch::default(),
            watch_timeout: Duration::from_secs(290),
        }
    }
}

impl ListOptions {
    /// All objects.
    pub fn new() -> Self {
        Self::default()
    }

    /// Only those of a namespace.
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace.to_owned());
        self
    }

    /// Only those with labels: `app=web,tier!=test`.
    pub fn labels(mut self, selector: &str) -> Self {
        self.label_selector = selector.to_owned();
        self
    }

    /// Only those with fields: `spec.nodeName=one`. Which fields there are, the server decides.
    pub fn fields(mut self, selector: &str) -> Self {
        self.field_selector = selector.to_owned();
        self
    }

    /// At most so many at a time.
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = limit;
        self
    }

    /// The page after the one that had this token.
    pub fn continue_from(mut self, token: &str) -> Self {
        self.continue_token = Some(token.to_owned());
        self
    }

    /// Of this version; for a watch, what changed after it.
    pub fn version(mut self, resource_version: &str, version_match: VersionMatch) -> Self {
        self.resource_version = resource_version.to_owned();
        self.version_match = version_match;
        self
    }

    pub(super) fn query(&self, mut request: RestRequest) -> RestRequest {
        request = request
            .query_if("labelSelector", &self.label_selector)
            .query_if("fieldSelector", &self.field_selector);
        if self.limit > 0 {
            request = request.query("limit", &self.limit.to_string());
        }
        match &self.continue_token {
            Some(token) => request.query("continue", token),
            // A version beside a token is refused by the server.
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
        }
    }
}

/// What the server does with fields that it does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldValidation {
    /// Drops them.
    Ignore,
    /// Drops them and warns; what it does when nothing is said.
    Warn,
    /// Refuses the write.
    Strict,
}

/// How a client writes.
///
/// # Examples
/// ```
/// use opkit_client::{FieldValidation, WriteOptions};
/// let mut options = WriteOptions::default();
/// options.field_manager = Some("tidy".to_owned());
/// options.field_validation = Some(FieldValidation::Strict);
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct WriteOptions {
    /// Who owns the fields that are written; by default the program's name, from its user agent.
    /// An apply needs one.
    pub field_manager: Option<String>,
    /// Whether everything is checked and nothing kept.
    pub dry_run: bool,
    /// What becomes of unknown fields.
    pub field_validation: Option<FieldValidation>,
    /// Whether an apply takes fields from other owners.
    pub force: bool,
}

impl WriteOptions {
    pub(super) fn query(&self, mut request: RestRequest) -> RestRequest {
        if let Some(manager) = &self.field_manager {
            request = request.query("fieldManager", manager);
        }
        if self.dry_run {
            request = request.query("dryRun", "All");
        }
        match self.field_validation {
            Some(FieldValidation::Ignore) => request.query("fieldValidation", "Ignore"),
            Some(FieldValidation::Warn) => request.query("fieldValidation", "Warn"),
            Some(FieldValidation::Strict) => request.query("fieldValidation", "Strict"),
            None => request,
        }
    }
}

/// What becomes of the dependents of a deleted object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// They go after it.
    Background,
    /// They go before it.
    Foreground,
    /// They stay.
    Orphan,
}

/// How an object is deleted. The default leaves all to the kind.
///
/// # Examples
/// ```
/// use opkit_client::{DeleteOptions, Propagation};
/// let mut options = DeleteOptions::default();
/// options.propagation = Some(Propagation::Foreground);
/// options.grace_period_seconds = Some(0);
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct DeleteOptions {
    /// Only the object with this UID.
    pub uid: Option<String>,
    /// Only if it is still at this version.
    pub resource_version: Option<String>,
    /// What becomes of its dependents.
    pub propagation: Option<Propagation>,
    /// How long it gets to end; 0 for at once.
    pub grace_period_seconds: Option<u32>,
}

impl DeleteOptions {
    pub(crate) fn body(&self, write: &WriteOptions) -> Value {
        let mut body = Map::new();
        body.insert("apiVersion".to_owned(), "v1".into());
        body.insert("kind".to_owned(), "DeleteOptions".into());
        let mut preconditions = Map::new();
        if let Some(uid) = &self.uid {
            preconditions.insert("uid".to_owned(), uid.clone().into());
        }
        if let Some(version) = &self.resource_version {
            preconditions.insert("resourceVersion".to_owned(), version.clone().into());
        }
        if !preconditions.is_empty() {
            body.insert("preconditions".to_owned(), preconditions.into());
        }
        let propagation = self.propagation.map(|policy| match policy {
            Propagation::Background => "Background",
            Propagation::Foreground => "Foreground",
            Propagation::Orphan => "Orphan",
        });
        if let Some(propagation) = propagation {
            body.insert("propagationPolicy".to_owned(), propagation.into());
        }
        if let Some(seconds) = self.grace_period_seconds {
            body.insert("gracePeriodSeconds".to_owned(), seconds.into());
        }
        if write.dry_run {
            body.insert("dryRun".to_owned(), vec!["All"].into());
        }
        Value::Object(body)
    }
}
