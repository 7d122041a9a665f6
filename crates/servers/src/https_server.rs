//! The HTTPS server for requests with bodies.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::FutureExt;
use http::request::Parts;
use http::{HeaderMap, Response, header};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use rustls::server::ResolvesServerCert;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::ServerError;
use crate::certificates::acceptor;
use crate::listen::{self, ConnectionLimits, RequestTimeouts};

/// Maximum numbers of connections. With HTTP/1.1, an API server opens a connection for each request
/// in progress, and all API servers may have the address of one proxy.
const CONNECTION_LIMITS: ConnectionLimits = ConnectionLimits {
    connections: 4096,
    per_peer: 4096,
};
/// Time limits of the requests of a connection. An API server keeps an idle connection for 90 s,
/// used or not. It must be the one that closes the connection: a connection that the server closes
/// may be in use again at the same moment, and the request is lost.
const REQUEST_TIMEOUTS: RequestTimeouts = RequestTimeouts {
    first_request: Duration::from_secs(100),
    next_request: Duration::from_secs(100),
};
/// Time limit for the body of a request. An API server sends it at once.
const BODY_READ_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of all bodies that are in memory at the same time, in units of 1 KiB: enough for
/// thousands of usual requests. Further requests wait until others have ended.
const BODIES_MAX_KIB: usize = 128 * 1024;

/// Reason why the body of a request was not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BodyError {
    /// The body is larger than the server accepts.
    #[error("the body has more than {limit} bytes")]
    TooLarge {
        /// Maximum size in bytes.
        limit: usize,
    },
    /// The client did not send the body in time.
    #[error("the body was not sent within {} s", BODY_READ_TIMEOUT.as_secs())]
    TimedOut,
    /// The connection failed.
    #[error("the body cannot be read: {0}")]
    Connection(String),
}

/// Server for requests with bodies, over TLS and HTTP/1.1, or HTTP/2 if it is enabled. The number
/// of connections, the size of a body and of all bodies together, and the time to send a body are
/// limited.
///
/// # Examples
/// ```
/// use std::sync::Arc;
/// use bytes::Bytes;
/// use http::{Response, request::Parts};
/// use opkit_servers::{BodyError, HttpsServer, ServerCertificate, ServerError};
/// use tokio_util::sync::CancellationToken;
///
/// async fn echo(stop: CancellationToken) -> Result<(), ServerError> {
///     let certificate = Arc::new(ServerCertificate::read("/certs".as_ref())?);
///     let server = HttpsServer::listen("echo", ([127, 0, 0, 1], 0).into()).await?;
///     let respond = |_: Parts, body: Result<Bytes, BodyError>| async {
///         Response::new(body.unwrap_or_default())
///     };
///     server.serve(certificate, |_| 1024, respond, stop).await
/// }
/// ```
#[derive(Debug)]
pub struct HttpsServer {
    listener: TcpListener,
    address: SocketAddr,
    enable_http2: bool,
}

impl HttpsServer {
    /// Binds `address`. Connections are accepted once [`serve`](Self::serve) is called. Error
    /// messages contain `name`, the name of the server.
    ///
    /// # Errors
    /// Returns an error if the address is in use or does not belong to this machine.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn listen(name: &'static str, address: SocketAddr) -> Result<Self, ServerError> {
        let (listener, address) = listen::bind(name, address).await?;
        Ok(Self {
            listener,
            address,
            enable_http2: false,
        })
    }

    /// Sets whether clients may use HTTP/2; off by default.
    #[must_use]
    pub fn enable_http2(mut self, enable: bool) -> Self {
        self.enable_http2 = enable;
        self
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is cancelled. Requests in progress then have 5 s to complete.
    /// `max_bytes` returns the maximum size of the body of a request; with zero, the body is not
    /// read.
    ///
    /// # Errors
    /// Returns an error if TLS cannot be set up.
    ///
    /// # Cancel safety
    /// Dropping the future closes all connections immediately.
    pub async fn serve<L, F, Fut>(
        &self,
        certificates: Arc<dyn ResolvesServerCert>,
        max_bytes: L,
        handler: F,
        stop: CancellationToken,
    ) -> Result<(), ServerError>
    where
        L: Fn(&Parts) -> usize + Send + Sync + 'static,
        F: Fn(Parts, Result<Bytes, BodyError>) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Response<Bytes>> + Send + 'static,
    {
        let tls = acceptor(certificates, self.enable_http2).map_err(ServerError::Tls)?;
        let shared = Arc::new((Semaphore::new(BODIES_MAX_KIB), max_bytes, handler));
        let handler: listen::RequestHandler = Arc::new(move |request| {
            let shared = shared.clone();
            async move {
                let (memory, max_bytes, handler) = &*shared;
                let (parts, body) = request.into_parts();
                let limit = max_bytes(&parts);
                // Held until the response is complete.
                let (body, _reserved) = match reserve(memory, &parts.headers, limit).await {
                    Ok(reserved) => (read(body, limit).await, reserved),
                    Err(error) => (Err(error), None),
                };
                handler(parts, body).await.map(Full::new)
            }
            .boxed()
        });
        let (limits, timeouts) = (CONNECTION_LIMITS, REQUEST_TIMEOUTS);
        listen::serve_within(limits, timeouts, &self.listener, Some(tls), handler, stop).await;
        Ok(())
    }
}

/// Waits until there is memory for the body of a request. A body of unknown size reserves the
/// maximum.
async fn reserve<'a>(
    memory: &'a Semaphore,
    headers: &HeaderMap,
    limit: usize,
) -> Result<Option<SemaphorePermit<'a>>, BodyError> {
    let length = headers.get(header::CONTENT_LENGTH);
    let length = length.and_then(|it| it.to_str().ok()?.parse().ok());
    let length: usize = length.unwrap_or(limit);
    if length > limit && limit > 0 {
        return Err(BodyError::TooLarge { limit });
    }
    let kib = length.min(limit).div_ceil(1024).min(BODIES_MAX_KIB);
    let kib = u32::try_from(kib).unwrap_or(u32::MAX);
    // The semaphore is never closed.
    Ok(memory.acquire_many(kib).await.ok())
}

/// Reads the body of a request of at most `limit` bytes.
async fn read(body: Incoming, limit: usize) -> Result<Bytes, BodyError> {
    if limit == 0 {
        return Ok(Bytes::new());
    }
    match timeout(BODY_READ_TIMEOUT, collect(body, limit)).await {
        Ok(read) => read,
        Err(_) => Err(BodyError::TimedOut),
    }
}

async fn collect(mut body: Incoming, limit: usize) -> Result<Bytes, BodyError> {
    // The length that the client has stated. The system provides the memory when it is used.
    let length = body.size_hint().exact().unwrap_or_default();
    let length = usize::try_from(length).unwrap_or(limit).min(limit);
    let mut first = Bytes::new();
    let mut all = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| BodyError::Connection(error.to_string()))?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        let size = first.len().saturating_add(all.len());
        if size.saturating_add(data.len()) > limit {
            return Err(BodyError::TooLarge { limit });
        }
        // A body in one piece, which is the usual case, is not copied.
        if first.is_empty() && all.is_empty() {
            first = data;
        } else {
            if all.is_empty() {
                all.reserve(length);
                all.extend_from_slice(&std::mem::take(&mut first));
            }
            all.extend_from_slice(&data);
        }
    }
    Ok(match all.is_empty() {
        true => first,
        false => all.freeze(),
    })
}

#[cfg(test)]
mod tests;
