//! The HTTPS front: a socket, certificates of its own, and a kubeconfig for whoever wants in.

mod certificates;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
    service::TowerToHyperService,
};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::TaskTracker;

use crate::{
    auth::{Authenticator, Identity},
    error::StartError,
    service::{Service, Shared},
};
use certificates::Certificates;

/// How long a client may take to say who it is.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a connection may be idle or take over the head of a request, as in Kubernetes.
const HEADER_TIMEOUT: Duration = Duration::from_secs(90);

/// Where a server listens, and how to get in.
#[derive(Clone, Debug)]
pub struct Endpoint {
    address: SocketAddr,
    certificates: Arc<Certificates>,
}

impl Endpoint {
    /// The address that is listened on.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A kubeconfig for the administrator: YAML, with everything inline.
    #[must_use]
    pub fn kubeconfig(&self) -> String {
        let certificates = &self.certificates;
        // JSON is YAML; kubectl and every client read both.
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
}

impl Front {
    pub(crate) async fn bind(address: SocketAddr) -> Result<Self, StartError> {
        let listener = TcpListener::bind(address)
            .await
            .map_err(|cause| match cause.kind() {
                io::ErrorKind::AddrInUse => StartError::AddressInUse { address },
                _ => StartError::Listen { address, cause },
            })?;
        let address = listener
            .local_addr()
            .map_err(|cause| StartError::Listen { address, cause })?;
        let certificates = Arc::new(Certificates::make(address.ip())?);
        let acceptor = TlsAcceptor::from(Arc::new(certificates.server_config()?));
        Ok(Self {
            listener,
            address,
            acceptor,
            certificates,
        })
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint {
            address: self.address,
            certificates: self.certificates.clone(),
        }
    }

    /// Accepts connections until the server stops; each runs in `tasks`.
    pub(crate) async fn run(self, shared: Arc<Shared>, tasks: TaskTracker) {
        let stop = shared.stop.clone();
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = stop.cancelled() => return,
            };
            match accepted {
                Ok((stream, _)) => {
                    let token: Arc<str> = self.certificates.token().into();
                    tasks.spawn(serve(stream, self.acceptor.clone(), shared.clone(), token));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
    }
}

async fn serve(stream: TcpStream, acceptor: TlsAcceptor, shared: Arc<Shared>, token: Arc<str>) {
    let stop = shared.stop.clone();
    let stream = tokio::select! {
        stream = tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)) => stream,
        () = stop.cancelled() => return,
    };
    let Ok(Ok(stream)) = stream else { return };
    // Only the administrator has a certificate of our authority.
    let has_certificate = stream
        .get_ref()
        .1
        .peer_certificates()
        .is_some_and(|c| !c.is_empty());
    let authenticator = if has_certificate {
        Authenticator::Known(Arc::new(Identity::admin()))
    } else {
        Authenticator::Token(token)
    };
    let service = TowerToHyperService::new(Service {
        shared,
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
