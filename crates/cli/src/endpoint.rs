//! HTTP client of an operator's debug endpoint.

use std::time::Duration;

use anyhow::{Context, Result};
use http_body_util::{BodyExt, Empty};
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Time limit of a request. The endpoint is on this machine, so its responses normally take far
/// less time.
const TIMEOUT: Duration = Duration::from_millis(500);

/// Response of the endpoint.
#[derive(Debug)]
pub(crate) struct EndpointResponse {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}

/// Sends a GET request for `path` to the endpoint at `address`.
pub(crate) async fn get(address: &str, path: &str) -> Result<EndpointResponse> {
    tokio::time::timeout(TIMEOUT, send(address, path))
        .await
        .with_context(|| format!("the debug endpoint {address} does not respond"))?
}

async fn send(address: &str, path: &str) -> Result<EndpointResponse> {
    let stream = TcpStream::connect(address)
        .await
        .with_context(|| format!("no operator serves debug information at {address}"))?;
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
