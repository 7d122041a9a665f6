//! Sending a request again, where that cannot do a thing twice. The rules are stricter than
//! client-go's (`rest/with_retry.go`), which repeats any method on 5xx, and GET whatever it does:
//!
//! - A response 429 that carries `Retry-After` means that the server did not act: any request is
//!   sent again after that time.
//! - A response 5xx that carries `Retry-After` leaves open whether the server acted: the API server
//!   sends it on timeouts of etcd too. Reads are sent again, and writes whose repetition changes
//!   nothing more; see [`Repetition`].
//! - A connection that broke before the response came leaves it open as well: only reads are sent
//!   again.
//! - A connection that was not made, and an HTTP/2 stream that the server refused, prove that the
//!   server has not seen the request: any request is sent again, a few times.
//!
//! GOAWAY proves it as well for requests above the last one that the server took, and those alone;
//! `wire/ending.rs` tells them from the others.

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
use super::step::{self, Next, Step};
use super::wire::NotTaken;
use super::{Answer, host_of};
use crate::RequestInfo;
use crate::backoff::Backoff;
use crate::fence::Fences;

/// How often a connection is tried again within one request. An unreachable server is for the
/// caller to wait for; this bridges the moment in which one of several goes away.
const CONNECTS_MAX: u32 = 3;

/// When a request is sent again. The default is client-go's ten times.
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
    /// How often at most.
    pub retries_max: u32,
    /// The longest `Retry-After` that is waited for; an answer that asks for more is the caller's.
    pub retry_after_max: Duration,
    /// The waits after broken connections.
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
    /// Every request once.
    pub fn never() -> Self {
        Self {
            retries_max: 0,
            ..Default::default()
        }
    }

    /// How long to wait before the request is sent again; none if it must not be. `attempt` counts
    /// from 1.
    fn step(&self, attempt: u32, repetition: Repetition, outcome: &Outcome) -> Option<Duration> {
        if attempt > self.retries_max {
            return None;
        }
        match outcome {
            Outcome::Answer(code, retry_after) => {
                let harmless = code.is_server_error() && repetition != Repetition::Acts;
                if *code != StatusCode::TOO_MANY_REQUESTS && !harmless {
                    return None;
                }
                let wait = Duration::from_secs((*retry_after)?);
                // Those that were turned away together shall not come back together.
                let spread = Duration::from_millis(100).mul_f64(crate::backoff::random());
                (wait <= self.retry_after_max).then_some(wait.saturating_add(spread))
            }
            Outcome::Failure(fate) => match fate {
                Fate::Unsent if attempt <= CONNECTS_MAX => Some(self.backoff.wait(attempt)),
                Fate::Broken if repetition == Repetition::Reads => Some(self.backoff.wait(attempt)),
                _ => None,
            },
        }
    }
}

/// The effect of a request that the server carries out a second time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repetition {
    /// None: the request changes nothing. Dry runs and reviews are among these.
    Reads,
    /// None beyond that of the first time: the request contains the wanted state of the object, or
    /// names the one object to delete. PUT, merge patch, strategic merge patch, apply, and DELETE
    /// with a UID as its precondition.
    Same,
    /// A second effect, or one on an object that came in between: POST, JSON patch, DELETE without
    /// a UID, DELETE of a collection, `exec` and the like.
    Acts,
}

impl Repetition {
    fn of(request: &Request<Body>) -> Self {
        if !RequestInfo::acts(request) {
            return Self::Reads;
        }
        let same = match *request.method() {
            Method::PUT => true,
            Method::PATCH => {
                let content_type = request.headers().get(header::CONTENT_TYPE);
                let content_type = content_type.and_then(|it| it.to_str().ok());
                let essence = content_type.unwrap_or_default().split(';').next();
                SAME_PATCHES.contains(&essence.unwrap_or_default().trim())
            }
            Method::DELETE => names_uid(request.body()),
            _ => false,
        };
        match same {
            true => Self::Same,
            false => Self::Acts,
        }
    }
}

/// Patches that lead to the same object when they are applied twice.
const SAME_PATCHES: [&str; 4] = [
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/apply-patch+cbor",
];

/// Whether the body of a deletion has the UID of the object as its precondition.
fn names_uid(body: &Body) -> bool {
    // A body that can be repeated is in memory.
    let bytes = body.try_clone().map(Body::collect_bytes);
    let bytes = bytes.and_then(|bytes| bytes.now_or_never()?.ok());
    let options = bytes.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
    options.is_some_and(|it| {
        it.pointer("/preconditions/uid")
            .is_some_and(Value::is_string)
    })
}

enum Outcome {
    Answer(StatusCode, Option<u64>),
    Failure(Fate),
}

#[derive(Debug, PartialEq)]
enum Fate {
    /// The server cannot have seen the request.
    Unsent,
    /// The connection broke; who knows.
    Broken,
    /// Something that will be the same next time, such as credentials that cannot be had.
    Final,
}

fn fate(failure: &(dyn Error + 'static)) -> Fate {
    let mut fate = Fate::Final;
    let mut next = Some(failure);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<hyper_util::client::legacy::Error>()
            && error.is_connect()
        {
            return connect_fate(error);
        }
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            if error.is_remote()
                && error.is_reset()
                && error.reason() == Some(h2::Reason::REFUSED_STREAM)
            {
                return Fate::Unsent;
            }
            if error.is_remote() || error.is_io() {
                fate = Fate::Broken;
            }
        }
        if let Some(error) = error.downcast_ref::<hyper::Error>()
            && (error.is_incomplete_message() || error.is_closed())
        {
            fate = Fate::Broken;
        }
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            match error.kind() {
                ErrorKind::ConnectionReset
                | ErrorKind::ConnectionAborted
                | ErrorKind::BrokenPipe
                | ErrorKind::UnexpectedEof => fate = Fate::Broken,
                ErrorKind::ConnectionRefused => return Fate::Unsent,
                _ => {}
            }
        }
        if error.downcast_ref::<NotTaken>().is_some()
            || error.downcast_ref::<crate::seam::Refused>().is_some()
        {
            return Fate::Unsent;
        }
        if error.downcast_ref::<crate::seam::Dropped>().is_some() {
            fate = Fate::Broken;
        }
        next = error.source();
    }
    fate
}

/// A name that does not resolve and a certificate that does not fit stay so.
fn connect_fate(error: &hyper_util::client::legacy::Error) -> Fate {
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
            return Fate::Unsent;
        }
        next = error.source();
    }
    Fate::Final
}

/// Sends requests again.
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

/// The request once more. A body that streams cannot be repeated; extensions are for the first
/// attempt, as kube sets them for nothing but the name of a span, and the fences are kept.
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

impl Step for Retry {
    fn pass(&self, next: impl Next, request: Request<Body>) -> BoxFuture<'static, step::Outcome> {
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
                    Ok(answer) => Outcome::Answer(answer.status(), retry_after(answer)),
                    Err(error) => Outcome::Failure(fate(error.as_ref())),
                };
                let code = match &seen {
                    Outcome::Answer(code, _) => code.as_str().to_owned(),
                    Outcome::Failure(_) => "<error>".to_owned(),
                };
                let repetition = Repetition::of(&copy);
                let Some(wait) = retry.options.step(attempt, repetition, &seen) else {
                    return outcome;
                };
                drop(outcome);
                let path = copy.uri().path();
                tracing::debug!(%method, path, attempt, code, ?wait, "request is sent again");
                retry.metrics.retried(&code, &method, &host_of(copy.uri()));
                tokio::time::sleep(wait).await;
                attempt = attempt.saturating_add(1);
                request = copy;
            }
        }
        .boxed()
    }
}

/// The seconds of `Retry-After`; Kubernetes never sends a date.
fn retry_after(answer: &Answer) -> Option<u64> {
    let value = answer.headers().get(header::RETRY_AFTER)?;
    value.to_str().ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests;
