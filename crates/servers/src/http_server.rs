//! A small HTTP server with the limits of the health and metrics servers.

use std::net::SocketAddr;

use http::Response;
use http::request::Parts;
use http_body_util::Full;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{ServerError, listen};

/// Server for short responses over HTTP/1.1 without TLS. The timeouts and limits are those of the
/// health server: if there are too many connections, idle connections are closed, so that idle
/// connections of one peer do not keep out other peers.
///
/// # Examples
/// ```
/// use http::{Response, request::Parts};
/// use opkit_servers::{HttpServer, ServerError};
/// use tokio_util::sync::CancellationToken;
///
/// async fn greet(stop: CancellationToken) -> Result<(), ServerError> {
///     let server = HttpServer::listen("greetings", ([127, 0, 0, 1], 0).into()).await?;
///     println!("listening on http://{}", server.address());
///     let handler = |request: Parts| async move { Response::new(format!("hello {}", request.uri)) };
///     server.serve(handler, stop).await;
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
}

impl HttpServer {
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
        Ok(Self { listener, address })
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is cancelled. Requests in progress then have 5 s to complete. Bodies of
    /// requests are not read.
    ///
    /// # Cancel safety
    /// Dropping the future closes all connections immediately.
    pub async fn serve<F, Fut>(&self, handler: F, stop: CancellationToken)
    where
        F: Fn(Parts) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Response<String>> + Send + 'static,
    {
        let handler = listen::without_body(move |request| {
            let response = handler(request);
            async move { response.await.map(|body| Full::new(body.into())) }
        });
        listen::serve(&self.listener, None, handler, stop).await;
    }
}
