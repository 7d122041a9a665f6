//! Whether a request that a connection ended was never looked at.
//!
//! A server that wants a connection to end sends GOAWAY with the number of the last request that it
//! took; later ones it has not looked at, and the HTTP/2 stack fails them at once. But the same
//! error meets an earlier request if the connection breaks afterwards, and that one may have been
//! acted on. The difference is whether the connection had ended by then, so the stream below HTTP
//! notes its end, and hyper's error leads to that note. kube-apiserver sends GOAWAY now and then to
//! spread its clients (`--goaway-chance`), and each time it stops.

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Extensions, Uri};
use hyper::rt::{Read, Write};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tower::{BoxError, Service, ServiceExt};

/// A refusal comes with the next packet. What waits longer has met something else, such as a server
/// that went silent after its GOAWAY.
const AT_ONCE: Duration = Duration::from_secs(10);

/// The server ended the connection before it looked at the request.
#[derive(Debug, thiserror::Error)]
#[error("the server ended the connection before it took the request")]
pub(in crate::transport) struct NotTaken(#[source] legacy::Error);

/// Whether the other side has ended a connection, or it broke. That this side closes one is no such
/// end: after a GOAWAY it does so once nothing is left to wait for.
#[derive(Debug, Clone, Default)]
struct Ended(Arc<AtomicBool>);

/// The error of a request that failed after `elapsed`: [`NotTaken`] if that is certain.
pub(super) fn judge(error: legacy::Error, elapsed: Duration) -> BoxError {
    let refused = is_polite_go_away(&error) && elapsed < AT_ONCE;
    let alive = error.connect_info().and_then(|info| {
        let mut extras = Extensions::new();
        info.get_extras(&mut extras);
        let Ended(ended) = extras.remove()?;
        Some(!ended.load(Ordering::Acquire))
    });
    match refused && alive == Some(true) {
        true => NotTaken(error).into(),
        false => error.into(),
    }
}

fn is_polite_go_away(error: &legacy::Error) -> bool {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            let polite = error.reason() == Some(h2::Reason::NO_ERROR);
            return error.is_go_away() && error.is_remote() && polite;
        }
        next = error.source();
    }
    false
}

/// Makes the connections of a connector note their end.
#[derive(Clone)]
pub(super) struct Noting<C>(pub(super) C);

impl<C> Service<Uri> for Noting<C>
where
    C: Service<Uri> + Clone + Send + 'static,
    C::Response: Read + Write + Connection + Unpin + Send,
    C::Error: Into<BoxError> + Send,
    C::Future: Send,
{
    type Response = TokioIo<Noted<C::Response>>;
    type Error = BoxError;
    type Future = futures::future::BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connector = self.0.clone();
        Box::pin(async move {
            let stream = connector.oneshot(uri).await.map_err(Into::into)?;
            Ok(TokioIo::new(Noted {
                stream: TokioIo::new(stream),
                ended: Ended::default(),
            }))
        })
    }
}

/// A connection that notes its end. It speaks tokio's traits, whose buffers tell how much was read.
pub(super) struct Noted<S> {
    stream: TokioIo<S>,
    ended: Ended,
}

impl<S> Noted<S> {
    fn end(&self) {
        self.ended.0.store(true, Ordering::Release);
    }

    fn noting<T>(&self, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if matches!(polled, Poll::Ready(Err(_))) {
            self.end();
        }
        polled
    }
}

impl<S: Connection> Connection for Noted<S> {
    fn connected(&self) -> Connected {
        self.stream.inner().connected().extra(self.ended.clone())
    }
}

impl<S: Read + Unpin> AsyncRead for Noted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.remaining();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let nothing = before > 0 && buffer.remaining() == before;
        if nothing && matches!(polled, Poll::Ready(Ok(()))) {
            self.end();
        }
        self.noting(polled)
    }
}

impl<S: Write + Unpin> AsyncWrite for Noted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.noting(polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        self.noting(polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.noting(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.noting(polled)
    }
}
