//! The time limit of each request with its response, as `http.Client.Timeout` in Go, which
//! kubectl's `--request-timeout` sets.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Request, header};
use http_body::{Body as HttpBody, Frame, SizeHint};
use kube::client::Body;
use tokio::time::{Instant, Sleep, sleep_until};
use tower::{BoxError, ServiceExt};

use super::middleware::{Middleware, Next, Outcome};
use super::{ResponseBody, boxed};

/// The response to a request was not complete in time.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("no complete response within {0:?}, the request timeout")]
pub(crate) struct RequestTimeout(Duration);

/// Middleware that ends each attempt after a time, including the body of its response. Requests
/// that upgrade to another protocol are limited only until the upgrade.
#[derive(Clone)]
pub(super) struct Timeout(pub(super) Duration);

impl Middleware for Timeout {
    fn handle(&self, next: impl Next, request: Request<Body>) -> BoxFuture<'static, Outcome> {
        let limit = self.0;
        let Some(deadline) = Instant::now().checked_add(limit) else {
            return next.oneshot(request).boxed();
        };
        let is_upgrade = request.headers().contains_key(header::UPGRADE);
        async move {
            let response = tokio::time::timeout_at(deadline, next.oneshot(request)).await;
            let response = response.map_err(|_| RequestTimeout(limit))??;
            if is_upgrade {
                return Ok(response);
            }
            Ok(response.map(|body| {
                boxed(LimitedBody {
                    body,
                    limit,
                    deadline: Box::pin(sleep_until(deadline)),
                })
            }))
        }
        .boxed()
    }
}

/// A body that fails at the deadline.
struct LimitedBody {
    body: ResponseBody,
    limit: Duration,
    deadline: Pin<Box<Sleep>>,
}

impl HttpBody for LimitedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if polled.is_pending() && self.deadline.poll_unpin(cx).is_ready() {
            return Poll::Ready(Some(Err(RequestTimeout(self.limit).into())));
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
