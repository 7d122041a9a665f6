//! Failures of a reflector's requests, classified by what the reflector does next.

use kube::core::Status;
use opkit_client::{RequestError, one_line};

/// Failed request, or broken watch stream.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    /// HTTP status code of the response; `None` if there was no response.
    pub(crate) code: Option<u16>,
    /// Whether the requested resourceVersion is higher than the server's current one.
    pub(crate) too_large: bool,
    /// Error text.
    pub(crate) message: String,
}

/// Class of a failure, which determines what the reflector does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// The resourceVersion is too old, or is higher than the server's current one.
    Expired,
    /// The server is busy or unreachable, or temporarily does not accept the credentials: the
    /// request is repeated later.
    Retry,
    /// The server had an internal error, and may have the same error again.
    Internal,
    /// The server rejects the request as invalid or not supported.
    Refused,
    /// The server does not support the requested encoding.
    Encoding,
    /// Any other failure, such as a missing permission or kind.
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
            None | Some(401 | 408 | 429 | 502..=504) => Class::Retry,
            Some(410) => Class::Expired,
            Some(400 | 405 | 422 | 501) => Class::Refused,
            Some(406 | 415) => Class::Encoding,
            Some(500..) => Class::Internal,
            Some(_) => Class::Other,
        }
    }
}

/// Reports whether the requested resourceVersion is higher than the server's current one.
/// Kubernetes reports this with the status 504 and the cause `ResourceVersionTooLarge`.
fn is_too_large(status: &Status) -> bool {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    causes
        .into_iter()
        .any(|cause| cause.reason == "ResourceVersionTooLarge")
}
