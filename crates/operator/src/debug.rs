//! The debug server: what was reconciled lately, for `opkit dev` and for people. Loopback only,
//! because it has no access control.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use opkit_controller::{Kind, ReconcileLog, ReconcileRecord};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info};

use crate::OperatorError;

/// How many connections are served at once; further ones wait to be accepted.
const CONNECTIONS: usize = 16;

/// How long after a connection could not be accepted the next one is tried.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Where to serve.
#[derive(Debug, Clone)]
pub(crate) struct DebugOptions {
    pub(crate) address: SocketAddr,
    pub(crate) address_file: Option<PathBuf>,
}

/// What there is to tell.
#[derive(Debug, Clone)]
pub(crate) struct Subject {
    pub(crate) operator: String,
    pub(crate) controllers: Vec<(String, Kind)>,
    pub(crate) log: ReconcileLog,
    /// Whether the workers have started.
    pub(crate) ready: watch::Receiver<bool>,
}

#[derive(Debug)]
pub(crate) struct DebugServer {
    listener: TcpListener,
    subject: Subject,
}

impl DebugServer {
    /// Listens, and writes the address to the file that is asked for.
    pub(crate) async fn listen(
        options: &DebugOptions,
        subject: Subject,
    ) -> Result<Self, OperatorError> {
        let address = options.address;
        if !address.ip().is_loopback() {
            return Err(OperatorError::DebugNotLoopback { address });
        }
        let failed = |cause| OperatorError::DebugListen { address, cause };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let local = listener.local_addr().map_err(failed)?;
        if let Some(path) = &options.address_file {
            // Renamed into place, so that a reader sees the whole address or none.
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
        Ok(DebugServer { listener, subject })
    }

    /// Serves until `stop`.
    pub(crate) async fn serve(self: Arc<Self>, stop: CancellationToken) {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                Some(_) = connections.join_next() => {}
                accepted = self.listener.accept(), if connections.len() < CONNECTIONS => {
                    // A connection that breaks at once is its client's problem; an error that lasts,
                    // such as too many open files, must not become a loop.
                    let Ok((stream, _)) = accepted else {
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                        continue;
                    };
                    let subject = self.subject.clone();
                    connections.spawn(async move {
                        let answer = service_fn(move |request| {
                            let response = answer(&subject, &request);
                            async move { Ok::<_, Infallible>(response) }
                        });
                        let http = hyper::server::conn::http1::Builder::new();
                        if let Err(error) = http.serve_connection(TokioIo::new(stream), answer).await {
                            debug!(%error, "debug connection failed");
                        }
                    });
                }
            }
        }
        connections.shutdown().await;
    }
}

fn answer(subject: &Subject, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let (status, body) = match (request.method(), request.uri().path()) {
        (&Method::GET, "/debug/reconciles") => (StatusCode::OK, reconciles(subject)),
        (&Method::GET, "/debug/explain") => explain(subject, request.uri().query()),
        (_, "/debug/reconciles" | "/debug/explain") => {
            (StatusCode::METHOD_NOT_ALLOWED, String::new())
        }
        _ => (StatusCode::NOT_FOUND, String::new()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    let json = http::HeaderValue::from_static("application/json");
    response
        .headers_mut()
        .insert(http::header::CONTENT_TYPE, json);
    response
}

/// The last reconciles of the objects that `kind`, `name` and, if given, `namespace` name.
fn explain(subject: &Subject, query: Option<&str>) -> (StatusCode, String) {
    let query: HashMap<_, _> =
        form_urlencoded::parse(query.unwrap_or_default().as_bytes()).collect();
    let (Some(kind), Some(name)) = (query.get("kind"), query.get("name")) else {
        let error = json!({"error": "kind and name must be given"});
        return (StatusCode::BAD_REQUEST, error.to_string());
    };
    let is_called = |(controller, of): &&(String, Kind)| {
        let names = [&of.kind, &of.plural, controller];
        names
            .into_iter()
            .any(|known| known.eq_ignore_ascii_case(kind))
    };
    let controllers: Vec<_> = subject.controllers.iter().filter(is_called).collect();
    if controllers.is_empty() {
        let kinds: Vec<_> = subject.controllers.iter().map(|(_, of)| &of.kind).collect();
        let error =
            json!({"error": format!("{} reconciles no {kind}", subject.operator), "kinds": kinds});
        return (StatusCode::NOT_FOUND, error.to_string());
    }
    let is_meant = |record: &&Arc<ReconcileRecord>| {
        let mut known = controllers.iter();
        record.request.name == **name
            && query
                .get("namespace")
                .is_none_or(|asked| record.request.namespace.as_deref() == Some(asked))
            && known.any(|(controller, _)| **controller == *record.controller)
    };
    let last = subject.log.last_of_each();
    let objects: Vec<_> = last
        .iter()
        .filter(is_meant)
        .map(|last| subject.log.of(&last.controller, &last.request))
        .collect();
    let answer = json!({"operator": subject.operator, "objects": objects});
    (StatusCode::OK, answer.to_string())
}

fn reconciles(subject: &Subject) -> String {
    let controllers: Vec<_> = subject.controllers.iter().map(|(name, _)| name).collect();
    json!({
        "operator": subject.operator,
        "controllers": controllers,
        "running": *subject.ready.borrow(),
        "total": subject.log.total(),
        "reconciles": subject.log.records(),
        "lastOfEach": subject.log.last_of_each(),
    })
    .to_string()
}

#[cfg(test)]
mod tests;
