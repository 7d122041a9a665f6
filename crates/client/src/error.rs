//! Errors of requests, which name verb, kind and object.

use std::borrow::Cow;
use std::fmt;

use kube::core::Status;
use kube::core::response::reason;
use opkit_apimachinery::identity::Verb;

use crate::{Kind, ObjectKey};

/// Verb and target of a request, for error messages. Displayed as words that follow "cannot", for
/// example `get ConfigMap default/settings`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Verb of the request.
    pub verb: Verb,
    /// Kind of the target.
    pub kind: Kind,
    /// Subresource, such as `status`; `None` for the object itself.
    pub subresource: Option<Cow<'static, str>>,
    /// Namespace; `None` for all namespaces and for cluster-scoped kinds.
    pub namespace: Option<String>,
    /// Name of the object; `None` for the collection.
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

/// The error of a failed request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The server rejected the request.
    #[error("cannot {call}: {} ({} {})", status.message, status.code, reason_of(status))]
    Refused {
        /// Verb and target of the request.
        call: Box<Call>,
        /// Status in the server's response.
        status: Box<Status>,
    },
    /// There was no response.
    #[error("cannot {call}: the API server cannot be reached")]
    Unreachable {
        /// Verb and target of the request.
        call: Box<Call>,
        /// Connection or TLS error.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The request was not sent, because there are no credentials, for example because a credential
    /// plugin failed.
    #[error("cannot {call}: there are no credentials")]
    Credentials {
        /// Verb and target of the request.
        call: Box<Call>,
        /// The reason, a [`CredentialsError`](crate::CredentialsError).
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There was no response in time.
    #[error("cannot {call}: no response within {seconds} s")]
    Timeout {
        /// Verb and target of the request.
        call: Box<Call>,
        /// Timeout, in seconds.
        seconds: u64,
    },
    /// The request was not sent, because this process is not, or no longer, the leader.
    #[error("cannot {call}: not the leader")]
    Fenced {
        /// Verb and target of the request.
        call: Box<Call>,
        /// Reason why a [`Fence`](crate::Fence) rejected the request.
        #[source]
        cause: crate::Fenced,
    },
    /// The response cannot be decoded as the expected type.
    #[error("cannot {call}: the response cannot be decoded")]
    Decode {
        /// Verb and target of the request.
        call: Box<Call>,
        /// Decoding error.
        #[source]
        cause: serde_json::Error,
    },
    /// The request cannot be encoded, or its path is not valid.
    #[error("cannot {call}: the request cannot be built")]
    Build {
        /// Verb and target of the request.
        call: Box<Call>,
        /// Encoding or path error.
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
    /// Returns verb and target of the request.
    pub fn call(&self) -> &Call {
        match self {
            Self::Refused { call, .. }
            | Self::Unreachable { call, .. }
            | Self::Credentials { call, .. }
            | Self::Timeout { call, .. }
            | Self::Fenced { call, .. }
            | Self::Decode { call, .. }
            | Self::Build { call, .. } => call,
        }
    }

    /// Returns the status in the server's response, if the server rejected the request.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Refused { status, .. } => Some(status),
            _ => None,
        }
    }

    /// Returns whether the object was changed since it was read.
    pub fn is_conflict(&self) -> bool {
        self.is(409, reason::CONFLICT)
    }

    /// Returns whether the object, or its kind, does not exist.
    pub fn is_not_found(&self) -> bool {
        self.status().is_some_and(|status| status.code == 404)
    }

    /// Returns whether an object with the name of the new object exists already.
    pub fn is_already_exists(&self) -> bool {
        self.is(409, reason::ALREADY_EXISTS)
    }

    /// Returns whether a permission is missing.
    pub fn is_forbidden(&self) -> bool {
        self.status().is_some_and(|status| status.code == 403)
    }

    /// Returns whether the object violates its schema or a test operation of a JSON patch failed.
    pub fn is_invalid(&self) -> bool {
        self.status().is_some_and(|status| status.code == 422)
    }

    /// Returns whether the requested resourceVersion is too old, so that a new list is needed.
    pub fn is_expired(&self) -> bool {
        self.status().is_some_and(|status| status.code == 410)
    }

    /// Returns whether the server rejected the request because of too many requests.
    pub fn is_too_many_requests(&self) -> bool {
        self.status().is_some_and(|status| status.code == 429)
    }

    /// Returns whether the server cannot be reached, did not respond in time, or there were no
    /// credentials for the request. The same request can succeed later.
    pub fn is_unreachable(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. } | Self::Credentials { .. } | Self::Timeout { .. }
        )
    }

    /// Returns whether a [`Fence`](crate::Fence) rejected the request, so that the request was not
    /// sent.
    pub fn is_fenced(&self) -> bool {
        matches!(self, Self::Fenced { .. })
    }

    fn is(&self, code: u16, reason: &str) -> bool {
        self.status()
            .is_some_and(|status| status.code == code && status.reason == reason)
    }
}

/// Returns an error and its causes in one line. Omits causes whose text is already contained in the
/// message. A [`kube::Error::Api`] is reduced to the server's message and reason.
pub fn one_line(error: &(dyn std::error::Error + 'static)) -> String {
    let mut line = error.to_string();
    let mut next = Some(error);
    while let Some(cause) = next {
        let mut text = cause.to_string();
        if let Some(kube::Error::Api(status)) = cause.downcast_ref() {
            // kube's own text contains the message twice: as such, and in the `Debug` form of the
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
