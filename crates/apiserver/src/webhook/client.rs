//! Calls of webhooks that objects configure: admission webhooks and conversion webhooks.
//!
//! The field `clientConfig` of such an object names a URL or a Service, and the certificate
//! authorities of the webhook. Errors have the texts of Go's HTTP client, as in Kubernetes.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use parking_lot::Mutex;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::Value;

use super::go_error;
use super::trust::BundleVerifier;
use crate::object;
use crate::service_resolver::{Backend, ServiceResolver};
use crate::store::Store;

/// Maximum number of clients that are kept for the next call.
const CLIENTS_MAX: usize = 200;
/// Maximum number of bytes of an error response that are quoted.
const QUOTED_MAX: usize = 2048;

type HttpsClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// The clients of all webhooks that objects configure.
#[derive(Debug, Default)]
pub(crate) struct WebhookClients {
    /// Clients by server name and certificate authorities.
    clients: Mutex<HashMap<(String, String), HttpsClient>>,
}

/// The error of a call.
#[derive(Clone, Debug)]
pub(crate) struct CallError {
    /// The reason, in the words of Go's HTTP client.
    pub(crate) message: String,
    /// The HTTP code of the error.
    pub(crate) code: u16,
}

/// The address of a webhook.
#[derive(Debug)]
struct Address<'a> {
    /// The URL in errors.
    url: String,
    /// The name in the certificate of the webhook.
    server_name: String,
    /// Host and port, unless a Service has to be resolved.
    authority: Option<Authority>,
    /// Namespace, name and port of a Service.
    service: Option<(&'a str, &'a str, u16)>,
    path: PathAndQuery,
}

impl WebhookClients {
    /// Sends a review to the webhook that `config`, the field `clientConfig` of an object, names.
    /// Returns the body of the response.
    ///
    /// # Errors
    /// If the webhook cannot be reached, does not respond within `timeout`, or responds with an
    /// error.
    pub(crate) async fn post(
        &self,
        resolver: &ServiceResolver,
        store: &Store,
        config: &Value,
        body: Bytes,
        timeout: Duration,
    ) -> Result<Bytes, CallError> {
        let address = Address::parse(config, timeout).map_err(unavailable)?;
        let url = address.url.clone();
        let failed = |error: String| unavailable(format!("Post {url:?}: {error}"));
        let exchange = self.exchange(resolver, store, config, &address, body);
        let response = match tokio::time::timeout(timeout, exchange).await {
            Ok(Ok(response)) => response,
            Ok(Err(Failure::Connect(error))) => return Err(failed(error)),
            Ok(Err(Failure::Body(error))) => {
                return Err(unavailable(format!(
                    "unexpected error when reading response body. Please retry. Original error: \
                     {error}"
                )));
            }
            Err(_) => return Err(failed("context deadline exceeded".to_owned())),
        };
        let (parts, body) = response.into_parts();
        let code = parts.status.as_u16();
        let content_type = parts.headers.get(CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default();
        match code {
            200..=206 if body.is_empty() => Err(unavailable(format!(
                "0-length response with status code: {code} and content type: {content_type}"
            ))),
            200..=206 => Ok(body),
            _ => Err(refused(code, content_type, &body)),
        }
    }

    async fn exchange(
        &self,
        resolver: &ServiceResolver,
        store: &Store,
        config: &Value,
        address: &Address<'_>,
        body: Bytes,
    ) -> Result<Response<Bytes>, Failure> {
        let (authority, host) = match (&address.authority, address.service) {
            (Some(authority), _) => (authority.clone(), None),
            (None, Some((namespace, name, port))) => {
                let backend = resolver.backend(store, namespace, name, port);
                match backend.map_err(Failure::Connect)? {
                    Backend::Address(authority) => (authority, Some(address.host())),
                    Backend::Local(service) => {
                        let request = request(address.path.as_str(), body)?;
                        return Ok(service.call(request).await);
                    }
                }
            }
            (None, None) => return Err(Failure::Connect("no address".to_owned())),
        };
        let mut request = request("/", body)?.map(Full::new);
        let uri = Uri::builder()
            .scheme(Scheme::HTTPS)
            .authority(authority.clone())
            .path_and_query(address.path.clone())
            .build();
        *request.uri_mut() = uri.map_err(|error| Failure::Connect(error.to_string()))?;
        if let Some(host) = host.and_then(|host| HeaderValue::from_str(&host).ok()) {
            request.headers_mut().insert(HOST, host);
        }
        let bundle = object::text(config, &["caBundle"]);
        let client = self.client(&address.server_name, bundle);
        let client = client.map_err(Failure::Connect)?;
        let response = client
            .request(request)
            .await
            .map_err(|error| Failure::Connect(go_error::connect(&error, authority.as_str())))?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await;
        let body = body.map_err(|error| Failure::Body(go_error::read(&error)))?;
        Ok(Response::from_parts(parts, body.to_bytes()))
    }

    /// Returns the client for webhooks with this server name and these certificate authorities.
    fn client(&self, server_name: &str, bundle: &str) -> Result<HttpsClient, String> {
        let key = (server_name.to_owned(), bundle.to_owned());
        if let Some(client) = self.clients.lock().get(&key) {
            return Ok(client.clone());
        }
        let client = https_client(server_name, bundle)?;
        let mut clients = self.clients.lock();
        if clients.len() >= CLIENTS_MAX {
            clients.clear();
        }
        clients.insert(key, client.clone());
        Ok(client)
    }
}

/// The failure of an exchange.
enum Failure {
    /// There is no response.
    Connect(String),
    /// The body of the response ended early.
    Body(String),
}

impl<'a> Address<'a> {
    fn parse(config: &'a Value, timeout: Duration) -> Result<Self, String> {
        let query = format!("?timeout={}", go_error::duration(timeout));
        let service = object::at(config, &["service"]);
        if !service.is_null() {
            let name = object::text(service, &["name"]);
            let namespace = object::text(service, &["namespace"]);
            let port = object::at(service, &["port"]).as_u64().unwrap_or(443);
            let port = u16::try_from(port).map_err(|_| format!("invalid port {port}"))?;
            let path = clean_path(object::text(service, &["path"]));
            let server_name = format!("{name}.{namespace}.svc");
            return Ok(Self {
                url: format!("https://{server_name}:{port}{path}{query}"),
                path: format!("{path}{query}")
                    .parse()
                    .map_err(|error| format!("invalid path {path:?}: {error}"))?,
                authority: None,
                service: Some((namespace, name, port)),
                server_name,
            });
        }
        let url = object::text(config, &["url"]);
        if url.is_empty() {
            return Err("webhook configuration must have either service or URL".to_owned());
        }
        let uri: Uri = url
            .parse()
            .map_err(|error| format!("Unparsable URL: {error}"))?;
        let host = uri.host().unwrap_or_default();
        let authority = match uri.port_u16() {
            Some(port) => format!("{host}:{port}"),
            None => format!("{host}:443"),
        };
        let path = clean_path(uri.path());
        let shown = uri.authority().map_or("", Authority::as_str);
        Ok(Self {
            url: format!("https://{shown}{path}{query}"),
            server_name: host.trim_matches(['[', ']']).to_owned(),
            authority: Some(
                authority
                    .parse()
                    .map_err(|error| format!("Unparsable URL: {error}"))?,
            ),
            service: None,
            path: format!("{path}{query}")
                .parse()
                .map_err(|error| format!("Unparsable URL: {error}"))?,
        })
    }

    /// Returns the value of the header `Host`.
    fn host(&self) -> String {
        let port = self.service.map_or(443, |(_, _, port)| port);
        format!("{}:{port}", self.server_name)
    }
}

/// Returns a path in the form in which Kubernetes requests it: without empty segments, `.` and
/// `..`, and without a slash at its end.
fn clean_path(path: &str) -> String {
    let mut segments = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    format!("/{}", segments.join("/"))
}

fn request(uri: &str, body: Bytes) -> Result<Request<Bytes>, Failure> {
    Request::post(uri)
        .header(CONTENT_TYPE, "application/json")
        .header(ACCEPT, "application/json, */*")
        .body(body)
        .map_err(|error| Failure::Connect(error.to_string()))
}

fn https_client(server_name: &str, bundle: &str) -> Result<HttpsClient, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let roots = roots(bundle)?;
    let config = match roots.is_empty() {
        true => config.with_root_certificates(roots),
        false => {
            let verifier = BundleVerifier::new(certificates(bundle)?, roots, provider)?;
            let config = config.dangerous();
            config.with_custom_certificate_verifier(Arc::new(verifier))
        }
    };
    let config = config.with_no_client_auth();
    let name = ServerName::try_from(server_name.to_owned()).map_err(|error| error.to_string())?;
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_only()
        .with_server_name_resolver(FixedServerNameResolver::new(name))
        .enable_http1()
        .build();
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}

/// Returns the certificates of a `caBundle`, which is PEM in base64.
///
/// # Errors
/// If the text is not base64, or has no certificate in it.
pub(crate) fn roots(bundle: &str) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(bundle)? {
        let added = roots.add(certificate);
        added.map_err(|error| format!("caBundle: {error}"))?;
    }
    if roots.is_empty() && !bundle.is_empty() {
        return Err("unable to load root certificates: unable to parse bytes as PEM block".into());
    }
    Ok(roots)
}

fn certificates(bundle: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let pem = BASE64_STANDARD.decode(bundle);
    let pem = pem.map_err(|error| format!("caBundle: {error}"))?;
    let certificates = CertificateDer::pem_slice_iter(&pem);
    let certificates: Result<Vec<_>, _> = certificates.collect();
    certificates.map_err(|error| format!("caBundle: {error}"))
}

fn unavailable(message: String) -> CallError {
    CallError { message, code: 503 }
}

/// Returns the error of Go's client for a response with an error code.
fn refused(code: u16, content_type: &str, body: &Bytes) -> CallError {
    if let Ok(status) = serde_json::from_slice::<Value>(body)
        && object::text(&status, &["kind"]) == "Status"
        && object::text(&status, &["status"]) != "Success"
    {
        return CallError {
            message: object::text(&status, &["message"]).to_owned(),
            code,
        };
    }
    let text = match content_type.starts_with("text/") {
        true => String::from_utf8_lossy(body),
        false => "".into(),
    };
    let text: String = text.trim().chars().take(QUOTED_MAX).collect();
    let text = match text.as_str() {
        "" => "unknown".to_owned(),
        text => text.to_owned(),
    };
    let message = match code {
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 => text,
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        409 => "the server reported a conflict".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later"
            .to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        500.. => {
            format!("an error on the server ({text:?}) has prevented the request from succeeding")
        }
        _ => format!(
            "the server responded with the status code {code} but did not return more information"
        ),
    };
    CallError { message, code }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_requested_in_its_shortest_form() {
        for (path, wanted) in [
            ("", "/"),
            ("//failing", "/failing"),
            ("/a/./b/../c/", "/a/c"),
            ("/..", "/"),
        ] {
            assert_eq!(clean_path(path), wanted);
        }
    }
}
