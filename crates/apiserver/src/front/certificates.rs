//! The certificates of one HTTPS front: that of the server, and that of its administrator.

use std::net::IpAddr;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::authentication::{ClientCertificates, Identity, SYSTEM_MASTERS};
use crate::authority::{Authority, Pair};
use crate::error::StartError;

/// The certificates and keys of one HTTPS front, created when the server starts to listen and kept
/// in memory.
#[derive(Debug)]
pub(super) struct Certificates {
    server: Pair,
    admin: Pair,
}

impl Certificates {
    /// Creates the certificates of a server at `address`.
    pub(super) fn create(authority: &Authority, address: IpAddr) -> Result<Self, StartError> {
        let admin = Identity::admin();
        Ok(Self {
            server: authority.issue_for_server(address)?,
            admin: authority.issue_for_client(&admin.user, SYSTEM_MASTERS)?,
        })
    }

    /// Returns the TLS configuration of the server. Client certificates are optional.
    pub(super) fn server_config(
        &self,
        clients: &ClientCertificates,
    ) -> Result<ServerConfig, StartError> {
        fn fail<E: Into<Box<dyn std::error::Error + Send + Sync>>>(cause: E) -> StartError {
            StartError::Tls {
                cause: cause.into(),
            }
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.server.key.clone()));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(fail)?
            .with_client_cert_verifier(clients.handshake_verifier())
            .with_single_cert(vec![self.server.certificate.clone()], key)
            .map_err(fail)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }

    /// Returns the client certificate of the administrator.
    pub(super) fn admin(&self) -> &Pair {
        &self.admin
    }
}
