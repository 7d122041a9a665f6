//! The certificates of one HTTPS front: that of the server, and that of its administrator.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::authentication::{ClientCertificates, Identity, SYSTEM_MASTERS};
use crate::authority::{Authority, Pair};
use crate::error::StartError;

/// A certificate for the server that the caller provides, such as the files of `--tls-cert-file`
/// and `--tls-private-key-file` of kube-apiserver.
#[derive(Clone)]
pub struct ServingCertificate {
    /// The certificate of the server, followed by those of intermediate authorities, as PEM.
    pub certificate: String,
    /// The private key of the certificate, as PEM.
    pub key: String,
}

impl fmt::Debug for ServingCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The key is a secret.
        let mut debug = f.debug_struct("ServingCertificate");
        debug.field("certificate", &self.certificate);
        debug.finish_non_exhaustive()
    }
}

/// The certificates and keys of one HTTPS front, kept in memory.
#[derive(Debug)]
pub(super) struct Certificates {
    server: ServerCertificate,
    admin: Pair,
}

#[derive(Debug)]
struct ServerCertificate {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Certificates {
    /// Creates the certificates of a server at `address`. A certificate that the caller `provided`
    /// is used for the server.
    pub(super) fn create(
        authority: &Authority,
        address: IpAddr,
        provided: Option<&ServingCertificate>,
    ) -> Result<Self, StartError> {
        let admin = Identity::admin();
        Ok(Self {
            server: match provided {
                Some(provided) => ServerCertificate::parse(provided).map_err(fail)?,
                None => authority.issue_for_server(address)?.into(),
            },
            admin: authority.issue_for_client(&admin.user, SYSTEM_MASTERS)?,
        })
    }

    /// Returns the TLS configuration of the server. Client certificates are optional.
    pub(super) fn server_config(
        &self,
        clients: &ClientCertificates,
    ) -> Result<ServerConfig, StartError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(fail)?
            .with_client_cert_verifier(clients.handshake_verifier())
            .with_single_cert(self.server.chain.clone(), self.server.key.clone_key())
            .map_err(fail)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }

    /// Returns the client certificate of the administrator.
    pub(super) fn admin(&self) -> &Pair {
        &self.admin
    }
}

impl ServerCertificate {
    fn parse(provided: &ServingCertificate) -> Result<Self, String> {
        let chain: Result<Vec<_>, _> =
            CertificateDer::pem_slice_iter(provided.certificate.as_bytes()).collect();
        let chain = chain.map_err(|error| format!("the serving certificate: {error}"))?;
        if chain.is_empty() {
            return Err("the serving certificate: there is no certificate in the PEM text".into());
        }
        let key = PrivateKeyDer::from_pem_slice(provided.key.as_bytes())
            .map_err(|error| format!("the key of the serving certificate: {error}"))?;
        Ok(Self { chain, key })
    }
}

impl From<Pair> for ServerCertificate {
    fn from(pair: Pair) -> Self {
        Self {
            chain: vec![pair.certificate],
            key: PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(pair.key)),
        }
    }
}

fn fail<E: Into<Box<dyn std::error::Error + Send + Sync>>>(cause: E) -> StartError {
    StartError::Tls {
        cause: cause.into(),
    }
}
