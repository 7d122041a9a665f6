//! The certificate that a TLS server uses for new connections.

use std::sync::Arc;

use parking_lot::RwLock;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// Certificate that can be replaced while the server runs.
#[derive(Debug, Default)]
pub(crate) struct Resolver(RwLock<Option<Arc<CertifiedKey>>>);

impl Resolver {
    pub(crate) fn set(&self, certificate: CertifiedKey) {
        *self.0.write() = Some(Arc::new(certificate));
    }
}

impl ResolvesServerCert for Resolver {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.0.read().clone()
    }
}
