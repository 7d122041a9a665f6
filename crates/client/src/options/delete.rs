//! Options of deletions.

use serde_json::{Map, Value};

use crate::WriteOptions;

/// Treatment of the dependents of a deleted object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Propagation {
    /// The garbage collector deletes the dependents after the object.
    Background,
    /// The garbage collector deletes the dependents before the object.
    Foreground,
    /// The dependents stay, and lose the owner reference to the object.
    Orphan,
}

/// Options of a deletion. An option that is not set has the server's default for the kind.
///
/// # Examples
/// ```
/// use opkit_client::{DeleteOptions, Propagation};
/// let mut options = DeleteOptions::default();
/// options.propagation = Some(Propagation::Foreground);
/// options.grace_period_seconds = Some(0);
/// let only_this_one = DeleteOptions::background().uid("6ea4");
/// assert_eq!(only_this_one.uid.as_deref(), Some("6ea4"));
/// ```
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct DeleteOptions {
    /// Precondition on the UID. The deletion fails with a conflict if the object has another UID.
    pub uid: Option<String>,
    /// Precondition on the resourceVersion. The deletion fails with a conflict if the object has
    /// another resourceVersion.
    pub resource_version: Option<String>,
    /// Treatment of the object's dependents.
    pub propagation: Option<Propagation>,
    /// Time in seconds that a Pod has to stop. 0 deletes immediately.
    pub grace_period_seconds: Option<u32>,
}

impl DeleteOptions {
    /// Returns options that let the garbage collector delete the dependents in the background.
    pub fn background() -> Self {
        Self {
            propagation: Some(Propagation::Background),
            ..Self::default()
        }
    }

    /// Sets the precondition on the UID.
    pub fn uid(mut self, uid: impl Into<String>) -> Self {
        self.uid = Some(uid.into());
        self
    }

    /// Sets the precondition on the resourceVersion.
    pub fn resource_version(mut self, version: impl Into<String>) -> Self {
        self.resource_version = Some(version.into());
        self
    }

    /// Returns the body of a DELETE request.
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
