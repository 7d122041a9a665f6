//! Detection of requests that the server did not process because it was closing the connection.
//!
//! To close a connection, a server sends GOAWAY with the ID of the last stream that it processes.
//! The HTTP/2 stack fails the requests of later streams immediately; the server has not processed
//! them. However, a request of an earlier stream fails with the same error if the connection breaks
//! after the GOAWAY, and the server may have processed that request. The two cases differ in
//! whether the connection was still open. The stream below HTTP therefore records that the
//! connection was closed, and hyper's error gives access to this record. kube-apiserver sends
//! GOAWAY at random to spread its clients (`--goaway-chance`), and whenever it shuts down.

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

/// Longest time within which a failed request counts as refused by a GOAWAY. A refusal arrives with
/// the next packet. A request that fails later has another cause, such as a server that stopped
/// responding after its GOAWAY.
const REFUSAL_DELAY_MAX: Duration = Duration::from_secs(10);

/// The error of a request that the server did not process before closing the connection.
#[derive(Debug, thiserror::Error)]
#[error("the server closed the connection without processing the request")]
pub(in crate::transport) struct NotProcessed(#[source] legacy::Error);

/// Whether the server closed the connection or the connection broke. Stays `false` if this process
/// closes the connection, as hyper does after a GOAWAY once no request is left.
#[derive(Debug, Clone, Default)]
struct Closed(Arc<AtomicBool>);

/// Returns the error of a request that failed after `elapsed`. The error is [`NotProcessed`] if the
/// server has certainly not processed the request.
pub(super) fn classify(error: legacy::Error, elapsed: Duration) -> BoxError {
    let is_refusal = is_graceful_go_away(&error) && elapsed < REFUSAL_DELAY_MAX;
    let is_open = error.connect_info().and_then(|info| {
        let mut extensions = Extensions::new();
        info.get_extras(&mut extensions);
        let Closed(closed) = extensions.remove()?;
        Some(!closed.load(Ordering::Acquire))
    });
    match is_refusal && is_open == Some(true) {
        true => NotProcessed(error).into(),
        false => error.into(),
    }
}

fn is_graceful_go_away(error: &legacy::Error) -> bool {
    let mut next: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            let graceful = error.reason() == Some(h2::Reason::NO_ERROR);
            return error.is_go_away() && error.is_remote() && graceful;
        }
        next = error.source();
    }
    false
}

/// A connector whose connections record whether the server closed them or they broke.
#[derive(Clone)]
pub(super) struct TrackClose<C>(pub(super) C);

impl<C> Service<Uri> for TrackClose<C>
where
    C: Service<Uri> + Clone + Send + 'static,
    C::Response: Read + Write + Connection + Unpin + Send,
    C::Error: Into<BoxError> + Send,
    C::Future: Send,
{
    type Response = TokioIo<TrackedStream<C::Response>>;
    type Error = BoxError;
    type Future = futures::future::BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connector = self.0.clone();
        Box::pin(async move {
            let stream = connector.oneshot(uri).await.map_err(Into::into)?;
            Ok(TokioIo::new(TrackedStream {
                stream: TokioIo::new(stream),
                closed: Closed::default(),
            }))
        })
    }
}

/// A connection that records whether the server closed it or it broke. Implements tokio's I/O
/// traits instead of hyper's, because the read buffer of tokio shows how many bytes were read.
pub(super) struct TrackedStream<S> {
    stream: TokioIo<S>,
    closed: Closed,
}

impl<S> TrackedStream<S> {
    fn set_closed(&self) {
        self.closed.0.store(true, Ordering::Release);
    }

    fn track<T>(&self, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if matches!(polled, Poll::Ready(Err(_))) {
            self.set_closed();
        }
        polled
    }
}

impl<S: Connection> Connection for TrackedStream<S> {
    fn connected(&self) -> Connected {
        self.stream.inner().connected().extra(self.closed.clone())
    }
}

impl<S: Read + Unpin> AsyncRead for TrackedStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.remaining();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let nothing = before > 0 && buffer.remaining() == before;
        if nothing && matches!(polled, Poll::Ready(Ok(()))) {
            self.set_closed();
        }
        self.track(polled)
    }
}

impl<S: Write + Unpin> AsyncWrite for TrackedStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.track(polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(cx);
        self.track(polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.track(polled)
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
        self.track(polled)
    }
}
