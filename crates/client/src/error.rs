//! What can go wrong with a request, named by verb, kind and object.

use std::borrow::Cow;
use std::fmt;

use kube::core::Status;
use kube::core::response::reason;

use crate::{Kind, ObjectKey};

/// What a request does; its `Display` is the word in RBAC rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verb {
    /// Read one object.
    Get,
    /// Read a collection.
    List,
    /// Follow a collection.
    Watch,
    /// Make an object.
    Create,
    /// Replace an object.
    Update,
    /// Change an object, by any kind of patch.
    Patch,
    /// Remove an object.
    Delete,
    /// Remove the objects of a collection.
    DeleteCollection,
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Update => "update",
            Self::Patch => "patch",
            Self::Delete => "delete",
            Self::DeleteCollection => "deletecollection",
        })
    }
}

/// What a request was about; its `Display` completes "cannot ...".
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// What was to be done.
    pub verb: Verb,
    /// To which kind.
    pub kind: Kind,
    /// To which subresource, such as `status`; none for the object itself.
    pub subresource: Option<Cow<'static, str>>,
    /// In which namespace; none for all of them, or for kinds of the cluster scope.
    pub namespace: Option<String>,
    /// To which object; none for the collection.
    pub name: Option<String>,
}

impl Call {
    pub(crate) fn object(verb: Verb, kind: &Kind, key: &ObjectKey) -> Self {
        Self {
            verb,
            kind: kind.clone(),
            subresource: None,
            namespace: key.namespace.clone(),
            name: Some(key.name.clone()),
        }
    }

    pub(crate) fn collection(verb: Verb, kind: &Kind, namespace: Option<&str>) -> Self {
        Self {
            verb,
            kind: kind.clone(),
            subresource: None,
            namespace: namespace.map(str::to_owned),
            name: None,
        }
    }
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => {
                let subresource = self.subresource.as_ref().map(|s| format!("the {s} of "));
                write!(f, "{} {}", self.verb, subresource.unwrap_or_default())?;
                let key = ObjectKey {
                    namespace: self.namespace.clone(),
                    name: name.clone(),
                };
                write!(f, "{} {key}", self.kind.noun())
            }
            None => {
                let resource = match self.kind.group.as_str() {
                    "" => self.kind.plural.clone(),
                    group => format!("{}.{group}", self.kind.plural),
                };
                write!(f, "{} {resource}", self.verb)?;
                match &self.namespace {
                    Some(namespace) => write!(f, " in namespace {namespace}"),
                    None => Ok(()),
                }
            }
        }
    }
}

/// A request that did not succeed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The server answered, with a refusal.
    #[error("cannot {call}: {} ({} {})", status.message, status.code, reason_of(status))]
    Refused {
        /// What was asked.
        call: Box<Call>,
        /// What the server said.
        status: Box<Status>,
    },
    /// No answer came.
    #[error("cannot {call}: the API server cannot be reached")]
    Unreachable {
        /// What was asked.
        call: Box<Call>,
        /// Why.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// No answer came in time.
    #[error("cannot {call}: no answer within {seconds} s")]
    Timeout {
        /// What was asked.
        call: Box<Call>,
        /// How long was waited.
        seconds: u64,
    },
    /// It was not sent, because this process does not lead, or no longer.
    #[error("cannot {call}: not the leader")]
    Fenced {
        /// What was asked.
        call: Box<Call>,
        /// Why.
        #[source]
        cause: crate::Fenced,
    },
    /// An answer came that does not fit the kind.
    #[error("cannot {call}: the answer cannot be read")]
    Decode {
        /// What was asked.
        call: Box<Call>,
        /// Why.
        #[source]
        cause: serde_json::Error,
    },
    /// The request could not be written down.
    #[error("cannot {call}: the request cannot be made")]
    Build {
        /// What was asked.
        call: Box<Call>,
        /// Why.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
}

fn reason_of(status: &Status) -> &str {
    if reason::is_known(&status.reason) && !status.reason.is_empty() {
        &status.reason
    } else {
        "Unknown"
    }
}

impl RequestError {
    /// What was asked.
    pub fn call(&self) -> &Call {
        match self {
            Self::Refused { call, .. }
            | Self::Unreachable { call, .. }
            | Self::Timeout { call, .. }
            | Self::Fenced { call, .. }
            | Self::Decode { call, .. }
            | Self::Build { call, .. } => call,
        }
    }

    /// The server's refusal, if that is what happened.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Refused { status, .. } => Some(status),
            _ => None,
        }
    }

    /// Whether the object changed since it was read.
    pub fn is_conflict(&self) -> bool {
        self.is(409, reason::CONFLICT)
    }

    /// Whether the object, or the whole kind, does not exist.
    pub fn is_not_found(&self) -> bool {
        self.status().is_some_and(|status| status.code == 404)
    }

    /// Whether an object of that name exists already.
    pub fn is_already_exists(&self) -> bool {
        self.is(409, reason::ALREADY_EXISTS)
    }

    /// Whether a permission is missing.
    pub fn is_forbidden(&self) -> bool {
        self.status().is_some_and(|status| status.code == 403)
    }

    /// Whether the object breaks its schema, or a JSON patch test did not hold.
    pub fn is_invalid(&self) -> bool {
        self.status().is_some_and(|status| status.code == 422)
    }

    /// Whether the resourceVersion asked for is too old, so that a new list is needed.
    pub fn is_expired(&self) -> bool {
        self.status().is_some_and(|status| status.code == 410)
    }

    /// Whether the server asks to slow down.
    pub fn is_too_many_requests(&self) -> bool {
        self.status().is_some_and(|status| status.code == 429)
    }

    /// Whether no server answered.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Timeout { .. })
    }

    /// Whether it was held back by a [`Fence`](crate::Fence), and so has not reached the server.
    pub fn is_fenced(&self) -> bool {
        matches!(self, Self::Fenced { .. })
    }

    fn is(&self, code: u16, reason: &str) -> bool {
        self.status()
            .is_some_and(|status| status.code == code && status.reason == reason)
    }
}

/// Returns an error and its causes in one line. A cause that its effect quotes already is left out,
/// and of a refusal that kube reports only what the server said is kept.
pub fn one_line(error: &(dyn std::error::Error + 'static)) -> String {
    let mut line = error.to_string();
    let mut next = Some(error);
    while let Some(cause) = next {
        let mut text = cause.to_string();
        if let Some(kube::Error::Api(status)) = cause.downcast_ref() {
            // kube's own text has the message twice: as such, and in the `Debug` form of the
            // status.
            let short = status.to_string();
            line = line.replace(&text, &short);
            text = short;
        }
        if !line.contains(&text) {
            line.push_str(": ");
            line.push_str(&text);
        }
        next = cause.source();
    }
    line.replace('\n', " ")
}

#[cfg(test)]
mod tests;
