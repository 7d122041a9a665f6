//! What can go wrong with names and kinds.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::RequestError;

/// A group that could not be read; the others were.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupFailure {
    /// `group/version`.
    pub group_version: String,
    /// Why.
    pub error: String,
}

/// Why a resource was not found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoveryError {
    /// The server does not say what it serves.
    #[error("cannot find out what the API server serves")]
    Request(#[source] Box<RequestError>),
    /// Nothing of that name is served.
    #[error("the API server has no resource {name:?}{}", Failures(failures))]
    NoMatch {
        /// What was asked for.
        name: String,
        /// Groups that could not be read, of which it might be.
        failures: Vec<GroupFailure>,
    },
    /// Several groups serve something of that name, and none comes before the others.
    #[error("{name:?} could be any of {}: name the group as well", candidates.join(", "))]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// What it could be, in the form `robots.example.com`.
        candidates: Vec<String>,
    },
}

impl DiscoveryError {
    /// Whether nothing of that name is served.
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
        write!(f, ", as far as it can be told without {}", names.join(", "))
    }
}
