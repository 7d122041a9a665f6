//! The certificate that a server shows: from files, read again when they change, or one of its own.

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

/// How often files are looked at; controller-runtime's.
const LOOK: Duration = Duration::from_secs(10);

/// A certificate, which may change.
#[derive(Debug)]
pub(crate) struct Certificates {
    current: RwLock<Arc<CertifiedKey>>,
    files: Option<Files>,
    reads: Counter,
    errors: Counter,
}

#[derive(Debug)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
    /// What they held last.
    seen: Mutex<(Vec<u8>, Vec<u8>)>,
}

impl Certificates {
    /// From `tls.crt` and `tls.key`, as a Secret of the type `kubernetes.io/tls` is mounted.
    pub(crate) fn read(directory: &Path) -> Result<Self, ServerError> {
        let files = Files {
            certificate: directory.join("tls.crt"),
            key: directory.join("tls.key"),
            seen: Mutex::default(),
        };
        let seen = files.read()?;
        let current = RwLock::new(Arc::new(files.certified(&seen)?));
        *files.seen.lock() = seen;
        let reads = Counter::default();
        reads.inc();
        Ok(Self {
            current,
            files: Some(files),
            reads,
            errors: Counter::default(),
        })
    }

    /// One that nobody has signed: what is said is encrypted, though the one who listens cannot
    /// know to whom.
    pub(crate) fn self_signed(what: &'static str) -> Result<Self, ServerError> {
        let failed = |cause| ServerError::SelfSigned { what, cause };
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]);
        let made = made.map_err(|cause| failed(cause.into()))?;
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der());
        let key = key.map_err(|cause| failed(cause.into()))?;
        let certified = CertifiedKey::from_der(vec![made.cert.der().clone()], key, &provider());
        let certified = certified.map_err(|cause| failed(cause.into()))?;
        Ok(Self {
            current: RwLock::new(Arc::new(certified)),
            files: None,
            reads: Counter::default(),
            errors: Counter::default(),
        })
    }

    /// Adds controller-runtime's counters, if there are files to read.
    pub(crate) fn register(&self, registry: &mut Registry) {
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

    pub(crate) fn acceptor(self: &Arc<Self>) -> Result<TlsAcceptor, rustls::Error> {
        let config = ServerConfig::builder_with_provider(Arc::new(provider()));
        let mut config = config
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(self.clone());
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }

    /// Looks at the files for ever. What cannot be read is told, and the certificate stays.
    pub(crate) async fn watch(self: Arc<Self>) {
        if self.files.is_none() {
            std::future::pending().await
        }
        loop {
            sleep(LOOK).await;
            let certificates = self.clone();
            // Two small files, but on a disk that may be slow.
            let _ = tokio::task::spawn_blocking(move || certificates.look()).await;
        }
    }

    fn look(&self) {
        let Some(files) = &self.files else { return };
        self.reads.inc();
        let change = files.read().and_then(|now| {
            if *files.seen.lock() == now {
                return Ok(None);
            }
            let certified = files.certified(&now)?;
            *files.seen.lock() = now;
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
                warn!(error, "the certificate stays as it is");
            }
        }
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current.read().clone())
    }
}

impl Files {
    fn read(&self) -> Result<(Vec<u8>, Vec<u8>), ServerError> {
        let read = |path: &Path| {
            std::fs::read(path).map_err(|cause| ServerError::Read {
                path: path.to_owned(),
                cause,
            })
        };
        Ok((read(&self.certificate)?, read(&self.key)?))
    }

    fn certified(&self, (chain, key): &(Vec<u8>, Vec<u8>)) -> Result<CertifiedKey, ServerError> {
        let pem = |what, path: &Path, cause| ServerError::Pem {
            what,
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
        CertifiedKey::from_der(chain, key, &provider()).map_err(|cause| ServerError::Use {
            path: self.certificate.clone(),
            cause,
        })
    }
}

/// Said here and not left to the process's default, which a program may not have set.
fn provider() -> CryptoProvider {
    rustls::crypto::ring::default_provider()
}

#[cfg(test)]
mod tests;
