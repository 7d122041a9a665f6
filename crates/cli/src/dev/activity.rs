//! What a running operator does, from its debug endpoint.

use std::time::Duration;

use anyhow::{Context, Result};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use serde::Deserialize;
use tokio::net::TcpStream;

/// The endpoint is on this machine: what takes longer is not worth waiting for.
const TIMEOUT: Duration = Duration::from_millis(500);

/// One run of a reconcile function.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Reconcile {
    pub(crate) kind: String,
    pub(crate) namespace: Option<String>,
    pub(crate) name: String,
    pub(crate) causes: Vec<String>,
    pub(crate) started: Timestamp,
    pub(crate) duration_seconds: f64,
    pub(crate) result: Outcome,
}

/// How it ended.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Outcome {
    /// What went wrong, if anything.
    pub(crate) message: Option<String>,
}

/// What the endpoint answers, as far as it is needed here.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Activity {
    pub(crate) controllers: Vec<String>,
    /// Whether the operator has filled its caches and works.
    pub(crate) running: bool,
    /// The last reconcile of each object.
    pub(crate) last_of_each: Vec<Reconcile>,
}

/// Asks the endpoint at `address`.
pub(crate) async fn fetch(address: &str) -> Result<Activity> {
    tokio::time::timeout(TIMEOUT, ask(address))
        .await
        .context("the debug endpoint is silent")?
}

async fn ask(address: &str) -> Result<Activity> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let request = hyper::Request::get("/debug/reconciles")
        .header("host", address)
        .body(Empty::<Bytes>::new())?;
    let answer = async {
        let response = sender.send_request(request).await?;
        let body = response.into_body().collect().await?.to_bytes();
        Ok(serde_json::from_slice(&body)?)
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
