//! Authentication: finds the user of a request, as Kubernetes does.
//!
//! A request is authenticated by the client certificate of its connection, or by its bearer token.
//! A request without credentials is anonymous, if the options allow it. Wrong credentials are an
//! error: such a request is not treated as anonymous.

mod certificate;
mod der;
mod identity;
mod request_header;
mod service_account;
mod static_token;
mod webhook;

use std::sync::Arc;

use http::HeaderMap;
use http::header::AUTHORIZATION;
use jiff::Timestamp;
use rustls::pki_types::CertificateDer;
use tokio::sync::Notify;

use crate::authority::Authority;
use crate::error::StartError;
use crate::store::Store;

use certificate::PeerCertificate;
pub(crate) use certificate::{ClientCertificates, organizations_of_request};
pub(crate) use identity::{
    ANONYMOUS, AUTHENTICATED, Identity, SYSTEM_MASTERS, UNAUTHENTICATED, service_account_groups,
    service_account_user, split_service_account,
};
pub use request_header::RequestHeaderOptions;
use request_header::RequestHeaders;
pub use service_account::ServiceAccountOptions;
pub(crate) use service_account::{
    Claims, KubernetesClaims, NODE_NAME, Reference, ServiceAccountTokens,
};
pub use static_token::StaticToken;
use static_token::StaticTokens;
pub use webhook::AuthenticationWebhook;
use webhook::WebhookAuthenticator;

/// The options of authentication.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AuthenticationOptions {
    /// Whether a request without credentials is a request of the user `system:anonymous`. If not,
    /// such a request is refused with 401. As in Kubernetes, this option has no effect if the only
    /// authorization mode is `AlwaysAllow`: then no request is anonymous.
    pub anonymous: bool,
    /// Certificates, as PEM, of authorities that sign client certificates (`--client-ca-file`),
    /// besides the authority of the server itself.
    pub client_ca: Option<String>,
    /// Bearer tokens and their users (`--token-auth-file`). [`StaticToken::parse_file`] reads the
    /// file format of Kubernetes.
    pub tokens: Vec<StaticToken>,
    /// The options of ServiceAccount tokens.
    pub service_accounts: ServiceAccountOptions,
    /// A webhook that is asked for the user of a token that is neither in `tokens` nor a token of a
    /// ServiceAccount.
    pub webhook: Option<AuthenticationWebhook>,
    /// Front proxies, which name the user of a request in its headers.
    pub request_header: Option<RequestHeaderOptions>,
}

impl Default for AuthenticationOptions {
    fn default() -> Self {
        Self {
            anonymous: true,
            client_ca: None,
            tokens: Vec::new(),
            service_accounts: ServiceAccountOptions::default(),
            webhook: None,
            request_header: None,
        }
    }
}

/// The origin of requests: the part of the credentials that all requests of a connection share.
#[derive(Clone, Debug)]
pub(crate) enum Peer {
    /// A caller in this process, who acts as this user.
    Known(Arc<Identity>),
    /// A client that is connected over HTTPS.
    Remote {
        certificate: PeerCertificate,
        /// Whether the peer is a front proxy, or the reason why it is refused as one.
        front_proxy: Result<bool, Arc<str>>,
        /// Notified by every request with a valid token. An anonymous request does not count.
        admitted: Arc<Notify>,
    },
}

/// The reason why a request is not authenticated.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct AuthenticationError(pub(crate) String);

/// The state with which a ServiceAccount token is compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenContext<'a> {
    pub(crate) store: &'a Store,
    pub(crate) now: Timestamp,
}

/// The authenticators of a server.
#[derive(Debug)]
pub(crate) struct Authentication {
    anonymous: bool,
    certificates: ClientCertificates,
    tokens: StaticTokens,
    service_accounts: ServiceAccountTokens,
    webhook: Option<WebhookAuthenticator>,
    request_headers: Option<RequestHeaders>,
}

impl Authentication {
    /// Creates the authenticators. If `anonymous` is `true`, requests without credentials are
    /// accepted.
    pub(crate) fn new(
        options: &AuthenticationOptions,
        anonymous: bool,
        authority: &Authority,
    ) -> Result<Self, StartError> {
        Ok(Self {
            anonymous,
            certificates: ClientCertificates::new(authority, options.client_ca.as_deref())?,
            tokens: StaticTokens::new(&options.tokens),
            service_accounts: ServiceAccountTokens::new(&options.service_accounts)?,
            webhook: match &options.webhook {
                Some(options) => Some(WebhookAuthenticator::new(options)?),
                None => None,
            },
            request_headers: match &options.request_header {
                Some(options) => Some(RequestHeaders::new(options)?),
                None => None,
            },
        })
    }

    /// Returns the peer of a connection whose client has sent these certificates. `admitted` is
    /// notified when the peer is authenticated.
    pub(crate) fn peer(
        &self,
        certificates: Option<&[CertificateDer<'_>]>,
        admitted: Arc<Notify>,
    ) -> Peer {
        let front_proxy = match &self.request_headers {
            Some(headers) => headers.is_front_proxy(certificates),
            None => Ok(false),
        };
        let certificate = self.certificates.identify(certificates);
        if matches!(certificate, PeerCertificate::Valid(_)) || front_proxy == Ok(true) {
            admitted.notify_one();
        }
        Peer::Remote {
            certificate,
            front_proxy,
            admitted,
        }
    }

    /// Returns the verifier of client certificates.
    pub(crate) fn certificates(&self) -> &ClientCertificates {
        &self.certificates
    }

    /// Returns the issuer and verifier of ServiceAccount tokens.
    pub(crate) fn service_accounts(&self) -> &ServiceAccountTokens {
        &self.service_accounts
    }

    /// Creates a random bearer token for a user. The token is valid until the server stops.
    pub(crate) fn issue_token(&self, identity: Identity) -> Result<String, StartError> {
        self.tokens.issue(identity)
    }

    /// Returns the user of a request with these headers.
    pub(crate) async fn authenticate(
        &self,
        context: &TokenContext<'_>,
        peer: &Peer,
        headers: &HeaderMap,
    ) -> Result<Arc<Identity>, AuthenticationError> {
        let (certificate, front_proxy, admitted) = match peer {
            Peer::Known(identity) => return Ok(identity.clone()),
            Peer::Remote {
                certificate,
                front_proxy,
                admitted,
            } => (certificate, front_proxy, admitted),
        };
        let mut errors = Vec::new();
        match (front_proxy, &self.request_headers) {
            (Ok(true), Some(request_headers)) => {
                if let Some(identity) = request_headers.user(headers) {
                    return Ok(Arc::new(identity));
                }
            }
            (Err(why), _) => errors.push(why.to_string()),
            _ => {}
        }
        match certificate {
            PeerCertificate::Valid(identity) => return Ok(identity.clone()),
            PeerCertificate::Invalid(why) => errors.push(why.to_string()),
            PeerCertificate::Missing => {}
        }
        if let Some(token) = bearer_token(headers) {
            let audiences = self.service_accounts.audiences();
            match self.review_token(context, &token, audiences).await {
                Ok((identity, _)) => {
                    admitted.notify_one();
                    return Ok(identity);
                }
                Err(AuthenticationError(why)) => errors.push(why),
            }
        }
        match errors.is_empty() {
            true if self.anonymous => Ok(Identity::anonymous()),
            true => Err(AuthenticationError("no credentials".to_owned())),
            false => Err(AuthenticationError(errors.join(", "))),
        }
    }

    /// Returns the user of a bearer token, and those of `audiences` for which the token is valid.
    /// If there are no `audiences`, the token must be valid for this server.
    pub(crate) async fn review_token(
        &self,
        context: &TokenContext<'_>,
        token: &str,
        audiences: &[String],
    ) -> Result<(Arc<Identity>, Vec<String>), AuthenticationError> {
        let own = self.service_accounts.audiences();
        let audiences = if audiences.is_empty() { own } else { audiences };
        // A static token is valid for this server only.
        let common = own.iter().filter(|audience| audiences.contains(audience));
        let common: Vec<String> = common.cloned().collect();
        if let Some(identity) = self.tokens.get(token)
            && !common.is_empty()
        {
            return Ok((identity, common));
        }
        let account = self
            .service_accounts
            .authenticate(context, token, audiences);
        let mut errors = Vec::new();
        match account {
            Some(Ok((identity, audiences))) => return Ok((Arc::new(identity), audiences)),
            Some(Err(AuthenticationError(why))) => errors.push(why),
            None => {}
        }
        if let Some(webhook) = &self.webhook {
            match webhook.authenticate(token, audiences, own).await {
                Ok(found) => return Ok(found),
                Err(error) => errors.extend(error.map(|AuthenticationError(why)| why)),
            }
        }
        // Kubernetes first compares the token with that of its own client, and lists this error.
        errors.insert(0, "invalid bearer token".to_owned());
        Err(AuthenticationError(match errors.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        }))
    }
}

/// Returns the bearer token in the `Authorization` header. As in Kubernetes, a header with another
/// scheme is ignored.
fn bearer_token(headers: &HeaderMap) -> Option<String> {
    // A token that is not text is wrong, and not missing.
    let value = String::from_utf8_lossy(headers.get(AUTHORIZATION)?.as_bytes());
    let mut parts = value.trim().splitn(3, ' ');
    let scheme = parts.next()?;
    let token = parts.next()?;
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then(|| token.to_owned())
}

#[cfg(test)]
mod tests;
