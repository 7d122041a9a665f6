//! The HTTPS server for requests with bodies.

mod body;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use http::request::Parts;
use http::{HeaderMap, Response, header};
use http_body_util::Full;
use rustls::server::ResolvesServerCert;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use self::body::BodyError;
use self::body::BodyMemory;
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
        let shared = Arc::new((BodyMemory::default(), max_bytes, handler));
        let handler: listen::RequestHandler = Arc::new(move |request| {
            let shared = shared.clone();
            async move {
                let (memory, max_bytes, handler) = &*shared;
                let (parts, body) = request.into_parts();
                let (limit, declared) = (max_bytes(&parts), declared_length(&parts.headers));
                // Held until the response is complete.
                let mut reserved = memory.reserve();
                let body = reserved.read(body, declared, limit).await;
                handler(parts, body).await.map(Full::new)
            }
            .boxed()
        });
        let (limits, timeouts) = (CONNECTION_LIMITS, REQUEST_TIMEOUTS);
        listen::serve_within(limits, timeouts, &self.listener, Some(tls), handler, stop).await;
        Ok(())
    }
}

/// Returns the length of the body that the client has stated.
fn declared_length(headers: &HeaderMap) -> Option<usize> {
    let length = headers.get(header::CONTENT_LENGTH)?;
    length.to_str().ok()?.parse().ok()
}

#[cfg(test)]
mod tests;
