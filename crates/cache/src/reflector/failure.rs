//! What went wrong, as far as it decides what a reflector does next.

use kube::core::Status;
use opkit_client::{RequestError, one_line};

/// A request that was refused, or a stream that broke.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    /// The server's code; none if no server answered.
    pub(crate) code: Option<u16>,
    /// Whether the server has not come as far as the version asked for.
    pub(crate) too_large: bool,
    /// In words.
    pub(crate) message: String,
}

/// What to do about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// The version is too old, or from another history.
    Expired,
    /// The server is busy or away, or does not know us for now: the same request again, later.
    Later,
    /// The server failed at this request, and may do so again.
    Internal,
    /// The server does not take the request as it is.
    Refused,
    /// The server has not the form that was asked for.
    Form,
    /// Anything else, such as a missing permission or kind.
    Other,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            code: None,
            too_large: false,
            message: message.into(),
        }
    }

    pub(crate) fn of_request(error: &RequestError) -> Self {
        let mut failure = Self::new(one_line(error));
        if let Some(status) = error.status() {
            failure.code = Some(status.code);
            failure.too_large = is_too_large(status);
        }
        failure
    }

    pub(crate) fn of_status(status: &Status) -> Self {
        Self {
            code: Some(status.code),
            too_large: is_too_large(status),
            message: format!("{} ({} {})", status.message, status.code, status.reason),
        }
    }

    pub(crate) fn class(&self) -> Class {
        match self.code {
            _ if self.too_large => Class::Expired,
            None | Some(401 | 408 | 429 | 502..=504) => Class::Later,
            Some(410) => Class::Expired,
            Some(400 | 405 | 422 | 501) => Class::Refused,
            Some(406 | 415) => Class::Form,
            Some(500..) => Class::Internal,
            Some(_) => Class::Other,
        }
    }
}

/// Kubernetes answers 504 with this cause when a version lies in its future.
fn is_too_large(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes
        .into_iter()
        .any(|cause| cause.reason == "ResourceVersionTooLarge")
}
