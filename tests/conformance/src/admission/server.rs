//! A webhook server for tests. It can respond as it should not: late, with garbage, or with half of
//! a response.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use parking_lot::Mutex;
use rcgen::{CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::AbortOnDropHandle;

/// The response to one request.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// The response in an AdmissionReview with the UID of the request.
    Review(Value),
    /// This body with this HTTP code.
    Body(u16, Vec<u8>),
    /// Nothing.
    Hang,
    /// The connection is closed without a response.
    Close,
    /// The connection is closed in the middle of the body.
    Half,
}

/// Returns the reply that allows a request.
pub(super) fn allow() -> Reply {
    Reply::Review(json!({"allowed": true}))
}

/// Returns the reply that allows a request and patches its object.
pub(super) fn patch(patch: &Value) -> Reply {
    Reply::Review(json!({
        "allowed": true, "patchType": "JSONPatch",
        "patch": BASE64_STANDARD.encode(patch.to_string()),
    }))
}

type Handler = dyn Fn(&str, &Value) -> Reply + Send + Sync;

/// A webhook server at a port of the loopback interface, which ends when this is dropped.
pub(crate) struct WebhookServer {
    address: SocketAddr,
    /// The certificate authority, as PEM in base64.
    pub(crate) ca_bundle: String,
    requests: Arc<Mutex<Vec<(String, Value)>>>,
    _task: AbortOnDropHandle<()>,
}

impl WebhookServer {
    /// Starts a server. The handler gets the path and the `request` of each AdmissionReview.
    pub(crate) async fn start(
        handler: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let (config, ca_bundle) = certificates();
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (handler, seen): (Arc<Handler>, _) = (Arc::new(handler), requests.clone());
        let accept = async move {
            let acceptor = TlsAcceptor::from(Arc::new(config));
            let mut connections = Vec::new();
            while let Ok((stream, _)) = listener.accept().await {
                let serve = serve(acceptor.clone(), stream, handler.clone(), seen.clone());
                connections.push(AbortOnDropHandle::new(spawn(serve)));
            }
        };
        Self {
            address,
            ca_bundle,
            requests,
            _task: AbortOnDropHandle::new(spawn(accept)),
        }
    }

    /// Returns the URL of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://{}{path}", self.address)
    }

    /// Reports whether there was a request about an object whose name starts with `prefix`.
    pub(super) fn has_seen(&self, prefix: &str) -> bool {
        let requests = self.requests.lock();
        let mut names = requests.iter().map(|(_, request)| request["name"].as_str());
        names.any(|name| name.is_some_and(|name| name.starts_with(prefix)))
    }

    /// Returns the UID of the last request.
    pub(super) fn last_uid(&self) -> String {
        let requests = self.requests.lock();
        let last = requests
            .last()
            .and_then(|(_, request)| request["uid"].as_str());
        last.unwrap_or("none").to_owned()
    }

    /// Returns the requests to a path so far.
    pub(super) fn requests(&self, path: &str) -> Vec<Value> {
        let requests = self.requests.lock();
        let of_path = requests.iter().filter(|(found, _)| found == path);
        of_path.map(|(_, request)| request.clone()).collect()
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the handle of the task is kept, and aborts it"
)]
fn spawn(task: impl Future<Output = ()> + Send + 'static) -> tokio::task::JoinHandle<()> {
    tokio::spawn(task)
}

/// Returns the configuration of a TLS server for 127.0.0.1, and its certificate authority.
fn certificates() -> (ServerConfig, String) {
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let certificate = authority.self_signed(&authority_key).unwrap();
    let issuer = Issuer::new(authority, authority_key);
    let key = KeyPair::generate().unwrap();
    let server = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let server = server.signed_by(&key, &issuer).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![server.der().clone()],
            PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der())),
        )
        .unwrap();
    (config, BASE64_STANDARD.encode(certificate.pem()))
}

/// Serves the requests of one connection.
async fn serve(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    handler: Arc<Handler>,
    seen: Arc<Mutex<Vec<(String, Value)>>>,
) {
    let Ok(mut stream) = acceptor.accept(stream).await else {
        return;
    };
    let mut buffer = Vec::new();
    while let Some((path, review)) = read_request(&mut stream, &mut buffer).await {
        let request = &review["request"];
        seen.lock().push((path.clone(), request.clone()));
        let (code, body) = match handler(&path, request) {
            Reply::Review(mut response) => {
                if response.get("uid").is_none() {
                    response["uid"] = request["uid"].clone();
                }
                let review = json!({
                    "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
                    "response": response,
                });
                (200, review.to_string().into_bytes())
            }
            Reply::Body(code, body) => (code, body),
            Reply::Hang => pending().await,
            Reply::Close => return,
            Reply::Half => {
                let half = b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n{\"kind\":";
                let _ = stream.write_all(half).await;
                let _ = stream.shutdown().await;
                return;
            }
        };
        let head = format!(
            "HTTP/1.1 {code} Code\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        if stream.write_all(head.as_bytes()).await.is_err()
            || stream.write_all(&body).await.is_err()
        {
            return;
        }
    }
}

/// Reads a request. Returns its path without the query, and its body.
async fn read_request(
    stream: &mut (impl AsyncReadExt + Unpin),
    buffer: &mut Vec<u8>,
) -> Option<(String, Value)> {
    loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).to_lowercase();
            let length = head
                .lines()
                .find_map(|line| line.strip_prefix("content-length: "))
                .map_or(0, |length| length.trim().parse().unwrap());
            let total = end + 4 + length;
            if buffer.len() >= total {
                let line = String::from_utf8_lossy(&buffer[..end]).into_owned();
                let path = line.split([' ', '?']).nth(1)?.to_owned();
                let body = serde_json::from_slice(&buffer[end + 4..total]).unwrap();
                buffer.drain(..total);
                return Some((path, body));
            }
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
}
