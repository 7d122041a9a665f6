//! The certificates of the front proxy.

use crate::authority::{Authority, Pair};
use crate::error::StartError;

/// The common name in the certificate of the front proxy.
pub(crate) const FRONT_PROXY: &str = "front-proxy-client";

/// The authority and the client certificate with which the server forwards requests. This authority
/// signs no other certificates: a client with a certificate of it could act as any user of an
/// aggregated API server.
#[derive(Debug)]
pub(crate) struct FrontProxy {
    authority: Authority,
    client: Pair,
}

impl FrontProxy {
    pub(super) fn create() -> Result<Self, StartError> {
        let authority = Authority::create("opkit-front-proxy-ca")?;
        let client = authority.issue_for_client(FRONT_PROXY, "")?;
        Ok(Self { authority, client })
    }

    /// Returns the certificate of the authority as PEM.
    pub(crate) fn authority_pem(&self) -> &str {
        self.authority.pem()
    }

    pub(super) fn client(&self) -> &Pair {
        &self.client
    }
}
