//! The listener of all servers: accepts a limited number of connections and handles their requests.

mod connections;
mod http2;

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode, Version, header};
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

pub(crate) use self::connections::ConnectionLimits;
use self::connections::{Admission, ConnectionTable, Rejection};
use crate::ServerError;
use crate::certificates::HTTP2;

/// Maximum numbers of connections: enough for scrapers and probes of a large cluster, and at most a
/// few megabytes of memory. When a limit is reached, the oldest connection without a complete
/// request is closed. While all connections are busy with requests, new connections wait to be
/// accepted. While all connections of one peer are busy, new connections of that peer are closed.
const CONNECTION_LIMITS: ConnectionLimits = ConnectionLimits {
    connections: 512,
    per_peer: 64,
};
/// Pause after a connection could not be accepted; prevents a busy loop.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Time limit of the TLS handshake; ends connections that send nothing.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum size of the header of a request; bounds the memory of a connection.
const HEADER_MAX_BYTES: usize = 32 * 1024;
/// Maximum age of a connection. It ends connections of clients that do not read responses.
const MAX_CONNECTION_AGE: Duration = Duration::from_secs(10 * 60);
/// Time after the stop in which a new connection may complete its TLS handshake and send its first
/// request: its client has connected to send one. Go's server waits for up to 5 s.
const NEW_CONNECTION_GRACE_PERIOD: Duration = Duration::from_secs(3);
/// Time after the stop in which an idle connection is still read: a request may have arrived that
/// the server has not read yet.
const IDLE_GRACE_PERIOD: Duration = Duration::from_millis(100);
/// Time that requests in progress have to complete after the stop.
const SHUTDOWN_GRACE_PERIOD: Duration = Duration::from_secs(5);

/// Time limits for the header of a request, including the idle time of the connection before the
/// request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestTimeouts {
    /// For the first request of a connection. Scrapers and probes send it as soon as they have
    /// connected, so this limit is much shorter than the one for later requests.
    pub(crate) first_request: Duration,
    /// For a later request; controller-runtime's value.
    pub(crate) next_request: Duration,
}

impl Default for RequestTimeouts {
    fn default() -> Self {
        Self {
            first_request: Duration::from_secs(5),
            next_request: Duration::from_secs(32),
        }
    }
}

pub(crate) type HttpResponse = Response<Full<Bytes>>;
/// Function that returns the response to a request.
pub(crate) type RequestHandler =
    Arc<dyn Fn(Request<Incoming>) -> BoxFuture<'static, HttpResponse> + Send + Sync>;

/// Returns a handler that does not read the bodies of requests.
pub(crate) fn without_body<F, Fut>(handler: F) -> RequestHandler
where
    F: Fn(Parts) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = HttpResponse> + Send + 'static,
{
    Arc::new(move |request| handler(request.into_parts().0).boxed())
}

/// Binds an address and returns the listener with its actual address. Error messages contain
/// `server`, the name of the server.
pub(crate) async fn bind(
    server: &'static str,
    address: SocketAddr,
) -> Result<(TcpListener, SocketAddr), ServerError> {
    let failed = |cause| ServerError::Listen {
        server,
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

/// Returns the fallback address `0.0.0.0` if `[::]` cannot be bound because the machine has no
/// IPv6. Returns `None` for other addresses and errors. Go's listener has the same fallback.
fn without_ipv6(address: SocketAddr, error: ErrorKind) -> Option<SocketAddr> {
    let is_unspecified = address.is_ipv6() && address.ip().is_unspecified();
    let is_unrelated = matches!(error, ErrorKind::AddrInUse | ErrorKind::PermissionDenied);
    (is_unspecified && !is_unrelated).then(|| (Ipv4Addr::UNSPECIFIED, address.port()).into())
}

/// Serves until `stop` is cancelled. Requests in progress may then complete.
pub(crate) async fn serve(
    listener: &TcpListener,
    tls: Option<TlsAcceptor>,
    handler: RequestHandler,
    stop: CancellationToken,
) {
    let (limits, timeouts) = (CONNECTION_LIMITS, RequestTimeouts::default());
    serve_within(limits, timeouts, listener, tls, handler, stop).await;
}

/// Serves as [`serve`] does, with other limits.
pub(crate) async fn serve_within(
    limits: ConnectionLimits,
    timeouts: RequestTimeouts,
    listener: &TcpListener,
    tls: Option<TlsAcceptor>,
    handler: RequestHandler,
    stop: CancellationToken,
) {
    let server = Arc::new(ServerState {
        table: Mutex::new(ConnectionTable::new(limits)),
        changed: Notify::new(),
        timeouts,
        handler,
        stop,
    });
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = server.stop.cancelled() => break,
            Some(_) = connections.join_next() => continue,
            accepted = accept(listener) => accepted,
        };
        // One aborted connection needs no handling; a persistent error, such as too many open
        // files, must not become a busy loop.
        let Ok((stream, peer)) = accepted else {
            sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let slot = server.stop.run_until_cancelled(server.admit(peer.ip()));
        let Some(slot) = slot.await else { break };
        let Some((slot, evicted)) = slot else {
            debug!(%peer, "closed a connection: its peer has too many requests in progress");
            continue;
        };
        let tls = tls.clone();
        connections.spawn(async move {
            let connection = serve_connection(stream, tls, slot);
            evicted.run_until_cancelled(connection).await;
        });
    }
    let ended = async { while connections.join_next().await.is_some() {} };
    let _ = timeout(SHUTDOWN_GRACE_PERIOD, ended).await;
    connections.shutdown().await;
}

/// Accepts the next connection.
async fn accept(listener: &TcpListener) -> io::Result<(TcpStream, SocketAddr)> {
    let (stream, peer) = listener.accept().await?;
    // Otherwise the last packet of a long response waits until the client has acknowledged the
    // packets before it, which takes up to 40 ms.
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%peer, %error, "cannot set TCP_NODELAY");
    }
    Ok((stream, peer))
}

/// State that the connections of one server share.
struct ServerState {
    table: Mutex<ConnectionTable>,
    /// Notified when a new connection may be admitted.
    changed: Notify,
    timeouts: RequestTimeouts,
    handler: RequestHandler,
    stop: CancellationToken,
}

impl ServerState {
    /// Waits until a connection is admitted, and returns its slot and the token that closes it.
    /// Returns `None` if the connection is rejected.
    async fn admit(self: &Arc<Self>, peer: IpAddr) -> Option<(ConnectionSlot, CancellationToken)> {
        loop {
            let admission = self.table.lock().admit(peer);
            match admission {
                Ok(Admission { id, evicted }) => {
                    let slot = ConnectionSlot {
                        id,
                        server: self.clone(),
                        is_closing: AtomicBool::new(false),
                    };
                    return Some((slot, evicted));
                }
                Err(Rejection::PeerBusy) => return None,
                Err(Rejection::ServerBusy) => self.changed.notified().await,
            }
        }
    }
}

/// Entry of one connection in the table of connections. Dropping the slot removes the entry.
struct ConnectionSlot {
    id: u64,
    server: Arc<ServerState>,
    /// Whether the next response is the last one of the connection.
    is_closing: AtomicBool,
}

impl ConnectionSlot {
    /// Handles a request.
    async fn handle(&self, request: Request<Incoming>) -> HttpResponse {
        let _busy = BusySlot::new(self);
        // HTTP/2 has no such header: its clients are told before the connection is closed.
        let has_header = request.version() <= Version::HTTP_11;
        let mut response = (self.server.handler)(request).await;
        if has_header && self.is_closing.load(Ordering::Relaxed) {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        response
    }

    /// Waits for the time limit of the first request. Returns if no request has arrived by then,
    /// and otherwise never returns.
    async fn first_request_timeout(&self) {
        sleep(self.server.timeouts.first_request).await;
        if self.has_served() {
            std::future::pending().await
        }
    }

    /// Waits until the connection is to be closed unless a request is in progress: after the stop,
    /// or at the maximum age. A response in between is the last one of the connection. HTTP/1.1 has
    /// no way to close an idle connection that its client cannot have used at the same moment, so a
    /// connection is given up only when no request has arrived for a while.
    async fn closing(&self) {
        tokio::select! {
            () = self.server.stop.cancelled() => {}
            () = sleep(MAX_CONNECTION_AGE) => {}
        }
        self.is_closing.store(true, Ordering::Relaxed);
        match self.has_served() {
            true => sleep(IDLE_GRACE_PERIOD).await,
            false => sleep(NEW_CONNECTION_GRACE_PERIOD).await,
        }
    }

    fn has_served(&self) -> bool {
        self.server.table.lock().has_served(self.id)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.server.table.lock().remove(self.id);
        self.server.changed.notify_one();
    }
}

/// Marks a connection as busy with a request until it is dropped: also if the client of an HTTP/2
/// connection gives up one of its requests.
struct BusySlot<'a>(&'a ConnectionSlot);

impl<'a> BusySlot<'a> {
    fn new(slot: &'a ConnectionSlot) -> Self {
        slot.server.table.lock().begin_request(slot.id);
        Self(slot)
    }
}

impl Drop for BusySlot<'_> {
    fn drop(&mut self) {
        self.0.server.table.lock().end_request(self.0.id);
        self.0.server.changed.notify_one();
    }
}

/// Performs the TLS handshake, if any, and serves the requests of a connection.
async fn serve_connection(stream: TcpStream, tls: Option<TlsAcceptor>, slot: ConnectionSlot) {
    let Some(acceptor) = tls else {
        return serve_requests(stream, &slot).await;
    };
    let handshake = timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream));
    let stopped = async {
        slot.server.stop.cancelled().await;
        sleep(NEW_CONNECTION_GRACE_PERIOD).await;
    };
    let handshake = tokio::select! {
        handshake = handshake => handshake,
        () = stopped => return,
    };
    match handshake {
        Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(HTTP2) => {
            http2::serve_requests(stream, slot).await;
        }
        Ok(Ok(stream)) => serve_requests(stream, &slot).await,
        Ok(Err(error)) => debug!(%error, "TLS handshake failed"),
        Err(_) => {}
    }
}

/// Serves requests until the connection is closed, too old, or the server stops.
async fn serve_requests(stream: impl AsyncRead + AsyncWrite + Unpin, slot: &ConnectionSlot) {
    let service = service_fn(async |request: Request<Incoming>| {
        Ok::<_, Infallible>(slot.handle(request).await)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(slot.server.timeouts.next_request)
        .max_buf_size(HEADER_MAX_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        // A request that has arrived is read before the connection is closed.
        biased;
        ended = connection.as_mut() => Some(ended),
        () = slot.first_request_timeout() => return,
        () = slot.closing() => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().graceful_shutdown();
            match timeout(SHUTDOWN_GRACE_PERIOD, connection).await {
                Ok(ended) => ended,
                Err(_) => return,
            }
        }
    };
    if let Err(error) = ended {
        debug!(%error, "connection failed");
    }
}

/// Returns a response in plain text, with the headers of Go's `http.Error`.
pub(crate) fn text(status: StatusCode, body: impl Into<Bytes>) -> HttpResponse {
    typed(status, "text/plain; charset=utf-8", body)
}

/// Returns a response with a content type.
pub(crate) fn typed(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> HttpResponse {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    response
}

/// Returns the response of Go's `http.NotFound`.
pub(crate) fn not_found() -> HttpResponse {
    text(StatusCode::NOT_FOUND, "404 page not found\n")
}

#[cfg(test)]
mod tests;
