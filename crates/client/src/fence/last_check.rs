//! The last two checks of a fence: when a request is passed to the HTTP client, and when the
//! established connection reads the first byte of the request's body.
//!
//! A new connection takes time for DNS, TCP and TLS; hyper reads the body after that. A body that
//! fails at this point aborts the request: in HTTP/1.1 before its head is flushed or by closing the
//! connection, in HTTP/2 by resetting the stream. A server does not process a write with an
//! incomplete body. A write without a body has only the first of the two checks.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::Request;
use http_body::{Frame, SizeHint};
use kube::client::Body;
use tower::{BoxError, ServiceExt};

use super::{Fenced, Fences};
use crate::transport::{Middleware, Next, Outcome};

/// Middleware that checks the fences of a request to a service in this process. Such a service has
/// no connection, so that this check is the last.
#[derive(Clone)]
pub(crate) struct LastCheck;

impl Middleware for LastCheck {
    fn handle(&self, next: impl Next, request: Request<Body>) -> BoxFuture<'static, Outcome> {
        let check = Fences::of(&request).map_or(Ok(()), Fences::check);
        async move {
            check?;
            next.oneshot(request).await
        }
        .boxed()
    }
}

/// The reason why a fence rejected the body of a request. Empty if no fence rejected the body.
pub(crate) type Refusal = Arc<OnceLock<Fenced>>;

/// Checks the fences of `request`, and wraps the body so that the fences are checked again when the
/// first byte of the body is read.
pub(crate) fn guard(
    request: Request<Body>,
) -> Result<(Request<GuardedBody>, Option<Refusal>), Fenced> {
    let fences = Fences::of(&request).cloned();
    if let Some(fences) = &fences {
        fences.check()?;
    }
    let guard = fences.map(|fences| (fences, Refusal::default()));
    let refusal = guard.as_ref().map(|(_, refusal)| refusal.clone());
    let request = request.map(|body| GuardedBody { body, guard });
    Ok((request, refusal))
}

/// The body of a request, which checks the fences when its first byte is read.
pub(crate) struct GuardedBody {
    body: Body,
    /// The fences to check; `None` once the first byte was read.
    guard: Option<(Fences, Refusal)>,
}

impl http_body::Body for GuardedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some((fences, refusal)) = self.guard.take()
            && let Err(fenced) = fences.check()
        {
            // hyper reports the error to its own task, but not always to the caller.
            let _ = refusal.set(fenced);
            return Poll::Ready(Some(Err(fenced.into())));
        }
        Pin::new(&mut self.body)
            .poll_frame(cx)
            .map_err(BoxError::from)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
