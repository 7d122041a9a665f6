//! The server of `/metrics`.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use opkit_client::RestClient;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::ServerError;
use crate::auth::AuthFilter;
use crate::certificates::ServerCertificate;
use crate::listen::{self, HttpResponse, not_found, text, typed};
use crate::metrics::MetricsRegistry;
use crate::process::ProcessMetrics;

/// Content type of the OpenMetrics text format.
const OPENMETRICS_CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Content type of Prometheus' text format.
const PROMETHEUS_CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Address, access control and certificate of a [`MetricsServer`].
///
/// # Examples
/// ```
/// use opkit_servers::MetricsServerOptions;
///
/// let everywhere = MetricsServerOptions::new(([0, 0, 0, 0], 8443).into());
/// assert!(everywhere.is_secure);
/// let here = MetricsServerOptions::new(([127, 0, 0, 1], 8080).into());
/// assert!(!here.is_secure);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct MetricsServerOptions {
    /// Address to listen on.
    pub address: SocketAddr,
    /// Whether the server uses TLS and serves only users that the cluster allows to `get` the path
    /// `/metrics`. The default is `false` on a loopback address and `true` elsewhere, because
    /// metrics contain names of objects in the cluster, from which an attacker learns how to
    /// disturb the operator. In controller-runtime the default is always `false`.
    pub is_secure: bool,
    /// Directory with `tls.crt` and `tls.key`, which are read again when the files change. Without
    /// a directory, the server creates a self-signed certificate.
    pub certificates: Option<PathBuf>,
    /// Whether clients of a secure server may use HTTP/2; `false` by default, as in kubebuilder's
    /// projects.
    pub enable_http2: bool,
}

impl MetricsServerOptions {
    /// Creates options for `address`. The server is secure unless `address` is a loopback address.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            is_secure: !address.ip().is_loopback(),
            certificates: None,
            enable_http2: false,
        }
    }
}

/// HTTP server of `/metrics`, in Prometheus' text format or in OpenMetrics, depending on the
/// `Accept` header. Responses are compressed if the client accepts gzip.
///
/// A secure server lets the API server authenticate the caller and check that the caller may `get`
/// the nonResourceURL `/metrics`. The response is 401 without a valid token, 403 without the
/// permission, and 500 if a request to the API server fails. The operator needs the permission to
/// create TokenReviews and SubjectAccessReviews, which `manifests` generates.
///
/// # Examples
/// ```
/// use opkit_client::RestClient;
/// use opkit_servers::metrics::MetricsRegistry;
/// use opkit_servers::{MetricsServer, MetricsServerOptions, ServerError};
/// use tokio_util::sync::CancellationToken;
///
/// async fn serve_metrics(client: RestClient, stop: CancellationToken) -> Result<(), ServerError> {
///     let options = MetricsServerOptions::new(([0, 0, 0, 0], 8443).into());
///     let server = MetricsServer::listen(options).await?;
///     println!("metrics at https://{}/metrics", server.address());
///     server.serve(MetricsRegistry::default(), client, stop).await
/// }
/// ```
#[derive(Debug)]
pub struct MetricsServer {
    listener: TcpListener,
    address: SocketAddr,
    certificates: Option<Arc<ServerCertificate>>,
    enable_http2: bool,
}

impl MetricsServer {
    /// Reads or creates the certificate and binds the address. Connections are accepted once
    /// [`serve`](Self::serve) is called.
    ///
    /// # Errors
    /// Returns an error if the certificate cannot be used, or if the address is in use or does not
    /// belong to this machine.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn listen(options: MetricsServerOptions) -> Result<Self, ServerError> {
        let certificates = match (options.is_secure, &options.certificates) {
            (false, _) => None,
            (true, Some(directory)) => Some(ServerCertificate::read(directory)?),
            (true, None) => Some(ServerCertificate::self_signed("metrics")?),
        };
        let (listener, address) = listen::bind("metrics", options.address).await?;
        Ok(Self {
            listener,
            address,
            certificates: certificates.map(Arc::new),
            enable_http2: options.enable_http2,
        })
    }

    /// Returns the address that the server listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Registers metrics of the process and of the certificate in `registry`, and serves `registry`
    /// until `stop` is cancelled. Requests in progress then have 5 s to complete. A secure server
    /// sends its TokenReviews and SubjectAccessReviews through `client`.
    ///
    /// # Errors
    /// Returns an error if TLS cannot be set up.
    ///
    /// # Cancel safety
    /// Dropping the future closes all connections immediately.
    pub async fn serve(
        &self,
        registry: MetricsRegistry,
        client: RestClient,
        stop: CancellationToken,
    ) -> Result<(), ServerError> {
        self.register(&registry);
        let mut tls: Option<TlsAcceptor> = None;
        let mut filter = None;
        if let Some(certificates) = &self.certificates {
            let acceptor = certificates.acceptor(self.enable_http2);
            tls = Some(acceptor.map_err(ServerError::Tls)?);
            filter = Some(AuthFilter::new(client));
        }
        let is_secure = filter.is_some();
        let scrape = Arc::new(ScrapeHandler { filter, registry });
        let handler = listen::without_body(move |request| {
            let scrape = scrape.clone();
            async move { scrape.respond(&request).await }
        });
        info!(address = %self.address, is_secure, "serving metrics");
        let serving = listen::serve(&self.listener, tls, handler, stop);
        let Some(certificates) = self.certificates.clone() else {
            serving.await;
            return Ok(());
        };
        tokio::select! {
            () = serving => {}
            () = certificates.watch() => {}
        }
        Ok(())
    }

    fn register(&self, registry: &MetricsRegistry) {
        let mut registry = registry.lock();
        registry.register_collector(Box::new(ProcessMetrics));
        if let Some(certificates) = &self.certificates {
            certificates.register(&mut registry);
        }
    }
}

/// Handler of scrape requests.
#[derive(Debug)]
struct ScrapeHandler {
    /// Access control; `None` if the server is not secure.
    filter: Option<AuthFilter>,
    registry: MetricsRegistry,
}

impl ScrapeHandler {
    /// Returns the response to a request.
    async fn respond(&self, request: &Parts) -> HttpResponse {
        let (method, path) = (&request.method, request.uri.path());
        if let Some(filter) = &self.filter
            && let Err(response) = filter.check(method, path, &request.headers).await
        {
            return response;
        }
        if path != "/metrics" {
            return not_found();
        }
        if !matches!(*method, Method::GET | Method::HEAD) {
            return text(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed\n");
        }
        let (registry, headers) = (self.registry.clone(), &request.headers);
        let (openmetrics, gzip) = (prefers_openmetrics(headers), accepts_gzip(headers));
        // Encoding many time series takes too long for a runtime thread.
        let encoded = tokio::task::spawn_blocking(move || {
            let text = match openmetrics {
                true => registry.encode(),
                false => registry.encode_prometheus(),
            };
            match gzip {
                true => compress(&text),
                false => Ok(text.into_bytes()),
            }
        });
        let content_type = if openmetrics {
            OPENMETRICS_CONTENT_TYPE
        } else {
            PROMETHEUS_CONTENT_TYPE
        };
        match encoded.await {
            Ok(Ok(body)) => {
                let mut response = typed(StatusCode::OK, content_type, body);
                if gzip {
                    let gzip = HeaderValue::from_static("gzip");
                    response
                        .headers_mut()
                        .insert(header::CONTENT_ENCODING, gzip);
                }
                response
            }
            // A collector of the operator has panicked; the panic message is already in the log.
            Ok(Err(_)) | Err(_) => {
                let body = "the metrics cannot be encoded\n";
                text(StatusCode::INTERNAL_SERVER_ERROR, body)
            }
        }
    }
}

/// Compresses a text with gzip.
fn compress(text: &str) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes())?;
    encoder.finish()
}

/// Reports whether the client accepts a response that is compressed with gzip.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT_ENCODING).iter();
    let accepted = accepted.filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|choice| {
        let (coding, weight) = choice.split_once(';').unwrap_or((choice, ""));
        let weight = weight.trim().strip_prefix("q=");
        let is_excluded = weight.is_some_and(|weight| weight.parse() == Ok(0.0));
        coding.trim().eq_ignore_ascii_case("gzip") && !is_excluded
    })
}

/// Reports whether the client prefers OpenMetrics to Prometheus' text format. Without a preference
/// the response is in Prometheus' text format.
fn prefers_openmetrics(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter();
    let accepted = accepted.filter_map(|value| value.to_str().ok());
    let (mut openmetrics, mut plain) = (0.0_f64, 0.0_f64);
    for choice in accepted.flat_map(|value| value.split(',')) {
        let mut parts = choice.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let quality = parts.find_map(|part| part.strip_prefix("q="));
        let quality = quality.map_or(1.0, |quality| quality.parse().unwrap_or(0.0));
        match kind {
            "application/openmetrics-text" => openmetrics = openmetrics.max(quality),
            "text/plain" => plain = plain.max(quality),
            _ => {}
        }
    }
    openmetrics > 0.0 && openmetrics >= plain
}

#[cfg(test)]
mod tests;
