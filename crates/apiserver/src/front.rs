//! The HTTPS front of the server: a listening socket, certificates of its own certificate
//! authority, and a kubeconfig for clients.

mod certificates;
mod connections;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;
use tokio_util::task::TaskTracker;

use crate::auth::{Authenticator, Identity};
use crate::error::StartError;
use crate::service::{Service, ServiceState};
use certificates::Certificates;
use connections::{Connections, Place};

/// Maximum time that an HTTP/1 connection may be idle or may take to send the head of a request, as
/// in Kubernetes.
const HEADER_TIMEOUT: Duration = Duration::from_secs(90);

/// Limits for connections whose peers have not been authenticated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Maximum number of open connections. A client needs one connection with HTTP/2, and a few
    /// with HTTP/1. The default stays well below 1,024, which is often the limit for open files and
    /// sockets of a process.
    pub(crate) connections: usize,
    /// Maximum time from the start of a connection to its first request with valid credentials,
    /// including the TLS handshake. A TLS handshake with a client certificate counts as a request
    /// with valid credentials.
    pub(crate) authentication: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            authentication: Duration::from_secs(10),
        }
    }
}

/// The address of a listening server, and credentials for its clients.
#[derive(Clone, Debug)]
pub struct Endpoint {
    address: SocketAddr,
    certificates: Arc<Certificates>,
}

impl Endpoint {
    /// Returns the address on which the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns a kubeconfig for the administrator: YAML, with certificates and token inline.
    #[must_use]
    pub fn kubeconfig(&self) -> String {
        let certificates = &self.certificates;
        // JSON is valid YAML.
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "opkit", "cluster": {
                "server": format!("https://{}", self.address),
                "certificate-authority-data": certificates.authority_base64(),
            }}],
            "users": [{"name": "opkit-admin", "user": {
                "client-certificate-data": certificates.admin_certificate_base64(),
                "client-key-data": certificates.admin_key_base64(),
                "token": certificates.token(),
            }}],
            "contexts": [{"name": "opkit", "context": {
                "cluster": "opkit", "user": "opkit-admin", "namespace": "default",
            }}],
            "current-context": "opkit",
        });
        serde_saphyr::to_string(&config).unwrap_or_else(|_| config.to_string())
    }
}

/// A bound socket that serves the API.
pub(crate) struct Front {
    listener: TcpListener,
    address: SocketAddr,
    acceptor: TlsAcceptor,
    certificates: Arc<Certificates>,
    limits: Limits,
}

impl Front {
    pub(crate) async fn bind(address: SocketAddr, limits: Limits) -> Result<Self, StartError> {
        let listener = TcpListener::bind(address)
            .await
            .map_err(|cause| match cause.kind() {
                io::ErrorKind::AddrInUse => StartError::AddressInUse { address },
                _ => StartError::Listen { address, cause },
            })?;
        let address = listener
            .local_addr()
            .map_err(|cause| StartError::Listen { address, cause })?;
        let certificates = Arc::new(Certificates::create(address.ip())?);
        let acceptor = TlsAcceptor::from(Arc::new(certificates.server_config()?));
        Ok(Self {
            listener,
            address,
            acceptor,
            certificates,
            limits,
        })
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint {
            address: self.address,
            certificates: self.certificates.clone(),
        }
    }

    /// Accepts connections until the server stops. Each connection is a task in `tasks`.
    pub(crate) async fn run(self, shared: Arc<ServiceState>, tasks: TaskTracker) {
        let stop = shared.stop.clone();
        let connections = Connections::new(self.limits.connections);
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = stop.cancelled() => return,
            };
            match accepted {
                Ok((stream, _)) => {
                    let Some(place) = connections.enter() else {
                        let connections = self.limits.connections;
                        tracing::warn!(connections, "a connection is refused: all are in use");
                        continue;
                    };
                    let connection = Connection {
                        acceptor: self.acceptor.clone(),
                        shared: shared.clone(),
                        token: self.certificates.token().into(),
                        admitted: Arc::default(),
                    };
                    let limit = self.limits.authentication;
                    tasks.spawn(connection.run(stream, place, limit));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

/// One connection.
struct Connection {
    acceptor: TlsAcceptor,
    shared: Arc<ServiceState>,
    token: Arc<str>,
    /// Notified when the peer has been authenticated.
    admitted: Arc<Notify>,
}

impl Connection {
    /// Serves the connection until it ends. Closes the connection if the peer is not authenticated
    /// within `limit`, or if a newer connection takes the place of this one.
    async fn run(self, stream: TcpStream, place: Place, limit: Duration) {
        let admitted = self.admitted.clone();
        let mut served = std::pin::pin!(self.serve(stream));
        tokio::select! {
            () = served.as_mut() => return,
            () = admitted.notified() => place.keep(),
            () = place.evicted() => return,
            () = tokio::time::sleep(limit) => return,
        }
        served.await;
    }

    async fn serve(self, stream: TcpStream) {
        let stop = self.shared.stop.clone();
        let stream = tokio::select! {
            stream = self.acceptor.accept(stream) => stream,
            () = stop.cancelled() => return,
        };
        let Ok(stream) = stream else { return };
        // Only the administrator has a certificate of this server's authority.
        let has_certificate = stream
            .get_ref()
            .1
            .peer_certificates()
            .is_some_and(|c| !c.is_empty());
        let authenticator = if has_certificate {
            self.admitted.notify_one();
            Authenticator::Known(Arc::new(Identity::admin()))
        } else {
            Authenticator::Token {
                token: self.token,
                admitted: self.admitted,
            }
        };
        let service = TowerToHyperService::new(Service {
            shared: self.shared,
            authenticator,
        });
        let mut server = auto::Builder::new(TokioExecutor::new());
        server
            .http1()
            .timer(TokioTimer::new())
            .header_read_timeout(HEADER_TIMEOUT);
        let connection = server.serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(error, "a connection ended");
        }
    }
}

#[cfg(test)]
mod tests;
