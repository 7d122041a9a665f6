//! The HTTPS server of the webhooks, and the source of its certificate.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use http::{HeaderValue, Version, header};
use opkit_servers::{HttpsServer, ServerCertificate, ServerError};
use prometheus_client::registry::Registry;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::sync::watch;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::router::WebhookRouter;

/// Time between the start of a shutdown and the moment at which the server accepts no more
/// connections. The API server sends requests to a replica until all nodes have removed it from
/// their endpoints.
const SHUTDOWN_DELAY: Duration = Duration::from_secs(5);

/// Serving certificate of a webhook server, which may change while the server runs. Until there is
/// a certificate, TLS handshakes fail, and the server is not healthy. Cloning is cheap.
///
/// # Examples
/// ```
/// # use opkit_webhook as opkit;
/// use opkit::CertificateSource;
/// let (sender, certificates) = CertificateSource::channel();
/// assert!(!certificates.is_available());
/// // Once there is a certificate: `sender.send_replace(Some(key))`, again after each renewal.
/// # drop(sender);
/// ```
#[derive(Clone)]
pub struct CertificateSource(Source);

#[derive(Clone)]
enum Source {
    Channel(watch::Receiver<Option<Arc<CertifiedKey>>>),
    Files(Arc<ServerCertificate>),
}

impl fmt::Debug for CertificateSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificateSource")
            .field("is_available", &self.is_available())
            .finish_non_exhaustive()
    }
}

/// Certificate or private key that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the serving certificate: {problem}")]
#[non_exhaustive]
pub struct CertificateError {
    /// Problem of the certificate or the key.
    pub problem: String,
}

impl CertificateSource {
    /// Creates a source without a certificate, and the sender of its certificates. New connections
    /// use the last certificate that was sent.
    pub fn channel() -> (watch::Sender<Option<Arc<CertifiedKey>>>, Self) {
        let (sender, receiver) = watch::channel(None);
        (sender, Self(Source::Channel(receiver)))
    }

    /// Creates a source of the files `tls.crt` and `tls.key` in a directory, which are read again
    /// when they change.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read, or the certificate cannot be used.
    pub fn files(directory: &Path) -> Result<Self, ServerError> {
        let files = ServerCertificate::read(directory)?;
        Ok(Self(Source::Files(Arc::new(files))))
    }

    /// Creates a source of one certificate, which never changes.
    pub fn fixed(key: CertifiedKey) -> Self {
        let (sender, source) = Self::channel();
        sender.send_replace(Some(Arc::new(key)));
        source
    }

    /// Returns the certificate chain and the private key of two PEM texts.
    ///
    /// # Errors
    /// Returns an error if one of them is missing or malformed, or the key does not belong to the
    /// certificate.
    pub fn key_from_pem(chain: &[u8], key: &[u8]) -> Result<CertifiedKey, CertificateError> {
        let flaw = |problem: String| CertificateError { problem };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
        let chain = chain.map_err(|error| flaw(format!("the certificate: {error}")))?;
        if chain.is_empty() {
            return Err(flaw("there is no certificate".to_owned()));
        }
        let key = PrivateKeyDer::from_pem_slice(key);
        let key = key.map_err(|error| flaw(format!("the private key: {error}")))?;
        let provider = rustls::crypto::ring::default_provider();
        CertifiedKey::from_der(chain, key, &provider).map_err(|error| flaw(error.to_string()))
    }

    /// Reports whether there is a certificate.
    pub fn is_available(&self) -> bool {
        match &self.0 {
            Source::Channel(current) => current.borrow().is_some(),
            Source::Files(_) => true,
        }
    }

    /// Registers the metrics of the source.
    pub fn register(&self, registry: &mut Registry) {
        if let Source::Files(files) = &self.0 {
            files.register(registry);
        }
    }

    fn resolver(&self) -> Arc<dyn ResolvesServerCert> {
        match &self.0 {
            Source::Channel(current) => Arc::new(Current(current.clone())),
            Source::Files(files) => files.clone(),
        }
    }

    /// Keeps the certificate up to date, and never returns.
    async fn watch(&self) {
        match &self.0 {
            Source::Channel(_) => std::future::pending().await,
            Source::Files(files) => files.clone().watch().await,
        }
    }
}

/// The certificate that was sent last.
#[derive(Debug)]
struct Current(watch::Receiver<Option<Arc<CertifiedKey>>>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.borrow().clone()
    }
}

/// Address, certificate and shutdown of a [`WebhookServer`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WebhookServerOptions {
    /// Address to listen on.
    pub address: SocketAddr,
    /// Source of the serving certificate.
    pub certificates: CertificateSource,
    /// Time between the start of a shutdown and the moment at which the server accepts no more
    /// connections; 5 s by default. During this time the server is not healthy, and closes each
    /// connection after a response.
    pub shutdown_delay: Duration,
    /// Whether clients may use HTTP/2; `false` by default, as in kubebuilder's projects.
    pub enable_http2: bool,
}

impl WebhookServerOptions {
    /// Creates options with the default delay.
    pub fn new(address: SocketAddr, certificates: CertificateSource) -> Self {
        Self {
            address,
            certificates,
            shutdown_delay: SHUTDOWN_DELAY,
            enable_http2: false,
        }
    }
}

/// State of a server, for its health check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Starting,
    Serving,
    Stopping,
}

/// HTTPS server of webhooks: HTTP/1.1 over TLS 1.2 or 1.3, and HTTP/2 if the options enable it.
#[derive(Debug)]
pub struct WebhookServer {
    server: HttpsServer,
    certificates: CertificateSource,
    shutdown_delay: Duration,
    phase: watch::Sender<Phase>,
}

/// Health check of a [`WebhookServer`]. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct WebhookHealth {
    phase: watch::Receiver<Phase>,
    certificates: CertificateSource,
}

impl WebhookHealth {
    /// Name of the check in `/readyz`.
    pub const NAME: &'static str = "webhook";

    /// Checks that the server serves, has a certificate and does not shut down.
    ///
    /// # Errors
    /// The reason why the replica should get no requests.
    pub fn check(&self) -> Result<(), WebhookUnhealthy> {
        match *self.phase.borrow() {
            Phase::Starting => Err(WebhookUnhealthy::Starting),
            Phase::Stopping => Err(WebhookUnhealthy::Stopping),
            Phase::Serving if !self.certificates.is_available() => {
                Err(WebhookUnhealthy::NoCertificate)
            }
            Phase::Serving => Ok(()),
        }
    }
}

/// Reason why a webhook server should get no requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WebhookUnhealthy {
    /// The server accepts no connections yet.
    #[error("the webhook server has not been started yet")]
    Starting,
    /// There is no certificate yet.
    #[error("the webhook server has no certificate yet")]
    NoCertificate,
    /// The server shuts down.
    #[error("the webhook server shuts down")]
    Stopping,
}

impl WebhookServer {
    /// Binds the address. Connections are accepted once [`serve`](Self::serve) is called.
    ///
    /// # Errors
    /// Returns an error if the address is in use or does not belong to this machine.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn listen(options: WebhookServerOptions) -> Result<Self, ServerError> {
        Ok(Self {
            server: HttpsServer::listen("webhooks", options.address)
                .await?
                .enable_http2(options.enable_http2),
            certificates: options.certificates,
            shutdown_delay: options.shutdown_delay,
            phase: watch::Sender::new(Phase::Starting),
        })
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Returns the health check.
    pub fn health(&self) -> WebhookHealth {
        WebhookHealth {
            phase: self.phase.subscribe(),
            certificates: self.certificates.clone(),
        }
    }

    /// Registers the metrics of the certificate.
    pub fn register(&self, registry: &mut Registry) {
        self.certificates.register(registry);
    }

    /// Serves until `stop` is cancelled and
    /// [`shutdown_delay`](WebhookServerOptions::shutdown_delay) has passed since `shutdown`
    /// completed, or since `stop` if that was earlier. Requests in progress then have 5 s to
    /// complete.
    ///
    /// # Errors
    /// Returns an error if TLS cannot be set up.
    ///
    /// # Cancel safety
    /// Dropping the future closes all connections immediately.
    pub async fn serve(
        &self,
        router: Arc<WebhookRouter>,
        shutdown: impl Future<Output = ()>,
        stop: CancellationToken,
    ) -> Result<(), ServerError> {
        let accepting = CancellationToken::new();
        let limits = router.clone();
        let phase = self.phase.subscribe();
        let respond = move |parts: Parts, body| {
            let (router, phase) = (router.clone(), phase.clone());
            async move {
                let has_header = parts.version <= Version::HTTP_11;
                let mut response = router.respond_to(parts, body).await;
                // The client opens its next connection to a replica that stays.
                if has_header && *phase.borrow() == Phase::Stopping {
                    let close = HeaderValue::from_static("close");
                    response.headers_mut().insert(header::CONNECTION, close);
                }
                response
            }
        };
        let serving = self.server.serve(
            self.certificates.resolver(),
            move |parts| limits.max_bytes(parts.uri.path()),
            respond,
            accepting.clone(),
        );
        let stopping = async {
            tokio::select! {
                () = shutdown => {}
                () = stop.cancelled() => {}
            }
            self.phase.send_replace(Phase::Stopping);
            info!("the webhook server shuts down");
            futures::join!(sleep(self.shutdown_delay), stop.cancelled());
            accepting.cancel();
        };
        self.phase.send_replace(Phase::Serving);
        info!(address = %self.address(), "serving webhooks");
        let mut serving = pin!(serving);
        let served = async {
            tokio::select! {
                served = &mut serving => return served,
                () = stopping => {}
            }
            serving.await
        };
        tokio::select! {
            served = served => served,
            () = self.certificates.watch() => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
