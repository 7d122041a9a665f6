//! The HTTP stack inside a [`kube::Client`]. Every request passes through this stack, whether opkit
//! or a user's own [`kube::Api`] sends the request.
//!
//! The layers, outermost first: base URL, decompression, user agent, warnings, metrics, rate limit,
//! retries, the time limit, the [effect seam](crate::Seam) if one is installed, credentials, the
//! last check of a [fence](crate::Fence), the connections. [`ClientOptions::layer`] puts the layers
//! from decompression to the fence, without credentials, around any other service, such as an API
//! server in the same process.
//!
//! Over TLS, connections use HTTP/2 if the server supports it, as in client-go. All requests,
//! watches included, share these connections. Requests that upgrade to another protocol (exec,
//! attach, port-forward) use separate HTTP/1.1 connections, because only HTTP/1.1 supports the
//! upgrade. kube's layer for impersonation is used unchanged. TLS and credentials are opkit's own,
//! because kube runs credential plugins while a client is created, and reads certificates once.

mod body;
mod dial;
mod metrics;
mod middleware;
mod ratelimit;
mod retry;
mod timeout;
mod tls;
mod warnings;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Request, header};
use kube::client::{Body, ConfigExt};
use tower::util::BoxCloneService;
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt};

pub use self::body::ResponseBody;
pub(crate) use self::body::{HttpResponse, OnEndBody, boxed};
pub use self::metrics::Metrics;
use self::metrics::{CountAttempt, Measure};
use self::middleware::MiddlewareLayer;
pub(crate) use self::middleware::{Middleware, Next, Outcome};
use self::ratelimit::Limiter;
pub use self::ratelimit::RateLimit;
use self::retry::Retry;
pub use self::retry::RetryOptions;
use self::timeout::Timeout;
use self::warnings::ReportWarnings;
pub use self::warnings::{Warning, Warnings};
#[cfg(feature = "oidc")]
pub(crate) use self::wire::{Wire, connect};
use crate::credentials::Credentials;
use crate::fence::LastCheck;
use crate::{ConnectError, SeamLayer};

/// Settings of a client's HTTP stack. The defaults suit an operator: as many retries as client-go,
/// gzip, HTTP/2 over TLS, each warning logged once, and no rate limit. As in controller-runtime
/// since 0.21, the server's API Priority and Fairness limits requests instead.
///
/// # Examples
/// ```
/// use opkit_client::{ClientOptions, RateLimit};
///
/// let mut options = ClientOptions::default();
/// options.rate_limit = Some(RateLimit { qps: 20.0, burst: 30 });
/// let metrics = options.metrics.clone();
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let client = options.in_process(
///     tower::service_fn(|_: http::Request<kube::client::Body>| async {
///         Ok::<_, std::convert::Infallible>(http::Response::new(kube::client::Body::empty()))
///     }),
///     "default",
/// );
/// client.request_text(http::Request::get("/version").body(vec![]).unwrap()).await.unwrap();
/// # });
/// assert!(metrics.encode().contains("rest_client_requests_total"));
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ClientOptions {
    /// Limit of requests per second. `None` sets no limit.
    pub rate_limit: Option<RateLimit>,
    /// Rules for retrying a request.
    pub retry: RetryOptions,
    /// Time limit of each attempt to send a request, including the whole response. `None` sets no
    /// limit: opkit's clients limit each request to 60 s, and watches not at all.
    pub request_timeout: Option<Duration>,
    /// Whether the server may compress responses. Responses to watches are never compressed. A
    /// kubeconfig with `disable-compression` overrides this setting.
    pub gzip: bool,
    /// Whether connections may use HTTP/2. Connections without TLS always use HTTP/1.1.
    pub http2: bool,
    /// Metrics in which requests are counted.
    pub metrics: Metrics,
    /// Handling of the warnings that the server sends.
    pub warnings: Warnings,
    /// Layer of a [`Seam`](crate::Seam), which records requests and injects faults. `None` adds no
    /// layer and no cost.
    pub seam: Option<SeamLayer>,
    /// `User-Agent` header. The part before the slash is the default field manager of writes.
    pub user_agent: String,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            rate_limit: None,
            retry: RetryOptions::default(),
            request_timeout: None,
            gzip: true,
            http2: true,
            metrics: Metrics::default(),
            warnings: Warnings::default(),
            seam: None,
            user_agent: user_agent(),
        }
    }
}

/// A boxed service with the layers of [`ClientOptions`] around it.
pub type LayeredService = BoxCloneService<Request<Body>, http::Response<ResponseBody>, BoxError>;

impl ClientOptions {
    /// Creates a client for the server in `config`. Sends no request.
    ///
    /// # Errors
    /// Fails if the TLS, credential or proxy settings of `config` are not valid.
    pub fn client(self, config: kube::Config) -> Result<kube::Client, ConnectError> {
        let server = config.cluster_url.to_string();
        let namespace = config.default_namespace.clone();
        let service = self
            .service(config)
            .map_err(|cause| ConnectError::Client { server, cause })?;
        Ok(kube::Client::new(service, namespace))
    }

    /// Creates a client that sends its requests to `service`, such as an API server in this
    /// process, through the same layers as a client that connects to a server.
    pub fn in_process<S, B>(self, service: S, namespace: &str) -> kube::Client
    where
        S: Service<Request<Body>, Response = http::Response<B>> + Clone + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        kube::Client::new(self.layer(service), namespace)
    }

    /// Wraps `service` in the layers of these options: gzip, warnings, metrics, rate limit,
    /// retries, seam.
    pub fn layer<S, B>(self, service: S) -> LayeredService
    where
        S: Service<Request<Body>, Response = http::Response<B>> + Clone + Send + 'static,
        S::Future: Send + 'static,
        S::Error: Into<BoxError>,
        B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let service = service
            .map_response(|response: http::Response<B>| response.map(boxed))
            .map_err(Into::into);
        let service = MiddlewareLayer(LastCheck).layer(service);
        self.layers(BoxCloneService::new(service))
    }

    fn layers(self, innermost: LayeredService) -> LayeredService {
        let agent = HeaderValue::from_str(&self.user_agent)
            .unwrap_or_else(|_| HeaderValue::from_static("opkit"));
        let service = match &self.seam {
            Some(seam) => BoxCloneService::new(seam.layer(innermost)),
            None => innermost,
        };
        let service = ServiceBuilder::new()
            .layer(MiddlewareLayer(ReportWarnings(self.warnings)))
            .layer(MiddlewareLayer(Measure(self.metrics.clone())))
            .option_layer(
                self.rate_limit
                    .map(|limit| MiddlewareLayer(Limiter::new(limit, self.metrics.clone()))),
            )
            .layer(MiddlewareLayer(Retry::new(
                self.retry,
                self.metrics.clone(),
            )))
            .layer(MiddlewareLayer(CountAttempt(self.metrics)))
            .option_layer(
                self.request_timeout
                    .map(|limit| MiddlewareLayer(Timeout(limit))),
            )
            .service(service);
        let service = service.map_err(BoxError::from);
        let service = service.map_request(move |mut request: Request<Body>| {
            let headers = request.headers_mut();
            headers.entry(header::USER_AGENT).or_insert(agent.clone());
            request
        });
        if !self.gzip {
            return BoxCloneService::new(service);
        }
        let decompression = tower_http::decompression::DecompressionLayer::new();
        let service = decompression
            .layer(service)
            .map_request(request_plain_watch)
            .map_response(|response: http::Response<_>| response.map(boxed));
        BoxCloneService::new(service)
    }

    fn service(mut self, config: kube::Config) -> Result<LayeredService, BoxError> {
        self.gzip &= !config.disable_compression;
        let credentials = Credentials::new(&config.auth_info)?;
        let wire = wire::connect(&config, &credentials, self.http2)?;
        let authorize = (!credentials.is_without_header()).then_some(MiddlewareLayer(credentials));
        let wire = ServiceBuilder::new()
            .option_layer(authorize)
            .layer(config.extra_headers_layer()?)
            .service(wire);
        let base = config.base_uri_layer();
        let service = self.layers(BoxCloneService::new(wire));
        Ok(BoxCloneService::new(base.layer(service)))
    }
}

/// Asks for an uncompressed response if `request` is a watch.
///
/// Servers from 1.37 on compress each event of a watch separately, and the decompression layer
/// reads only the first event. A compressed watch would also delay events.
fn request_plain_watch(mut request: Request<Body>) -> Request<Body> {
    if crate::RequestInfo::of(&request).is_watch() {
        let headers = request.headers_mut();
        headers
            .entry(header::ACCEPT_ENCODING)
            .or_insert(HeaderValue::from_static("identity"));
    }
    request
}

/// Returns the default `User-Agent`. As in client-go, the value starts with the name of the
/// program, so that the default field manager of writes identifies the program.
fn user_agent() -> String {
    let program = std::env::current_exe().ok();
    let program = program.as_deref().and_then(|path| path.file_name());
    let program = program.map(|name| name.to_string_lossy().into_owned());
    let (os, architecture) = (std::env::consts::OS, std::env::consts::ARCH);
    let version = env!("CARGO_PKG_VERSION");
    let program = program.unwrap_or_else(|| "opkit".to_owned());
    format!("{program}/v0.0.0 ({os}/{architecture}) opkit/{version}")
}

/// Returns the authority of a request's URI, the value of the metric label `host`.
fn host_of(uri: &http::Uri) -> Arc<str> {
    uri.authority()
        .map(|authority| authority.as_str())
        .unwrap_or_default()
        .into()
}

#[cfg(test)]
mod tests;
