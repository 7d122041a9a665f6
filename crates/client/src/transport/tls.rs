//! TLS of the connections: which servers are trusted, and the client certificate.
//!
//! As in client-go, the file with the certificate authorities is read again while it is in use, and
//! no session is resumed, so that the server sees the current certificate on each new connection.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio::time::Instant;
use tower::BoxError;

use crate::credentials::Credentials;

/// Time after which the file with the certificate authorities is read again. client-go waits 5
/// minutes.
const READ_AFTER: Duration = Duration::from_secs(60);

/// Returns the TLS settings for the server in `config`.
pub(super) fn client_config(
    config: &kube::Config,
    credentials: &Credentials,
) -> Result<ClientConfig, BoxError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = if config.accept_invalid_certs {
        Arc::new(AnyCertificate(provider.clone()))
    } else if let Some(roots) = &config.root_cert {
        Arc::new(Authorities::new(
            roots,
            config.root_cert_file.clone(),
            provider.clone(),
        )?)
    } else if let Some(path) = &config.root_cert_file {
        let roots = read(path)?;
        Arc::new(Authorities::new(
            &roots,
            Some(path.clone()),
            provider.clone(),
        )?)
    } else {
        Arc::new(rustls_platform_verifier::Verifier::new(provider.clone())?)
    };
    let mut tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_client_cert_resolver(credentials.identity().clone());
    tls.resumption = Resumption::disabled();
    Ok(tls)
}

/// Accepts servers whose certificate is signed by one of a set of authorities.
#[derive(Debug)]
struct Authorities {
    /// File that the authorities are read from again.
    path: Option<PathBuf>,
    provider: Arc<CryptoProvider>,
    current: Mutex<(Arc<WebPkiServerVerifier>, Instant)>,
}

impl Authorities {
    fn new(
        roots: &[Vec<u8>],
        path: Option<PathBuf>,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, BoxError> {
        let verifier = verifier(roots, &provider)?;
        Ok(Self {
            path,
            provider,
            current: Mutex::new((verifier, Instant::now())),
        })
    }

    /// Returns the verifier. If the file is not valid, the last authorities stay in use.
    fn current(&self) -> Arc<WebPkiServerVerifier> {
        let mut current = self.current.lock();
        if let Some(path) = &self.path
            && current.1.elapsed() >= READ_AFTER
        {
            current.1 = Instant::now();
            match read(path).and_then(|roots| verifier(&roots, &self.provider)) {
                Ok(verifier) => current.0 = verifier,
                Err(error) => {
                    tracing::warn!(error, "the last certificate authorities stay in use");
                }
            }
        }
        current.0.clone()
    }
}

fn read(path: &PathBuf) -> Result<Vec<Vec<u8>>, BoxError> {
    let pem = std::fs::read(path)?;
    let certificates = CertificateDer::pem_slice_iter(&pem);
    let certificates: Result<Vec<_>, _> = certificates.map(|it| it.map(|it| it.to_vec())).collect();
    Ok(certificates?)
}

fn verifier(
    roots: &[Vec<u8>],
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, BoxError> {
    let mut store = RootCertStore::empty();
    for root in roots {
        store.add(CertificateDer::from(root.clone()))?;
    }
    let builder = WebPkiServerVerifier::builder_with_provider(store.into(), provider.clone());
    Ok(builder.build()?)
}

impl ServerCertVerifier for Authorities {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let current = self.current();
        current.verify_server_cert(certificate, intermediates, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// Accepts any certificate, as `--insecure-skip-tls-verify` demands.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests;
