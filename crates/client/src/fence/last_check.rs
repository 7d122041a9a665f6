//! The check at the last moment: when a request is handed to the connection, and when the
//! connection stands and asks for the first byte of the body.
//!
//! A new connection takes its time: names, TCP, TLS. hyper asks for the body after that. A body
//! that fails there ends the request: in HTTP/1.1 before its head is flushed or with the
//! connection, in HTTP/2 with a reset of the stream, and a server does not act on a write whose
//! body breaks off. A write without a body has only the first of the two checks.

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
use crate::transport::{Next, Outcome, Step};

/// The check before a service in this process, which has no connection to wait for.
#[derive(Clone)]
pub(crate) struct LastCheck;

impl Step for LastCheck {
    fn pass(&self, next: impl Next, request: Request<Body>) -> BoxFuture<'static, Outcome> {
        let checked = Fences::of(&request).map_or(Ok(()), Fences::check);
        async move {
            checked?;
            next.oneshot(request).await
        }
        .boxed()
    }
}

/// Why the body of a request was held back, once it was.
pub(crate) type Held = Arc<OnceLock<Fenced>>;

/// The request with a body that passes its fences once more; fails if it may not even begin.
pub(crate) fn guarded(
    request: Request<Body>,
) -> Result<(Request<GuardedBody>, Option<Held>), Fenced> {
    let fences = Fences::of(&request).cloned();
    if let Some(fences) = &fences {
        fences.check()?;
    }
    let guard = fences.map(|fences| (fences, Held::default()));
    let held = guard.as_ref().map(|(_, held)| held.clone());
    let request = request.map(|body| GuardedBody { body, guard });
    Ok((request, held))
}

/// The body of a request on its way to the connection.
pub(crate) struct GuardedBody {
    body: Body,
    /// Until the first byte is asked for.
    guard: Option<(Fences, Held)>,
}

impl http_body::Body for GuardedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some((fences, held)) = self.guard.take()
            && let Err(fenced) = fences.check()
        {
            // hyper tells the reason to its own task and not always to the one who asked.
            let _ = held.set(fenced);
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
