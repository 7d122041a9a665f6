//! Debug server: serves the latest reconciles to `opkit dev` and to people. The server listens on
//! loopback only, because it has no access control.

mod explain;
mod message;
mod webhooks;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use http::request::Parts;
use http::uri::Authority;
use http::{HeaderValue, Method, Response, StatusCode, header};
use opkit_client::{RestClient, RestMapper};
use opkit_controller::{
    HttpServer, Kind, MetricsRegistry, ReconcileLog, ReconcileRecord, ShardOwners,
};
use opkit_debug::{Activity, EXPLAIN_PATH, RECONCILES_PATH, Refusal};
use serde::Serialize;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::OperatorError;

/// Number of requests of a queue that are served.
const QUEUED_MAX: usize = 100;

/// Address of the debug server, and path of the file that the address is written to.
#[derive(Debug, Clone)]
pub(crate) struct DebugOptions {
    pub(crate) address: SocketAddr,
    pub(crate) address_file: Option<PathBuf>,
}

/// Data that the debug server serves.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) operator: String,
    pub(crate) controllers: Vec<(String, Kind)>,
    pub(crate) log: ReconcileLog,
    pub(crate) metrics: MetricsRegistry,
    /// Mapper from resource names and short names to kinds.
    pub(crate) names: RestMapper,
    /// Client that reads the UIDs of objects.
    pub(crate) client: RestClient,
    /// Owners of objects, if the operator is sharded.
    pub(crate) owners: ShardOwners,
    /// Whether the workers have started.
    pub(crate) ready: watch::Receiver<bool>,
}

#[derive(Debug)]
pub(crate) struct DebugServer {
    server: HttpServer,
    subject: Subject,
}

impl DebugServer {
    /// Binds the listener and writes its address to the address file, if one is set.
    pub(crate) async fn listen(
        options: &DebugOptions,
        subject: Subject,
    ) -> Result<Self, OperatorError> {
        let address = options.address;
        if !address.ip().is_loopback() {
            return Err(OperatorError::DebugNotLoopback { address });
        }
        let server = HttpServer::listen("debug information", address).await?;
        let local = server.address();
        if let Some(path) = &options.address_file {
            // The file is renamed into place, so that a reader sees the whole address or none.
            let mut next = path.clone().into_os_string();
            next.push(".new");
            let next = PathBuf::from(next);
            let written = std::fs::write(&next, local.to_string())
                .and_then(|()| std::fs::rename(&next, path));
            written.map_err(|cause| OperatorError::DebugAddressFile {
                path: path.clone(),
                cause,
            })?;
        }
        info!(address = %local, "serving debug information");
        Ok(Self { server, subject })
    }

    /// Serves requests until `stop` is cancelled.
    pub(crate) async fn serve(self: Arc<Self>, stop: CancellationToken) {
        let subject = self.subject.clone();
        let handler = move |request: Parts| {
            let subject = subject.clone();
            async move { respond(&subject, &request).await }
        };
        self.server.serve(handler, stop).await;
    }
}

async fn respond(subject: &Subject, request: &Parts) -> Response<String> {
    let (status, body) = match (&request.method, request.uri.path()) {
        _ if !is_for_loopback(request) => {
            let error =
                "the request must be for localhost or a loopback address: see its Host header";
            (StatusCode::FORBIDDEN, refusal(error))
        }
        (&Method::GET, RECONCILES_PATH) => (StatusCode::OK, reconciles(subject)),
        (&Method::GET, EXPLAIN_PATH) => explain::explain(subject, request.uri.query()).await,
        (_, RECONCILES_PATH | EXPLAIN_PATH) => (StatusCode::METHOD_NOT_ALLOWED, String::new()),
        _ => (StatusCode::NOT_FOUND, String::new()),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// Reports whether the `Host` header of a request names this machine. A page in a browser can make
/// its own domain name resolve to 127.0.0.1 and read from servers on this machine, but the page
/// cannot choose the `Host` header that the browser sends.
fn is_for_loopback(request: &Parts) -> bool {
    let mut hosts = request.headers.get_all(header::HOST).into_iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        return false;
    };
    let host = host.to_str().ok().and_then(|host| host.parse().ok());
    let is_loopback = |authority: &Authority| {
        let host = authority.host();
        let address = host.trim_start_matches('[').trim_end_matches(']').parse();
        host.eq_ignore_ascii_case("localhost")
            || address.is_ok_and(|address: IpAddr| address.is_loopback())
    };
    host.as_ref().is_some_and(is_loopback) && request.uri.authority().is_none_or(is_loopback)
}

fn reconciles(subject: &Subject) -> String {
    let controllers = subject.controllers.iter().map(|(name, _)| name.clone());
    let queued = subject.log.queued(QUEUED_MAX);
    let messages = |records: Vec<Arc<ReconcileRecord>>| {
        records.iter().map(|it| message::reconcile(it)).collect()
    };
    json(&Activity {
        operator: subject.operator.clone(),
        controllers: controllers.collect(),
        running: *subject.ready.borrow(),
        total: subject.log.total(),
        reconciles: messages(subject.log.records()),
        last_of_each: messages(subject.log.last_of_each()),
        queue: queued.iter().map(message::queued).collect(),
        webhooks: webhooks::calls(&subject.metrics.encode()),
    })
}

/// Returns a message as JSON.
fn json(message: &impl Serialize) -> String {
    serde_json::to_string(message).unwrap_or_default()
}

/// Returns the error of a request as JSON.
fn refusal(error: impl Into<String>) -> String {
    json(&Refusal {
        error: error.into(),
        ..Default::default()
    })
}

#[cfg(test)]
mod tests;
