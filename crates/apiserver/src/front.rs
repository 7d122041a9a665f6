//! The HTTPS front of the server: a listening socket, certificates of the server's certificate
//! authority, and kubeconfigs for clients.

mod certificates;
mod connections;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;
use tokio_util::task::TaskTracker;

use crate::authentication::Identity;
use crate::authority::Authority;
use crate::error::StartError;
use crate::service::{Service, ServiceState};
use certificates::Certificates;
pub use certificates::ServingCertificate;
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
    authority: Arc<Authority>,
    certificates: Arc<Certificates>,
    /// The bearer token of the administrator.
    admin_token: Arc<str>,
}

impl Endpoint {
    /// Returns the address on which the server listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the certificate of the authority that signed the server's certificate, as PEM.
    #[must_use]
    pub fn certificate_authority(&self) -> &str {
        self.authority.pem()
    }

    /// Returns a kubeconfig for the administrator: YAML, with certificates and token inline.
    #[must_use]
    pub fn kubeconfig(&self) -> String {
        let admin = self.certificates.admin();
        let user = json!({
            "client-certificate-data": BASE64_STANDARD.encode(&admin.pem),
            "client-key-data": BASE64_STANDARD.encode(&admin.key_pem),
            "token": &*self.admin_token,
        });
        self.kubeconfig_for("opkit-admin", &user)
    }

    /// Returns a kubeconfig for the user of a bearer token, such as a token of
    /// [`Server::token_for`] or [`Server::service_account_token`].
    ///
    /// [`Server::token_for`]: crate::Server::token_for
    /// [`Server::service_account_token`]: crate::Server::service_account_token
    #[must_use]
    pub fn kubeconfig_with_token(&self, token: &str) -> String {
        self.kubeconfig_for("opkit-user", &json!({"token": token}))
    }

    fn kubeconfig_for(&self, name: &str, user: &Value) -> String {
        // JSON is valid YAML.
        let config = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "opkit", "cluster": {
                "server": format!("https://{}", self.address),
                "certificate-authority-data": BASE64_STANDARD.encode(self.authority.pem()),
            }}],
            "users": [{"name": name, "user": user}],
            "contexts": [{"name": "opkit", "context": {
                "cluster": "opkit", "user": name, "namespace": "default",
            }}],
            "current-context": "opkit",
        });
        serde_saphyr::to_string(&config).unwrap_or_else(|_| config.to_string())
    }
}

/// A bound socket that serves the API.
pub(crate) struct Front {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    endpoint: Endpoint,
    limits: Limits,
}

impl Front {
    pub(crate) async fn bind(
        address: SocketAddr,
        limits: Limits,
        certificate: Option<&ServingCertificate>,
        shared: &ServiceState,
    ) -> Result<Self, StartError> {
        let listener = TcpListener::bind(address)
            .await
            .map_err(|cause| match cause.kind() {
                io::ErrorKind::AddrInUse => StartError::AddressInUse { address },
                _ => StartError::Listen { address, cause },
            })?;
        let address = listener
            .local_addr()
            .map_err(|cause| StartError::Listen { address, cause })?;
        let registry = &shared.registry;
        let certificates = Certificates::create(&registry.authority, address.ip(), certificate)?;
        let config = certificates.server_config(registry.authentication.certificates())?;
        let admin_token = registry.authentication.issue_token(Identity::admin())?;
        Ok(Self {
            listener,
            acceptor: TlsAcceptor::from(Arc::new(config)),
            endpoint: Endpoint {
                address,
                authority: registry.authority.clone(),
                certificates: Arc::new(certificates),
                admin_token: admin_token.into(),
            },
            limits,
        })
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        self.endpoint.clone()
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
        // Otherwise the last packet of a long response waits until the client has acknowledged the
        // packets before it, which takes up to 40 ms.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot set TCP_NODELAY");
        }
        let source = stream.peer_addr().ok().map(|address| address.ip());
        let stream = tokio::select! {
            stream = self.acceptor.accept(stream) => stream,
            () = stop.cancelled() => return,
        };
        let Ok(stream) = stream else { return };
        let certificates = stream.get_ref().1.peer_certificates();
        let authentication = &self.shared.registry.authentication;
        let peer = authentication.peer(certificates, self.admitted);
        let service = TowerToHyperService::new(Service {
            shared: self.shared,
            peer,
            source,
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
