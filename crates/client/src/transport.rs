//! The HTTP stack inside a [`kube::Client`]: every request of opkit, and every one of a user's own
//! [`kube::Api`], passes it.
//!
//! From the outside in: base URL, decompression, user agent, warnings, measuring, the rate limit,
//! retries, the [effect seam](crate::Seam) where one is installed, credentials, the last check of a
//! [fence](crate::Fence), the connections. What stands in the middle can be put around any service,
//! such as an API server in the same process: [`ClientOptions::layer`].
//!
//! Over TLS the connections speak HTTP/2 where the server does, as client-go's do: watches and
//! other requests share them. Requests that ask for another protocol (exec, attach, port-forward)
//! have connections of their own in HTTP/1.1, which is the version that can change its protocol.
//! kube's layers for TLS, credentials and impersonation are used as they are. Its
//! [`valid_until`](kube::Client::valid_until) is not set: the expiry of a certificate that an exec
//! plugin gave is private to kube.

mod body;
mod dial;
mod metrics;
mod ratelimit;
mod retry;
mod step;
mod warnings;
mod wire;

use std::sync::Arc;

use http::{HeaderValue, Request, header};
use kube::client::{Body, ConfigExt};
use tower::util::BoxCloneService;
use tower::{BoxError, Layer, Service, ServiceBuilder, ServiceExt};

pub use self::body::AnswerBody;
pub(crate) use self::body::{Answer, TailedBody, boxed};
pub use self::metrics::Metrics;
use self::metrics::{CountAttempt, Measure};
use self::ratelimit::Limiter;
pub use self::ratelimit::RateLimit;
use self::retry::Retry;
pub use self::retry::RetryOptions;
use self::step::StepLayer;
pub(crate) use self::step::{Next, Outcome, Step};
use self::warnings::SurfaceWarnings;
pub use self::warnings::{Warning, Warnings};
use crate::fence::LastCheck;
use crate::{ConnectError, SeamLayer};

/// How a client sends. The default is what an operator wants: no rate limit (the server's priority
/// and fairness does that, as in controller-runtime since 0.21), retries as client-go's, gzip,
/// HTTP/2 over TLS, warnings logged once.
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
    /// How many requests a second; none for as many as come.
    pub rate_limit: Option<RateLimit>,
    /// When a request is sent again.
    pub retry: RetryOptions,
    /// Whether answers may be compressed; those of watches never are. A kubeconfig that says
    /// `disable-compression` wins.
    pub gzip: bool,
    /// Whether connections may speak HTTP/2; without TLS they never do.
    pub http2: bool,
    /// What is counted, and where.
    pub metrics: Metrics,
    /// What happens to warnings of the server.
    pub warnings: Warnings,
    /// The effect seam; not there costs nothing.
    pub seam: Option<SeamLayer>,
    /// The `User-Agent`. Its part before the slash is the field manager of writes that name none.
    pub user_agent: String,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            rate_limit: None,
            retry: RetryOptions::default(),
            gzip: true,
            http2: true,
            metrics: Metrics::default(),
            warnings: Warnings::default(),
            seam: None,
            user_agent: user_agent(),
        }
    }
}

/// A service with the layers of [`ClientOptions`] around it.
pub type LayeredService = BoxCloneService<Request<Body>, http::Response<AnswerBody>, BoxError>;

impl ClientOptions {
    /// A client for the server that `config` describes. No request is sent.
    ///
    /// # Errors
    /// When no TLS, credentials or proxy can be made of it.
    pub fn client(self, config: kube::Config) -> Result<kube::Client, ConnectError> {
        let server = config.cluster_url.to_string();
        let namespace = config.default_namespace.clone();
        let service = self
            .service(config)
            .map_err(|cause| ConnectError::Client { server, cause })?;
        Ok(kube::Client::new(service, namespace))
    }

    /// A client of `service`, such as an API server in this process, with the same layers as one
    /// that connects.
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

    /// Puts the layers of these options around `service`: gzip, warnings, metrics, rate limit,
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
            .map_response(|answer: http::Response<B>| answer.map(boxed))
            .map_err(Into::into);
        let service = StepLayer(LastCheck).layer(service);
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
            .layer(StepLayer(SurfaceWarnings(self.warnings)))
            .layer(StepLayer(Measure(self.metrics.clone())))
            .option_layer(
                self.rate_limit
                    .map(|limit| StepLayer(Limiter::new(limit, self.metrics.clone()))),
            )
            .layer(StepLayer(Retry::new(self.retry, self.metrics.clone())))
            .layer(StepLayer(CountAttempt(self.metrics)))
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
        let unzip = tower_http::decompression::DecompressionLayer::new();
        let service = unzip
            .layer(service)
            .map_request(plain_watch)
            .map_response(|answer: http::Response<_>| answer.map(boxed));
        BoxCloneService::new(service)
    }

    fn service(mut self, config: kube::Config) -> Result<LayeredService, Box<kube::Error>> {
        self.gzip &= !config.disable_compression;
        let wire = wire::connect(&config, self.http2)?;
        let wire = ServiceBuilder::new()
            .option_layer(config.auth_layer().map_err(Box::new)?)
            .layer(config.extra_headers_layer().map_err(Box::new)?)
            .service(wire)
            .map_err(BoxError::from);
        let base = config.base_uri_layer();
        let service = self.layers(BoxCloneService::new(wire));
        Ok(BoxCloneService::new(base.layer(service)))
    }
}

/// Servers from 1.37 on compress each event of a watch by itself, and the decompression reads only
/// the first. A compressed watch would also hold events back.
fn plain_watch(mut request: Request<Body>) -> Request<Body> {
    if crate::RequestInfo::of(&request).is_watch() {
        let headers = request.headers_mut();
        headers
            .entry(header::ACCEPT_ENCODING)
            .or_insert(HeaderValue::from_static("identity"));
    }
    request
}

/// The program's name, as client-go's begins, so that what it writes is owned by a name that says
/// something.
fn user_agent() -> String {
    let program = std::env::current_exe().ok();
    let program = program.as_deref().and_then(|path| path.file_name());
    let program = program.map(|name| name.to_string_lossy().into_owned());
    let (os, architecture) = (std::env::consts::OS, std::env::consts::ARCH);
    let version = env!("CARGO_PKG_VERSION");
    let program = program.unwrap_or_else(|| "opkit".to_owned());
    format!("{program}/v0.0.0 ({os}/{architecture}) opkit/{version}")
}

/// The authority of a request, for the label `host`.
fn host_of(uri: &http::Uri) -> Arc<str> {
    uri.authority()
        .map(|authority| authority.as_str())
        .unwrap_or_default()
        .into()
}

#[cfg(test)]
mod tests;
