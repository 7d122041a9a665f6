//! Asking the debug endpoint of an operator.

use std::time::Duration;

use anyhow::{Context, Result};
use http_body_util::{BodyExt, Empty};
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// The endpoint is on this machine: what takes longer is not worth waiting for.
const TIMEOUT: Duration = Duration::from_millis(500);

/// What the endpoint answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}

/// Gets `path` of the endpoint at `address`.
pub(crate) async fn get(address: &str, path: &str) -> Result<Answer> {
    tokio::time::timeout(TIMEOUT, ask(address, path))
        .await
        .with_context(|| format!("the debug endpoint {address} is silent"))?
}

async fn ask(address: &str, path: &str) -> Result<Answer> {
    let stream = TcpStream::connect(address)
        .await
        .with_context(|| format!("no operator serves debug information at {address}"))?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let request = hyper::Request::get(path)
        .header("host", address)
        .body(Empty::<Bytes>::new())?;
    let answer = async {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        Ok(Answer { status, body })
    };
    // The connection moves only while it is polled; it lasts as long as the answer takes.
    let mut connection = std::pin::pin!(connection);
    let mut answer = std::pin::pin!(answer);
    tokio::select! {
        result = answer.as_mut() => result,
        ended = connection.as_mut() => {
            ended?;
            answer.await
        }
    }
}
