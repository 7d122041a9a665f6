//! Errors of discovery and of the mapping of names to resources.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::RequestError;

/// The failure to read the resources of one version of an API group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupFailure {
    /// Group and version, as `group/version`.
    pub group_version: String,
    /// Text of the error.
    pub error: String,
}

/// The reason why a resource was not found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoveryError {
    /// The list of groups cannot be read from the server.
    #[error("cannot read the API groups of the server")]
    Request(#[source] Box<RequestError>),
    /// The server has no resource with the requested name.
    #[error("the API server has no resource {name:?}{}", Failures(failures))]
    NoMatch {
        /// Name that was looked up.
        name: String,
        /// Groups that could not be read. The resource may belong to one of these groups.
        failures: Vec<GroupFailure>,
    },
    /// Several groups have a resource with the requested name, and no group takes precedence.
    #[error("resource name {name:?} is ambiguous: use one of {}", candidates.join(", "))]
    Ambiguous {
        /// Name that was looked up.
        name: String,
        /// Possible resources, in the form `robots.example.com`.
        candidates: Vec<String>,
    },
}

impl DiscoveryError {
    /// Returns whether the error is [`NoMatch`](Self::NoMatch): the server has no resource with the
    /// requested name.
    pub fn is_no_match(&self) -> bool {
        matches!(self, Self::NoMatch { .. })
    }
}

struct Failures<'a>(&'a [GroupFailure]);

impl fmt::Display for Failures<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = self.0.iter().map(|it| it.group_version.as_str()).collect();
        write!(f, "; these groups cannot be read: {}", names.join(", "))
    }
}
