//! `/metrics`: what is registered, for Prometheus.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use futures::FutureExt;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use opkit_client::RestClient;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tracing::info;

use crate::ServerError;
use crate::auth::Guard;
use crate::certificates::Certificates;
use crate::listen::{self, Answer, not_found, text, typed};
use crate::metrics::MetricsRegistry;
use crate::process::ProcessMetrics;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const PROMETHEUS: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Where a [`MetricsServer`] listens, and to whom it answers.
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
    /// Where to listen.
    pub address: SocketAddr,
    /// Whether it speaks TLS, and answers those only whom the cluster lets `get` the path
    /// `/metrics`. On by default on any address but loopback. In controller-runtime it is off by
    /// default; metrics tell the names of what is in a cluster, though, and how to disturb it.
    pub is_secure: bool,
    /// The directory with `tls.crt` and `tls.key`, which are read again when they change; without
    /// one it makes a certificate of its own.
    pub certificates: Option<PathBuf>,
}

impl MetricsServerOptions {
    /// On this address, protected unless it is loopback.
    pub fn new(address: SocketAddr) -> Self {
        Self {
            address,
            is_secure: !address.ip().is_loopback(),
            certificates: None,
        }
    }
}

/// Answers `/metrics`, in Prometheus' text format or in OpenMetrics, whichever is asked for,
/// compressed for those who take gzip.
///
/// Protected, it asks the API server who somebody is and whether they may `get` the nonResourceURL
/// `/metrics`: 401 without a token that is known, 403 without the permission, 500 if the API server
/// cannot be asked. The operator needs to be allowed to create TokenReviews and
/// SubjectAccessReviews, which `manifests` sees to.
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
    certificates: Option<Arc<Certificates>>,
}

impl MetricsServer {
    /// Reads or makes the certificate, and listens. Connections wait until it runs.
    ///
    /// # Errors
    /// When the certificate cannot be used, and when the address is in use or not of this machine.
    ///
    /// # Cancel safety
    /// May be dropped at any time.
    pub async fn listen(options: MetricsServerOptions) -> Result<Self, ServerError> {
        let certificates = match (options.is_secure, &options.certificates) {
            (false, _) => None,
            (true, Some(directory)) => Some(Certificates::read(directory)?),
            (true, None) => Some(Certificates::self_signed("metrics")?),
        };
        let (listener, address) = listen::bind("metrics", options.address).await?;
        Ok(Self {
            listener,
            address,
            certificates: certificates.map(Arc::new),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves `registry` until `stop`, after it has registered metrics of the process and of the
    /// certificate there; requests that are under way at the stop have 5 s to end. A protected
    /// server sends its TokenReviews and SubjectAccessReviews through `client`.
    ///
    /// # Errors
    /// When TLS cannot be set up.
    ///
    /// # Cancel safety
    /// Dropping the future ends all connections at once.
    pub async fn serve(
        &self,
        registry: MetricsRegistry,
        client: RestClient,
        stop: CancellationToken,
    ) -> Result<(), ServerError> {
        self.register(&registry);
        let mut tls: Option<TlsAcceptor> = None;
        let mut guard = None;
        if let Some(certificates) = &self.certificates {
            tls = Some(certificates.acceptor().map_err(ServerError::Tls)?);
            guard = Some(Guard::new(client));
        }
        let is_secure = guard.is_some();
        let scrape = Arc::new(Scrape { guard, registry });
        let handler: listen::Handler = Arc::new(move |request| {
            let scrape = scrape.clone();
            async move { scrape.answer(&request).await }.boxed()
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

/// Answers requests.
#[derive(Debug)]
struct Scrape {
    guard: Option<Guard>,
    registry: MetricsRegistry,
}

impl Scrape {
    async fn answer(&self, request: &Parts) -> Answer {
        let (method, path) = (&request.method, request.uri.path());
        if let Some(guard) = &self.guard
            && let Err(refusal) = guard.check(method, path, &request.headers).await
        {
            return refusal;
        }
        if path != "/metrics" {
            return not_found();
        }
        if !matches!(*method, Method::GET | Method::HEAD) {
            return text(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed\n");
        }
        let (registry, headers) = (self.registry.clone(), &request.headers);
        let (openmetrics, gzip) = (wants_openmetrics(headers), takes_gzip(headers));
        // Many series take a while to write down.
        let written = tokio::task::spawn_blocking(move || {
            let text = match openmetrics {
                true => registry.encode(),
                false => registry.encode_prometheus(),
            };
            match gzip {
                true => compressed(&text),
                false => Ok(text.into_bytes()),
            }
        });
        let content_type = if openmetrics { OPENMETRICS } else { PROMETHEUS };
        match written.await {
            Ok(Ok(body)) => {
                let mut answer = typed(StatusCode::OK, content_type, body);
                if gzip {
                    let gzip = HeaderValue::from_static("gzip");
                    answer.headers_mut().insert(header::CONTENT_ENCODING, gzip);
                }
                answer
            }
            // A collector of the user's that panics, which it will say itself.
            Ok(Err(_)) | Err(_) => {
                let said = "the metrics cannot be written\n";
                text(StatusCode::INTERNAL_SERVER_ERROR, said)
            }
        }
    }
}

fn compressed(text: &str) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text.as_bytes())?;
    encoder.finish()
}

/// Whether the answer may be compressed.
fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT_ENCODING).iter();
    let accepted = accepted.filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|choice| {
        let (coding, weight) = choice.split_once(';').unwrap_or((choice, ""));
        let weight = weight.trim().strip_prefix("q=");
        let is_refused = weight.is_some_and(|weight| weight.parse() == Ok(0.0));
        coding.trim().eq_ignore_ascii_case("gzip") && !is_refused
    })
}

/// Whether OpenMetrics is preferred to Prometheus' own format, which is the answer to those who do
/// not care.
fn wants_openmetrics(headers: &HeaderMap) -> bool {
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
