//! Metrics of requests, with client-go's names, so that existing dashboards work.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::{Method, Request};
use http_body::Body as _;
use kube::client::Body;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use tokio::time::Instant;
use tower::ServiceExt;

use super::middleware::{Middleware, Next, Outcome};
use super::{OnEndBody, boxed, host_of};
use crate::RequestInfo;

type Labels = Vec<(&'static str, String)>;
type Counters = Family<Labels, Counter>;
type Histograms = Family<Labels, Histogram, Buckets>;

/// Histogram buckets of durations, in seconds; client-go's values.
const SECONDS: &[f64] = &[
    0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0,
];
/// Histogram buckets of body sizes, in bytes; client-go's values.
const BYTES: &[f64] = &[
    64.0, 256.0, 512.0, 1024.0, 4096.0, 16384.0, 65536.0, 262144.0, 1048576.0, 4194304.0,
    16777216.0,
];

/// Metrics of a client's requests.
///
/// Counted per attempt: `rest_client_requests_total{code,method,host}` and
/// `rest_client_request_retries_total{code,verb,host}`. Measured per request, except for watches,
/// with the labels `{verb,host}`: `rest_client_request_duration_seconds`,
/// `rest_client_rate_limiter_duration_seconds`, `rest_client_request_size_bytes` and
/// `rest_client_response_size_bytes`. Clones share the same counters.
///
/// # Examples
/// ```
/// use opkit_client::Metrics;
/// use prometheus_client::registry::Registry;
///
/// let metrics = Metrics::default();
/// let mut registry = Registry::default();
/// metrics.register(&mut registry);
/// assert!(metrics.encode().ends_with("# EOF\n"));
/// ```
#[derive(Clone)]
pub struct Metrics {
    families: Arc<Families>,
}

struct Families {
    requests: Counters,
    retries: Counters,
    duration: Histograms,
    waits: Histograms,
    request_size: Histograms,
    response_size: Histograms,
}

#[derive(Clone)]
struct Buckets(&'static [f64]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let seconds = || Histograms::new_with_constructor(Buckets(SECONDS));
        let bytes = || Histograms::new_with_constructor(Buckets(BYTES));
        Self {
            families: Arc::new(Families {
                requests: Counters::default(),
                retries: Counters::default(),
                duration: seconds(),
                waits: seconds(),
                request_size: bytes(),
                response_size: bytes(),
            }),
        }
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics").finish_non_exhaustive()
    }
}

impl Metrics {
    /// Adds the metrics to a registry. The registry then includes earlier requests as well.
    pub fn register(&self, registry: &mut Registry) {
        let families = &self.families;
        let mut add = |name: &str, help: &str, family: &Histograms| {
            registry.register(name, help, family.clone());
        };
        add(
            "rest_client_request_duration_seconds",
            "Request latency in seconds, by verb and host",
            &families.duration,
        );
        add(
            "rest_client_rate_limiter_duration_seconds",
            "Client side rate limiter latency in seconds, by verb and host",
            &families.waits,
        );
        add(
            "rest_client_request_size_bytes",
            "Request size in bytes, by verb and host",
            &families.request_size,
        );
        add(
            "rest_client_response_size_bytes",
            "Response size in bytes, by verb and host",
            &families.response_size,
        );
        // The encoder appends `_total`.
        registry.register(
            "rest_client_requests",
            "Number of HTTP requests, by status code, method and host",
            families.requests.clone(),
        );
        registry.register(
            "rest_client_request_retries",
            "Number of request retries, by status code, verb and host",
            families.retries.clone(),
        );
    }

    /// Returns the metrics in the OpenMetrics text format.
    pub fn encode(&self) -> String {
        let mut registry = Registry::default();
        self.register(&mut registry);
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &registry);
        text
    }

    pub(super) fn waited(&self, method: &Method, host: &str, wait: Duration) {
        let waits = &self.families.waits;
        let labels = verb(method, host);
        waits.get_or_create(&labels).observe(wait.as_secs_f64());
    }

    pub(super) fn retried(&self, code: &str, method: &Method, host: &str) {
        let mut labels = verb(method, host);
        labels.insert(0, ("code", code.to_owned()));
        self.families.retries.get_or_create(&labels).inc();
    }
}

fn verb(method: &Method, host: &str) -> Labels {
    vec![("verb", method.to_string()), ("host", host.to_owned())]
}

/// Middleware that measures the duration and body sizes of each request. The duration includes all
/// attempts.
#[derive(Clone)]
pub(super) struct Measure(pub(super) Metrics);

impl Middleware for Measure {
    fn handle(&self, next: impl Next, request: Request<Body>) -> BoxFuture<'static, Outcome> {
        let metrics = self.0.clone();
        if RequestInfo::of(&request).is_watch() {
            return next.oneshot(request).boxed();
        }
        let labels = verb(request.method(), &host_of(request.uri()));
        if let Some(size) = request.body().size_hint().exact().filter(|size| *size > 0) {
            let family = &metrics.families.request_size;
            family.get_or_create(&labels).observe(size as f64);
        }
        async move {
            let start = Instant::now();
            let outcome = next.oneshot(request).await;
            let (families, elapsed) = (&metrics.families, start.elapsed());
            let duration = families.duration.get_or_create_owned(&labels);
            duration.observe(elapsed.as_secs_f64());
            let response_size = families.response_size.get_or_create_owned(&labels);
            Ok(outcome?.map(|body| {
                boxed(OnEndBody::new(body, move |bytes| {
                    response_size.observe(bytes as f64);
                }))
            }))
        }
        .boxed()
    }
}

/// Middleware that counts and logs each attempt to send a request.
#[derive(Clone)]
pub(super) struct CountAttempt(pub(super) Metrics);

impl Middleware for CountAttempt {
    fn handle(&self, next: impl Next, request: Request<Body>) -> BoxFuture<'static, Outcome> {
        let metrics = self.0.clone();
        let (method, uri) = (request.method().clone(), request.uri().clone());
        async move {
            let start = Instant::now();
            let outcome = next.oneshot(request).await;
            let code = match &outcome {
                Ok(response) => response.status().as_str().to_owned(),
                Err(_) => "<error>".to_owned(),
            };
            let elapsed = start.elapsed();
            tracing::debug!(%method, path = uri.path(), query = uri.query(), code, ?elapsed, "request");
            let labels = vec![
                ("code", code),
                ("method", method.to_string()),
                ("host", host_of(&uri).to_string()),
            ];
            metrics.families.requests.get_or_create(&labels).inc();
            outcome
        }
        .boxed()
    }
}
