//! ServiceAccount tokens: JSON Web Tokens that the server signs and verifies.

mod claims;
mod keys;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{AuthenticationError, Identity, TokenContext};
use crate::error::StartError;
use crate::gotext::quoted_list;
use keys::{PublicKey, SigningKey};

pub(crate) use claims::{Claims, KubernetesClaims, NODE_NAME, Reference};

/// Maximum number of verified tokens that are remembered. An entry is about 2 KB.
const VERIFIED: usize = 1_024;
/// Maximum length of a token, in bytes. Tokens of a server are shorter than 2 KB.
const TOKEN_MAX: usize = 16 * 1024;

/// The options of ServiceAccount tokens. The keys and the issuer have the meaning of the flags
/// `--service-account-*` of kube-apiserver.
#[derive(Clone)]
#[non_exhaustive]
pub struct ServiceAccountOptions {
    /// Issuer in the tokens (`--service-account-issuer`). The first issuer is the one of new
    /// tokens; the others are accepted.
    pub issuers: Vec<String>,
    /// Audiences for which a token must be valid (`--api-audiences`). If empty, the issuers.
    pub audiences: Vec<String>,
    /// Private key that signs tokens, as PEM (`--service-account-signing-key-file`). `None` creates
    /// a new key.
    pub signing_key: Option<String>,
    /// Keys that verify tokens, as PEM (`--service-account-key-file`), besides the signing key.
    pub keys: Vec<String>,
    /// URL of the public keys in the OpenID configuration (`--service-account-jwks-uri`). If
    /// `None`, the URL is that of the server.
    pub jwks_uri: Option<String>,
    /// Maximum lifetime of a token in seconds (`--service-account-max-token-expiration`).
    pub max_expiration_seconds: Option<i64>,
    /// Whether the token of a pod is valid for a year although its pod renews it every hour
    /// (`--service-account-extend-token-expiration`).
    pub extend_expiration: bool,
}

impl Default for ServiceAccountOptions {
    fn default() -> Self {
        Self {
            issuers: vec!["https://kubernetes.default.svc.cluster.local".to_owned()],
            audiences: Vec::new(),
            signing_key: None,
            keys: Vec::new(),
            jwks_uri: None,
            max_expiration_seconds: None,
            extend_expiration: true,
        }
    }
}

impl fmt::Debug for ServiceAccountOptions {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ServiceAccountOptions")
            .field("issuers", &self.issuers)
            .field("audiences", &self.audiences)
            .finish_non_exhaustive()
    }
}

/// The issuer and verifier of ServiceAccount tokens.
#[derive(Debug)]
pub(crate) struct ServiceAccountTokens {
    issuers: Vec<String>,
    audiences: Vec<String>,
    signing: SigningKey,
    keys: Vec<PublicKey>,
    jwks_uri: Option<String>,
    pub(crate) max_expiration_seconds: Option<i64>,
    pub(crate) extend_expiration: bool,
    /// Claims of tokens whose signatures were verified. Times and objects are checked for each
    /// request, so an entry never becomes wrong.
    verified: Mutex<HashMap<String, Arc<Claims>>>,
}

#[derive(Deserialize)]
struct Header {
    #[serde(default)]
    alg: String,
    #[serde(default)]
    kid: String,
}

impl ServiceAccountTokens {
    pub(super) fn new(options: &ServiceAccountOptions) -> Result<Self, StartError> {
        let refuse = |option| move |cause| StartError::Option { option, cause };
        let signing = match &options.signing_key {
            Some(pem) => SigningKey::from_pem(pem),
            None => SigningKey::generate(),
        };
        let signing = signing.map_err(refuse("ServiceAccount signing key"))?;
        let mut keys = vec![signing.public.clone()];
        for pem in &options.keys {
            let found = keys::public_keys(pem).map_err(refuse("ServiceAccount key"))?;
            let is_new = |key: &PublicKey| keys.iter().all(|known| known.id != key.id);
            let new: Vec<PublicKey> = found.into_iter().filter(is_new).collect();
            keys.extend(new);
        }
        if options.issuers.is_empty() {
            let refuse = refuse("ServiceAccount issuer");
            return Err(refuse("there is no issuer".to_owned()));
        }
        Ok(Self {
            issuers: options.issuers.clone(),
            audiences: match options.audiences.is_empty() {
                true => options.issuers.clone(),
                false => options.audiences.clone(),
            },
            signing,
            keys,
            jwks_uri: options.jwks_uri.clone(),
            max_expiration_seconds: options.max_expiration_seconds,
            extend_expiration: options.extend_expiration,
            verified: Mutex::default(),
        })
    }

    /// Returns the audiences of the server.
    pub(crate) fn audiences(&self) -> &[String] {
        &self.audiences
    }

    /// Signs a token. Sets the issuer in the claims.
    pub(crate) fn sign(&self, mut claims: Claims) -> Result<String, String> {
        claims.iss = self.issuers.first().cloned().unwrap_or_default();
        let key = &self.signing.public;
        let header = json!({"alg": key.algorithm.name(), "kid": key.id});
        let claims = serde_json::to_vec(&claims).map_err(|error| error.to_string())?;
        let message = format!(
            "{}.{}",
            BASE64.encode(header.to_string()),
            BASE64.encode(claims)
        );
        let signature = self.signing.sign(message.as_bytes())?;
        Ok(format!("{message}.{}", BASE64.encode(signature)))
    }

    /// Returns the user of a token, and those of `audiences` for which the token is valid. Returns
    /// `None` if the text is not a token of one of the issuers.
    pub(super) fn authenticate(
        &self,
        context: &TokenContext<'_>,
        token: &str,
        audiences: &[String],
    ) -> Option<Result<(Identity, Vec<String>), AuthenticationError>> {
        let known = self.verified.lock().get(token).cloned();
        let claims = match known {
            Some(claims) => claims,
            None => match self.verify(token)? {
                Ok(claims) => claims,
                Err(error) => return Some(Err(error)),
            },
        };
        Some(self.check(context, &claims, audiences))
    }

    /// Verifies the signature of a token. Returns `None` if the text is not a token of one of the
    /// issuers.
    fn verify(&self, token: &str) -> Option<Result<Arc<Claims>, AuthenticationError>> {
        if token.len() > TOKEN_MAX {
            return None;
        }
        let (message, signature) = token.rsplit_once('.')?;
        let (header, claims) = message.split_once('.')?;
        let claims: Claims = serde_json::from_slice(&BASE64.decode(claims).ok()?).ok()?;
        if !self.issuers.contains(&claims.iss) {
            return None;
        }
        let header: Header = serde_json::from_slice(&BASE64.decode(header).ok()?).ok()?;
        let signature = BASE64.decode(signature).ok()?;
        let fail = |why: &str| Some(Err(AuthenticationError(why.to_owned())));
        let is_named = |key: &&PublicKey| header.kid.is_empty() || key.id == header.kid;
        let mut keys = self.keys.iter().filter(is_named).peekable();
        if keys.peek().is_none() {
            return fail("invalid signature, no keys found");
        }
        let is_signed = keys.any(|key| {
            key.algorithm.name() == header.alg && key.verifies(message.as_bytes(), &signature)
        });
        if !is_signed {
            return fail("go-jose/go-jose: error in cryptographic primitive");
        }
        let claims = Arc::new(claims);
        let mut verified = self.verified.lock();
        if verified.len() >= VERIFIED {
            verified.clear();
        }
        verified.insert(token.to_owned(), claims.clone());
        Some(Ok(claims))
    }

    fn check(
        &self,
        context: &TokenContext<'_>,
        claims: &Claims,
        audiences: &[String],
    ) -> Result<(Identity, Vec<String>), AuthenticationError> {
        let given = match claims.aud.is_empty() {
            true => &self.audiences,
            false => &claims.aud,
        };
        let common = given.iter().filter(|audience| audiences.contains(audience));
        let common: Vec<String> = common.cloned().collect();
        if common.is_empty() {
            return Err(AuthenticationError(format!(
                "token audiences {} is invalid for the target audiences {}",
                quoted_list(given),
                quoted_list(audiences)
            )));
        }
        Ok((claims.check(context)?, common))
    }

    /// Returns the OpenID configuration of the server, or `None` if the issuer is not an HTTPS URL.
    pub(crate) fn openid_configuration(&self, address: &str) -> Option<Value> {
        let issuer = self.issuers.first()?;
        let is_url = issuer.starts_with("https://") && !issuer.contains(['?', '#']);
        let jwks_uri = match &self.jwks_uri {
            Some(uri) => uri.clone(),
            None => format!("https://{address}/openid/v1/jwks"),
        };
        let mut algorithms: Vec<&str> = self.keys.iter().map(|key| key.algorithm.name()).collect();
        algorithms.sort_unstable();
        algorithms.dedup();
        is_url.then(|| {
            json!({
                "issuer": issuer,
                "jwks_uri": jwks_uri,
                "response_types_supported": ["id_token"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": algorithms,
            })
        })
    }

    /// Returns the public keys that verify tokens, as a JSON Web Key Set.
    pub(crate) fn key_set(&self) -> Value {
        let keys: Vec<Value> = self.keys.iter().filter_map(PublicKey::to_jwk).collect();
        json!({"keys": keys})
    }
}

#[cfg(test)]
mod tests;
