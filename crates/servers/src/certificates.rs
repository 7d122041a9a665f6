//! The certificate of a TLS server. It is either read from files, which are read again when they
//! change, or self-signed.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use rustls::ServerConfig;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;
use tracing::{info, warn};

use crate::ServerError;

/// Time between two reads of the files; controller-runtime's value.
const POLL_INTERVAL: Duration = Duration::from_secs(10);

/// Certificate of a server, which changes when its files change.
///
/// # Examples
/// ```
/// use std::path::Path;
/// use std::sync::Arc;
/// use opkit_servers::{ServerCertificate, ServerError};
///
/// fn read() -> Result<Arc<ServerCertificate>, ServerError> {
///     Ok(Arc::new(ServerCertificate::read(Path::new("/certs"))?))
/// }
/// assert!(read().is_err());
/// ```
#[derive(Debug)]
pub struct ServerCertificate {
    current: RwLock<Arc<CertifiedKey>>,
    /// Files of the certificate; `None` for a self-signed certificate.
    files: Option<Files>,
    /// Number of reads of the files.
    reads: Counter,
    /// Number of reads that failed.
    errors: Counter,
}

/// Files of a certificate and its private key.
#[derive(Debug)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
    /// Contents of the two files at the last successful read.
    contents: Mutex<(Vec<u8>, Vec<u8>)>,
}

impl ServerCertificate {
    /// Reads the files `tls.crt` and `tls.key` in `directory`. A mounted Secret of the type
    /// `kubernetes.io/tls` has files with these names.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read, or the certificate cannot be used.
    pub fn read(directory: &Path) -> Result<Self, ServerError> {
        let files = Files {
            certificate: directory.join("tls.crt"),
            key: directory.join("tls.key"),
            contents: Mutex::default(),
        };
        let contents = files.read()?;
        let current = RwLock::new(Arc::new(files.parse(&contents)?));
        *files.contents.lock() = contents;
        let reads = Counter::default();
        reads.inc();
        Ok(Self {
            current,
            files: Some(files),
            reads,
            errors: Counter::default(),
        })
    }

    /// Creates a self-signed certificate: the connection is encrypted, but the client cannot verify
    /// the identity of the server. Error messages contain the server's name, `server`.
    pub(crate) fn self_signed(server: &'static str) -> Result<Self, ServerError> {
        let failed = |cause| ServerError::SelfSigned { server, cause };
        let generated = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
        let generated = generated.map_err(|cause| failed(cause.into()))?;
        let key = PrivateKeyDer::try_from(generated.signing_key.serialize_der());
        let key = key.map_err(|cause| failed(cause.into()))?;
        let certified =
            CertifiedKey::from_der(vec![generated.cert.der().clone()], key, &provider());
        let certified = certified.map_err(|cause| failed(cause.into()))?;
        Ok(Self {
            current: RwLock::new(Arc::new(certified)),
            files: None,
            reads: Counter::default(),
            errors: Counter::default(),
        })
    }

    /// Registers the counters of reads and of failed reads, unless the certificate is self-signed.
    /// The names are controller-runtime's.
    pub fn register(&self, registry: &mut Registry) {
        if self.files.is_none() {
            return;
        }
        let counters = [
            (
                "certwatcher_read_certificate",
                "Total number of certificate reads",
                &self.reads,
            ),
            (
                "certwatcher_read_certificate_errors",
                "Total number of certificate read errors",
                &self.errors,
            ),
        ];
        for (name, help, counter) in counters {
            registry.register(name, help, counter.clone());
        }
    }

    /// Returns a TLS acceptor that always uses the current certificate.
    pub(crate) fn acceptor(
        self: &Arc<Self>,
        enable_http2: bool,
    ) -> Result<TlsAcceptor, rustls::Error> {
        acceptor(self.clone(), enable_http2)
    }

    /// Reads the files every 10 s and never returns. If a read fails, an error is logged and the
    /// current certificate is kept.
    ///
    /// # Cancel safety
    /// Dropping the future ends the reads; the method can be called again.
    pub async fn watch(self: Arc<Self>) {
        if self.files.is_none() {
            std::future::pending().await
        }
        loop {
            sleep(POLL_INTERVAL).await;
            let certificate = self.clone();
            // The files are small, but the disk may be slow.
            let _ = tokio::task::spawn_blocking(move || certificate.reload()).await;
        }
    }

    /// Reads the files once, and replaces the certificate if the files have changed.
    fn reload(&self) {
        let Some(files) = &self.files else { return };
        self.reads.inc();
        let change = files.read().and_then(|contents| {
            if *files.contents.lock() == contents {
                return Ok(None);
            }
            let certified = files.parse(&contents)?;
            *files.contents.lock() = contents;
            Ok(Some(certified))
        });
        match change {
            Ok(None) => {}
            Ok(Some(certified)) => {
                *self.current.write() = Arc::new(certified);
                info!(file = %files.certificate.display(), "the certificate has changed");
            }
            Err(error) => {
                self.errors.inc();
                let error = opkit_client::one_line(&error);
                warn!(
                    error,
                    "cannot reload the certificate; the current one stays in use"
                );
            }
        }
    }
}

impl ResolvesServerCert for ServerCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.read().clone())
    }
}

impl Files {
    /// Returns the contents of both files.
    fn read(&self) -> Result<(Vec<u8>, Vec<u8>), ServerError> {
        let read = |path: &Path| {
            std::fs::read(path).map_err(|cause| ServerError::Read {
                path: path.to_owned(),
                cause,
            })
        };
        Ok((read(&self.certificate)?, read(&self.key)?))
    }

    /// Parses the contents of both files.
    fn parse(&self, (chain, key): &(Vec<u8>, Vec<u8>)) -> Result<CertifiedKey, ServerError> {
        let pem = |item, path: &Path, cause| ServerError::Pem {
            item,
            path: path.to_owned(),
            cause,
        };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain).collect();
        let chain = chain.map_err(|cause| pem("certificate", &self.certificate, cause))?;
        let key = PrivateKeyDer::from_pem_slice(key);
        let key = key.map_err(|cause| pem("private key", &self.key, cause))?;
        if chain.is_empty() {
            let cause = rustls::pki_types::pem::Error::NoItemsFound;
            return Err(pem("certificate", &self.certificate, cause));
        }
        CertifiedKey::from_der(chain, key, &provider()).map_err(|cause| {
            ServerError::InvalidCertificate {
                path: self.certificate.clone(),
                cause,
            }
        })
    }
}

/// Name of HTTP/2 in the TLS handshake.
pub(crate) const HTTP2: &[u8] = b"h2";

/// Returns a TLS acceptor for HTTP/1.1, and for HTTP/2 if it is enabled, with the certificates of
/// `resolver`.
pub(crate) fn acceptor(
    resolver: Arc<dyn ResolvesServerCert>,
    enable_http2: bool,
) -> Result<TlsAcceptor, rustls::Error> {
    let config = ServerConfig::builder_with_provider(Arc::new(provider()));
    let mut config = config
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_cert_resolver(resolver);
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    if enable_http2 {
        config.alpn_protocols.insert(0, HTTP2.to_vec());
    }
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Returns the TLS implementation. The default of the process is not used, because a program may
/// not have set a default.
fn provider() -> CryptoProvider {
    rustls::crypto::ring::default_provider()
}

#[cfg(test)]
mod tests;
