//! A small HTTP server with the bounds of the probes' and the metrics' servers.

use std::net::SocketAddr;
use std::sync::Arc;

use futures::FutureExt;
use http::Response;
use http::request::Parts;
use http_body_util::Full;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{ServerError, listen};

/// A server for short responses over HTTP/1.1, in plain text. It has the timeouts and limits of the
/// health server: connections that send nothing give way to those that do, also between peers.
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
    /// Listens on `address`; errors name the server as `what`. Connections wait until it serves.
    ///
    /// # Errors
    /// When the address is in use, or does not belong to this machine.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn listen(what: &'static str, address: SocketAddr) -> Result<Self, ServerError> {
        let (listener, address) = listen::bind(what, address).await?;
        Ok(Self { listener, address })
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop`; requests that are under way then have 5 s to end. Bodies of requests
    /// are not read.
    ///
    /// # Cancel safety
    /// Dropping the future ends all connections at once.
    pub async fn serve<F, Fut>(&self, handler: F, stop: CancellationToken)
    where
        F: Fn(Parts) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Response<String>> + Send + 'static,
    {
        let handler: listen::Handler = Arc::new(move |request| {
            let response = handler(request);
            async move { response.await.map(|body| Full::new(body.into())) }.boxed()
        });
        listen::serve(&self.listener, None, handler, stop).await;
    }
}
