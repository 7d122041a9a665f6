//! Retries of requests that cannot take effect twice. The rules are stricter than client-go's
//! (`rest/with_retry.go`), which retries any method on 5xx, and any GET, even an `exec`:
//!
//! - Response 429 with `Retry-After`: the server did not act. Any request is retried after the time
//!   in `Retry-After`.
//! - Response 5xx with `Retry-After`: the server may have acted, since the API server also sends
//!   such responses on etcd timeouts. Reads and idempotent writes are retried; see [`RetrySafety`].
//! - Connection lost before the response: the server may have acted. Only reads are retried.
//! - Connection not established, or HTTP/2 stream refused by the server: the server has not
//!   received the request. Any request is retried, up to [`CONNECT_RETRIES_MAX`] times.
//!
//! After a GOAWAY, the server has not processed requests above the last stream ID in the GOAWAY.
//! `wire/goaway.rs` detects these requests.

use std::error::Error;
use std::io::ErrorKind;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Method, Request, StatusCode, header};
use kube::client::Body;
use serde_json::Value;
use tower::ServiceExt;

use super::metrics::Metrics;
use super::middleware::{self, Middleware, Next};
use super::wire::NotProcessed;
use super::{HttpResponse, host_of};
use crate::RequestInfo;
use crate::backoff::Backoff;
use crate::fence::Fences;

/// Maximum number of retries of one request because no connection can be established. The number is
/// small, since these retries only cover the moment in which one of several API servers stops;
/// waiting for an unreachable server is the caller's task.
const CONNECT_RETRIES_MAX: u32 = 3;

/// Limits and delays of retries. The default is at most ten retries, as in client-go.
///
/// # Examples
/// ```
/// use opkit_client::{ClientOptions, RetryOptions};
/// let mut options = ClientOptions::default();
/// options.retry = RetryOptions::never();
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RetryOptions {
    /// Maximum number of retries of one request.
    pub retries_max: u32,
    /// Longest `Retry-After` that is obeyed. A response with a longer `Retry-After` is returned to
    /// the caller.
    pub retry_after_max: Duration,
    /// Delays before retries after connection failures.
    pub backoff: Backoff,
}

impl Default for RetryOptions {
    fn default() -> Self {
        Self {
            retries_max: 10,
            retry_after_max: Duration::from_secs(30),
            backoff: Backoff {
                first: Duration::from_millis(50),
                factor: 2.0,
                jitter: 0.5,
                steps: 10,
                max: Duration::from_secs(2),
            },
        }
    }
}

impl RetryOptions {
    /// Creates options that send each request only once.
    pub fn never() -> Self {
        Self {
            retries_max: 0,
            ..Default::default()
        }
    }

    /// Returns the delay before the next retry, or `None` if the request must not be retried. The
    /// first attempt has the number 1.
    fn delay(
        &self,
        attempt: u32,
        safety: RetrySafety,
        outcome: &AttemptResult,
    ) -> Option<Duration> {
        if attempt > self.retries_max {
            return None;
        }
        match outcome {
            AttemptResult::Response(code, retry_after) => {
                let retriable = code.is_server_error() && safety != RetrySafety::NotIdempotent;
                if *code != StatusCode::TOO_MANY_REQUESTS && !retriable {
                    return None;
                }
                let wait = Duration::from_secs((*retry_after)?);
                // Clients that were rejected together shall not retry together.
                let spread = Duration::from_millis(100).mul_f64(crate::backoff::random());
                (wait <= self.retry_after_max).then_some(wait.saturating_add(spread))
            }
            AttemptResult::Failure(kind) => match kind {
                FailureKind::NotSent if attempt <= CONNECT_RETRIES_MAX => {
                    Some(self.backoff.wait(attempt))
                }
                FailureKind::ConnectionLost if safety == RetrySafety::ReadOnly => {
                    Some(self.backoff.wait(attempt))
                }
                _ => None,
            },
        }
    }
}

/// Effect of processing a request a second time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RetrySafety {
    /// No effect: the request changes nothing. Includes dry runs and reviews.
    ReadOnly,
    /// No additional effect: the request contains the wanted state of the object, or the UID of the
    /// object to delete. Includes PUT, merge patch, strategic merge patch, apply, and DELETE with a
    /// UID precondition.
    Idempotent,
    /// A second effect, or an effect on an object that was created in between. Includes POST, JSON
    /// patch, DELETE without a UID, DELETE of a collection, and `exec`.
    NotIdempotent,
}

impl RetrySafety {
    fn of(request: &Request<Body>) -> Self {
        if !RequestInfo::may_change(request) {
            return Self::ReadOnly;
        }
        let is_idempotent = match *request.method() {
            Method::PUT => true,
            Method::PATCH => {
                let content_type = request.headers().get(header::CONTENT_TYPE);
                let content_type = content_type.and_then(|it| it.to_str().ok());
                let essence = content_type.unwrap_or_default().split(';').next();
                IDEMPOTENT_PATCHES.contains(&essence.unwrap_or_default().trim())
            }
            Method::DELETE => has_uid_precondition(request.body()),
            _ => false,
        };
        match is_idempotent {
            true => Self::Idempotent,
            false => Self::NotIdempotent,
        }
    }
}

/// Content types of patches that have the same result when they are applied twice.
const IDEMPOTENT_PATCHES: [&str; 4] = [
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/apply-patch+cbor",
];

/// Returns whether the body of a deletion has the UID of the object as a precondition.
fn has_uid_precondition(body: &Body) -> bool {
    // A body that can be cloned is in memory, so that collecting it does not wait.
    let bytes = body.try_clone().map(Body::collect_bytes);
    let bytes = bytes.and_then(|bytes| bytes.now_or_never()?.ok());
    let options = bytes.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    options.is_some_and(|it| {
        it.pointer("/preconditions/uid")
            .is_some_and(Value::is_string)
    })
}

/// Result of one attempt.
enum AttemptResult {
    /// The status code, and the seconds in `Retry-After`.
    Response(StatusCode, Option<u64>),
    /// No response.
    Failure(FailureKind),
}

/// Classification of a failed attempt.
#[derive(Debug, PartialEq)]
enum FailureKind {
    /// The server has not received the request.
    NotSent,
    /// The connection broke. The server may have processed the request.
    ConnectionLost,
    /// A retry would fail as well, for example because credentials are not available.
    Permanent,
}

/// Classifies the failure of an attempt by its chain of causes.
fn classify(failure: &(dyn Error + 'static)) -> FailureKind {
    let mut kind = FailureKind::Permanent;
    let mut next = Some(failure);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<hyper_util::client::legacy::Error>()
            && error.is_connect()
        {
            return classify_connect(error);
        }
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            if error.is_remote()
                && error.is_reset()
                && error.reason() == Some(h2::Reason::REFUSED_STREAM)
            {
                return FailureKind::NotSent;
            }
            if error.is_remote() || error.is_io() {
                kind = FailureKind::ConnectionLost;
            }
        }
        if let Some(error) = error.downcast_ref::<hyper::Error>()
            && (error.is_incomplete_message() || error.is_closed())
        {
            kind = FailureKind::ConnectionLost;
        }
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            match error.kind() {
                ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted
                | ErrorKind::BrokenPipe
                | ErrorKind::UnexpectedEof => kind = FailureKind::ConnectionLost,
                ErrorKind::ConnectionRefused => return FailureKind::NotSent,
                _ => {}
            }
        }
        if error.downcast_ref::<NotProcessed>().is_some()
            || error.downcast_ref::<crate::seam::Refused>().is_some()
        {
            return FailureKind::NotSent;
        }
        if error.downcast_ref::<crate::seam::Dropped>().is_some() {
            kind = FailureKind::ConnectionLost;
        }
        next = error.source();
    }
    kind
}

/// Classifies the failure to establish a connection. A name that does not resolve and a certificate
/// that is not valid are permanent.
fn classify_connect(error: &hyper_util::client::legacy::Error) -> FailureKind {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<std::io::Error>()
            && matches!(
                error.kind(),
                ErrorKind::ConnectionRefused
                    | ErrorKind::ConnectionReset
                    | ErrorKind::ConnectionAborted
                    | ErrorKind::UnexpectedEof
            )
        {
            return FailureKind::NotSent;
        }
        next = error.source();
    }
    FailureKind::Permanent
}

/// Middleware that retries failed requests.
#[derive(Clone)]
pub(super) struct Retry {
    options: RetryOptions,
    metrics: Metrics,
}

impl Retry {
    pub(super) fn new(options: RetryOptions, metrics: Metrics) -> Self {
        Self { options, metrics }
    }
}

/// Copies a request for a retry. Returns `None` if its body is a stream, which cannot be copied. Of
/// the request's extensions, only the fences are copied, because kube uses extensions only for the
/// name of a tracing span.
fn copy(request: &Request<Body>) -> Option<Request<Body>> {
    let mut copy = Request::new(request.body().try_clone()?);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.version_mut() = request.version();
    *copy.headers_mut() = request.headers().clone();
    if let Some(fences) = Fences::of(request) {
        copy.extensions_mut().insert(fences.clone());
    }
    Some(copy)
}

impl Middleware for Retry {
    fn handle(
        &self,
        next: impl Next,
        request: Request<Body>,
    ) -> BoxFuture<'static, middleware::Outcome> {
        let retry = self.clone();
        let mut request = request;
        async move {
            let mut attempt: u32 = 1;
            loop {
                let copy = copy(&request);
                let method = request.method().clone();
                let outcome = next.clone().oneshot(request).await;
                let Some(copy) = copy else { return outcome };
                let seen = match &outcome {
                    Ok(response) => {
                        AttemptResult::Response(response.status(), retry_after(response))
                    }
                    Err(error) => AttemptResult::Failure(classify(error.as_ref())),
                };
                let code = match &seen {
                    AttemptResult::Response(code, _) => code.as_str().to_owned(),
                    AttemptResult::Failure(_) => "<error>".to_owned(),
                };
                let safety = RetrySafety::of(&copy);
                let Some(wait) = retry.options.delay(attempt, safety, &seen) else {
                    return outcome;
                };
                drop(outcome);
                let path = copy.uri().path();
                tracing::debug!(%method, path, attempt, code, ?wait, "retrying request");
                retry.metrics.retried(&code, &method, &host_of(copy.uri()));
                tokio::time::sleep(wait).await;
                attempt = attempt.saturating_add(1);
                request = copy;
            }
        }
        .boxed()
    }
}

/// Returns the seconds in `Retry-After`. Kubernetes never sends a date.
fn retry_after(response: &HttpResponse) -> Option<u64> {
    let value = response.headers().get(header::RETRY_AFTER)?;
    value.to_str().ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests;
