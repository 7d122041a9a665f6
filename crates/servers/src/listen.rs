//! Accepts connections and handles their requests, within bounds.

mod places;

use std::convert::Infallible;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
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
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use self::places::{Admitted, Limits, Places, Refusal};
use crate::ServerError;

/// How many connections are kept: enough for scrapers and probes of a large cluster, and a few
/// megabytes of memory at most. When there are more, the oldest one without a complete request is
/// closed. While all are busy with requests, further ones wait to be accepted; those of a peer
/// whose share is busy are closed.
const LIMITS: Limits = Limits {
    connections: 512,
    per_peer: 64,
};
/// Pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Time for the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// Time for the first request of a connection to arrive. A client that connects has something to
/// ask for, so this is much shorter than the time between two requests.
const FIRST_REQUEST: Duration = Duration::from_secs(5);
/// Time for the head of a later request, which includes the time that a connection is idle before
/// it: controller-runtime's.
const HEAD: Duration = Duration::from_secs(32);
/// Size of the head of a request.
const HEAD_BYTES: usize = 32 * 1024;
/// Life of a connection, so that one that reads no responses does not keep its place.
const LIFE: Duration = Duration::from_secs(10 * 60);
/// Time that a request may go on for after the stop.
const GRACE: Duration = Duration::from_secs(5);

pub(crate) type Answer = Response<Full<Bytes>>;
/// Answers a request, of which the body is not looked at.
pub(crate) type Handler = Arc<dyn Fn(Parts) -> BoxFuture<'static, Answer> + Send + Sync>;

/// Listens, for the server that errors name.
pub(crate) async fn bind(
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

/// Where to listen if it was to be every address, and a machine without IPv6 has none such. Go does
/// the same.
fn without_ipv6(address: SocketAddr, error: ErrorKind) -> Option<SocketAddr> {
    let is_every = address.is_ipv6() && address.ip().is_unspecified();
    let is_other = matches!(error, ErrorKind::AddrInUse | ErrorKind::PermissionDenied);
    (is_every && !is_other).then(|| (Ipv4Addr::UNSPECIFIED, address.port()).into())
}

/// Serves until `stop`; requests that are under way then may end.
pub(crate) async fn serve(
    listener: &TcpListener,
    tls: Option<TlsAcceptor>,
    handler: Handler,
    stop: CancellationToken,
) {
    serve_within(LIMITS, listener, tls, handler, stop).await;
}

async fn serve_within(
    limits: Limits,
    listener: &TcpListener,
    tls: Option<TlsAcceptor>,
    handler: Handler,
    stop: CancellationToken,
) {
    let server = Arc::new(ServerState {
        places: Mutex::new(Places::new(limits)),
        changed: Notify::new(),
        handler,
        stop,
    });
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = server.stop.cancelled() => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        // A connection that breaks at once is its client's problem; an error that lasts, such as
        // too many open files, must not become a loop.
        let Ok((stream, peer)) = accepted else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let place = server.stop.run_until_cancelled(server.place(peer.ip()));
        let Some(place) = place.await else { break };
        let Some((place, evicted)) = place else {
            debug!(%peer, "closed a connection: its peer has too many requests under way");
            continue;
        };
        let tls = tls.clone();
        connections.spawn(async move {
            let connection = connection(stream, tls, place);
            evicted.run_until_cancelled(connection).await;
        });
    }
    let ended = async { while connections.join_next().await.is_some() {} };
    let _ = timeout(GRACE, ended).await;
    connections.shutdown().await;
}

/// State that the connections of one server share.
struct ServerState {
    places: Mutex<Places>,
    /// Notified when a place may have become free.
    changed: Notify,
    handler: Handler,
    stop: CancellationToken,
}

impl ServerState {
    /// Waits for a place for a connection, and returns it with the token that ends the connection;
    /// `None` if the connection has to be closed.
    async fn place(self: &Arc<Self>, peer: IpAddr) -> Option<(Place, CancellationToken)> {
        loop {
            let admitted = self.places.lock().admit(peer);
            match admitted {
                Ok(Admitted { id, evicted }) => {
                    let server = self.clone();
                    return Some((Place { id, server }, evicted));
                }
                Err(Refusal::PeerIsBusy) => return None,
                Err(Refusal::AllAreBusy) => self.changed.notified().await,
            }
        }
    }
}

/// The place of one connection, which is free again when this is dropped.
struct Place {
    id: u64,
    server: Arc<ServerState>,
}

impl Place {
    /// Handles a request. A request that is dropped half-way ends its connection too.
    async fn handle(&self, request: Parts) -> Answer {
        self.server.places.lock().begin_request(self.id);
        let answer = (self.server.handler)(request).await;
        self.server.places.lock().end_request(self.id);
        self.server.changed.notify_one();
        answer
    }

    /// Waits until the first request is late; does not return once it has arrived.
    async fn is_late(&self) {
        sleep(FIRST_REQUEST).await;
        if self.server.places.lock().has_served(self.id) {
            std::future::pending().await
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.server.places.lock().leave(self.id);
        self.server.changed.notify_one();
    }
}

async fn connection(stream: TcpStream, tls: Option<TlsAcceptor>, place: Place) {
    let Some(acceptor) = tls else {
        return requests(stream, &place).await;
    };
    let handshake = timeout(HANDSHAKE, acceptor.accept(stream));
    match place.server.stop.run_until_cancelled(handshake).await {
        Some(Ok(Ok(stream))) => requests(stream, &place).await,
        Some(Ok(Err(error))) => debug!(%error, "TLS handshake failed"),
        Some(Err(_)) | None => {}
    }
}

async fn requests(stream: impl AsyncRead + AsyncWrite + Unpin, place: &Place) {
    let answer = service_fn(async |request: Request<Incoming>| {
        Ok::<_, Infallible>(place.handle(request.into_parts().0).await)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), answer);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        () = place.is_late() => return,
        () = place.server.stop.cancelled() => None,
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
pub(crate) fn text(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    typed(status, "text/plain; charset=utf-8", body)
}

pub(crate) fn typed(
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

pub(crate) fn not_found() -> Answer {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

#[cfg(test)]
mod tests;
