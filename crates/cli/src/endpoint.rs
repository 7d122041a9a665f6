//! HTTP client of servers on this machine: the debug endpoint of an operator, and etcd.

use std::time::Duration;

use anyhow::{Context, Result};
use http_body_util::{BodyExt, Empty};
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Name of the debug endpoint of an operator in error messages.
pub(crate) const DEBUG: &str = "the operator's debug endpoint";

/// Time limit of a request. The server is on this machine, so its responses normally take far less
/// time.
const TIMEOUT: Duration = Duration::from_millis(500);

/// Response of the server.
#[derive(Debug)]
pub(crate) struct EndpointResponse {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}

/// Sends a GET request for `path` to the server at `address`. Error messages contain `server`, the
/// name of the server.
pub(crate) async fn get(server: &str, address: &str, path: &str) -> Result<EndpointResponse> {
    tokio::time::timeout(TIMEOUT, send(address, path))
        .await
        .with_context(|| format!("{server} at {address} does not respond"))?
        .with_context(|| format!("cannot reach {server} at {address}"))
}

async fn send(address: &str, path: &str) -> Result<EndpointResponse> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let request = hyper::Request::get(path)
        .header("host", address)
        .body(Empty::<Bytes>::new())?;
    let exchange = async {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        Ok(EndpointResponse { status, body })
    };
    // The connection makes progress only while it is polled, until the response is complete.
    let mut connection = std::pin::pin!(connection);
    let mut exchange = std::pin::pin!(exchange);
    tokio::select! {
        result = exchange.as_mut() => result,
        ended = connection.as_mut() => {
            ended?;
            exchange.await
        }
    }
}
