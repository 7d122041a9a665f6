//! ID tokens of OpenID Connect (`auth-provider: oidc` of a kubeconfig). They are refreshed with the
//! refresh token, as client-go does (`plugin/pkg/client/auth/oidc`). Unlike kubectl, new tokens are
//! not written to the kubeconfig.

use std::collections::HashMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::{HeaderValue, Request, StatusCode, header};
use http_body_util::BodyExt;
use k8s_openapi::jiff::Timestamp;
use kube::client::Body;
use kube::config::AuthInfo;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::Value;
use tokio::sync::Mutex;
use tower::ServiceExt;

use super::{Credentials, CredentialsError, bearer};
use crate::connect::environment_proxy;
use crate::transport::Wire;

/// Time before its expiry at which a token is no longer used; client-go's value.
const EXPIRY_MARGIN: i64 = 10;
/// Time limit of a refresh with all its requests.
const REFRESH_MAX: Duration = Duration::from_secs(30);
/// Limit of a response of the issuer, in bytes. A response has a few tokens.
const RESPONSE_MAX: usize = 1 << 20;

/// An issuer, and the tokens of a user.
pub(super) struct Oidc {
    issuer: String,
    client_id: String,
    client_secret: String,
    wire: Wire,
    /// The lock is held during a refresh, so that concurrent requests refresh once.
    tokens: Mutex<Tokens>,
}

struct Tokens {
    id: Option<String>,
    refresh: Option<String>,
}

impl Oidc {
    /// Reads the settings of the provider. Sends no request.
    pub(super) fn new(settings: &HashMap<String, String>) -> Result<Self, CredentialsError> {
        let setting = |name: &str| settings.get(name).filter(|it| !it.is_empty()).cloned();
        let required = |name: &'static str| {
            setting(name).ok_or_else(|| failed(format!("the kubeconfig does not set {name}")))
        };
        let issuer = required("idp-issuer-url")?;
        let client_id = required("client-id")?;
        let url = issuer.parse();
        let url = url.map_err(|_| failed(format!("{issuer:?} is not a valid URL of an issuer")))?;
        let mut config = kube::Config::new(url);
        let authority = match setting("idp-certificate-authority-data") {
            Some(data) => Some(STANDARD.decode(data).map_err(|_| {
                failed("idp-certificate-authority-data is not valid base64".to_owned())
            })?),
            None => {
                let path = setting("idp-certificate-authority");
                let read = |path: String| {
                    std::fs::read(&path).map_err(|cause| CredentialsError::Read {
                        item: "certificate authority of the OpenID Connect issuer",
                        path: path.into(),
                        cause,
                    })
                };
                path.map(read).transpose()?
            }
        };
        if let Some(pem) = authority {
            let roots: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem)
                .map(|root| root.map(|root| root.to_vec()))
                .collect();
            let roots = roots.map_err(|error| failed(error.to_string()))?;
            config.root_cert = Some(roots);
        }
        config.proxy_url =
            environment_proxy(&config.cluster_url).map_err(|error| failed(error.to_string()))?;
        let nobody = Credentials::new(&AuthInfo::default())?;
        let wire = crate::transport::connect(&config, &nobody, true);
        Ok(Self {
            issuer,
            client_id,
            client_secret: setting("client-secret").unwrap_or_default(),
            wire: wire.map_err(|error| failed(error.to_string()))?,
            tokens: Mutex::new(Tokens {
                id: setting("id-token"),
                refresh: setting("refresh-token"),
            }),
        })
    }

    /// Returns the header. Refreshes the ID token if it expires within 10 s.
    pub(super) async fn header(&self) -> Result<HeaderValue, CredentialsError> {
        let mut tokens = self.tokens.lock().await;
        if let Some(id) = &tokens.id {
            let expiry =
                expiry(id).ok_or_else(|| failed("the ID token is not a JWT".to_owned()))?;
            if expiry > Timestamp::now().as_second().saturating_add(EXPIRY_MARGIN) {
                return bearer(id);
            }
        }
        let Some(refresh) = tokens.refresh.clone() else {
            let reason = "the ID token has expired, and there is no refresh token: log in again";
            return Err(failed(reason.to_owned()));
        };
        let refreshed = tokio::time::timeout(REFRESH_MAX, self.refresh(&refresh)).await;
        let refreshed = refreshed.unwrap_or_else(|_| Err("no response within 30 s".to_owned()));
        let refreshed = refreshed.map_err(|reason| {
            failed(format!(
                "the issuer {} refreshes no token: {reason}",
                self.issuer
            ))
        })?;
        // A response without a refresh token leaves the last one.
        tokens.refresh = refreshed.refresh.or(tokens.refresh.take());
        let id = refreshed.id.unwrap_or_default();
        let header = bearer(&id);
        tokens.id = Some(id);
        header
    }

    /// Requests new tokens. The error is the reason for the message.
    async fn refresh(&self, refresh: &str) -> Result<Tokens, String> {
        let issuer = self.issuer.trim_end_matches('/');
        let metadata = Request::get(format!("{issuer}/.well-known/openid-configuration"));
        let (status, metadata) = self.send(metadata, String::new()).await?;
        if status != StatusCode::OK {
            return Err(format!("its configuration cannot be read ({status})"));
        }
        let endpoint = metadata.get("token_endpoint").and_then(Value::as_str);
        let endpoint = endpoint.ok_or("its configuration has no token_endpoint")?;
        // Some issuers read the client's secret from the header, others from the form; Go's package
        // oauth2 tries both as well.
        let (id, secret) = (encode(&self.client_id), encode(&self.client_secret));
        let refresh = encode(refresh);
        let basic = STANDARD.encode(format!("{id}:{secret}"));
        let form = format!("grant_type=refresh_token&refresh_token={refresh}");
        let in_form = format!("{form}&client_id={id}&client_secret={secret}");
        let with_header = post(endpoint).header(header::AUTHORIZATION, format!("Basic {basic}"));
        let mut response = self.send(with_header, form).await?;
        // This error is about the refresh token, and not about the client.
        let is_final = response.1.get("error").and_then(Value::as_str) == Some("invalid_grant");
        if !response.0.is_success() && !is_final {
            response = self.send(post(endpoint), in_form).await?;
        }
        let (status, body) = response;
        let text = |field: &str| body.get(field).and_then(Value::as_str).map(str::to_owned);
        if !status.is_success() {
            let error = text("error_description").or_else(|| text("error"));
            return Err(error.unwrap_or_else(|| status.to_string()));
        }
        match text("id_token") {
            id @ Some(_) => Ok(Tokens {
                id,
                refresh: text("refresh_token"),
            }),
            None => Err("its response has no id_token; was the scope openid requested?".to_owned()),
        }
    }

    /// Sends a request to the issuer. A response that is not JSON is `null`.
    async fn send(
        &self,
        request: http::request::Builder,
        body: String,
    ) -> Result<(StatusCode, Value), String> {
        let request = request.header(header::ACCEPT, "application/json");
        let request = request.body(Body::from(body.into_bytes()));
        let request = request.map_err(|error| error.to_string())?;
        let response = self.wire.clone().oneshot(request).await;
        let (head, mut body) = response
            .map_err(|error| crate::one_line(error.as_ref()))?
            .into_parts();
        let mut text = Vec::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| crate::one_line(error.as_ref()))?;
            text.extend(frame.into_data().unwrap_or_default());
            if text.len() > RESPONSE_MAX {
                return Err("its response is too large".to_owned());
            }
        }
        let body = serde_json::from_slice(&text).unwrap_or_default();
        Ok((head.status, body))
    }
}

/// Returns the expiry of a JWT, in seconds since 1970. The signature is for the API server.
fn expiry(token: &str) -> Option<i64> {
    let payload = token.split('.').nth(1)?.trim_end_matches('=');
    let payload = URL_SAFE_NO_PAD.decode(payload).ok()?;
    let payload: Value = serde_json::from_slice(&payload).ok()?;
    let expiry = payload.get("exp")?;
    // A number with a fraction is valid as well.
    expiry.as_i64().or_else(|| Some(expiry.as_f64()? as i64))
}

fn post(endpoint: &str) -> http::request::Builder {
    let content_type = "application/x-www-form-urlencoded";
    Request::post(endpoint).header(header::CONTENT_TYPE, content_type)
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

fn failed(reason: String) -> CredentialsError {
    CredentialsError::Oidc { reason }
}

#[cfg(test)]
mod tests;
