//! Accepting connections and answering their requests, within bounds.

use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::ServerError;

/// How many connections are served at once; further ones wait to be accepted.
const CONNECTIONS: usize = 64;
/// How long after a connection could not be accepted the next one is tried.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How long a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// How long the head of a request may take, and how long a connection may be idle before it:
/// controller-runtime's.
const HEAD: Duration = Duration::from_secs(32);
/// How large the head of a request may be.
const HEAD_BYTES: usize = 32 * 1024;
/// How long a connection may last, so that one that reads no answers does not keep its place.
const LIFE: Duration = Duration::from_secs(10 * 60);
/// How long a request may go on after the stop.
const GRACE: Duration = Duration::from_secs(5);

pub(super) type Answer = Response<Full<Bytes>>;
/// Answers a request, of which the body is not looked at.
pub(super) type Handler = Arc<dyn Fn(Parts) -> BoxFuture<'static, Answer> + Send + Sync>;

/// Listens, for the server that errors name.
pub(super) async fn bind(
    what: &'static str,
    address: SocketAddr,
) -> Result<(TcpListener, SocketAddr), ServerError> {
    let failed = |cause| ServerError::Listen {
        what,
        address,
        cause,
    };
    let bound = TcpListener::bind(address).await;
    let fallback = bound.as_ref().err();
    let fallback = fallback.and_then(|error| without_ipv6(address, error.kind()));
    let bound = match fallback {
        Some(address) => TcpListener::bind(address).await,
        None => bound,
    };
    let listener = bound.map_err(failed)?;
    let local = listener.local_addr().map_err(failed)?;
    Ok((listener, local))
}

/// Where to listen if it was to be every address, and a machine without IPv6 has none such. Go does the
/// same.
fn without_ipv6(address: SocketAddr, error: ErrorKind) -> Option<SocketAddr> {
    let is_every = address.is_ipv6() && address.ip().is_unspecified();
    let is_other = matches!(error, ErrorKind::AddrInUse | ErrorKind::PermissionDenied);
    (is_every && !is_other).then(|| (Ipv4Addr::UNSPECIFIED, address.port()).into())
}

/// Serves until `stop`; then what is under way may end.
pub(super) async fn serve(
    listener: &TcpListener,
    tls: Option<TlsAcceptor>,
    handler: Handler,
    stop: CancellationToken,
) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < CONNECTIONS => {
                // A connection that breaks at once is its client's problem; an error that lasts,
                // such as too many open files, must not become a loop.
                let Ok((stream, _)) = accepted else {
                    sleep(ACCEPT_PAUSE).await;
                    continue;
                };
                connections.spawn(connection(stream, tls.clone(), handler.clone(), stop.clone()));
            }
        }
    }
    let ended = async { while connections.join_next().await.is_some() {} };
    let _ = timeout(GRACE, ended).await;
    connections.shutdown().await;
}

async fn connection(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    handler: Handler,
    stop: CancellationToken,
) {
    let Some(acceptor) = tls else {
        return requests(stream, handler, stop).await;
    };
    let handshake = timeout(HANDSHAKE, acceptor.accept(stream));
    match stop.run_until_cancelled(handshake).await {
        Some(Ok(Ok(stream))) => requests(stream, handler, stop).await,
        Some(Ok(Err(error))) => debug!(%error, "TLS handshake failed"),
        Some(Err(_)) | None => {}
    }
}

async fn requests(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    handler: Handler,
    stop: CancellationToken,
) {
    let answer = service_fn(move |request: Request<Incoming>| {
        let answer = handler(request.into_parts().0);
        async { Ok::<_, Infallible>(answer.await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), answer);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = stop.cancelled() => None,
        () = sleep(LIFE) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            match timeout(GRACE, connection).await {
                Ok(ended) => ended,
                Err(_) => return,
            }
        }
    };
    if let Err(error) = ended {
        debug!(%error, "connection failed");
    }
}

/// An answer in plain text, as Go's `http.Error` writes one.
pub(super) fn text(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    typed(status, "text/plain; charset=utf-8", body)
}

pub(super) fn typed(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    answer
}

pub(super) fn not_found() -> Answer {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

#[cfg(test)]
mod tests;
