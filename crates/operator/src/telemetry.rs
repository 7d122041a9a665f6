//! Export of traces over OTLP: the span of each reconcile, and the operator's own spans within it.
//!
//! Spans are sent to `OTEL_EXPORTER_OTLP_ENDPOINT` (or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`), as
//! protobuf over HTTP; without these variables no spans are sent. OpenTelemetry's other variables
//! apply as well: headers, sampler, batches, resource attributes. OpenTelemetry's own HTTP clients
//! are not used, because they would be a second HTTP stack beside that of the Kubernetes client.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry::trace::TracerProvider;
use opentelemetry_http::{HttpClient, HttpError};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use tokio::runtime::Handle;
use tracing::warn;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

use crate::OperatorError;
use crate::arguments::LogFormat;
use crate::logging::is_terminal;

/// Environment variables that set the endpoint of the collector.
const ENDPOINTS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
];
/// Level of the spans that are sent; the log level has no influence.
const SPANS: LevelFilter = LevelFilter::INFO;
/// Time limit for sending one batch.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);
/// Size limit of the collector's response, which is small in practice.
const RESPONSE_BYTES: usize = 64 * 1024;
/// Time limit for sending the last batch at shutdown.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// Trace exporter.
#[derive(Debug)]
pub(crate) struct Telemetry {
    provider: SdkTracerProvider,
}

impl Telemetry {
    /// Creates an exporter from the environment, or returns `None` if no endpoint is set.
    pub(crate) fn from_env(operator: &str) -> Result<Option<Self>, OperatorError> {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        if !ENDPOINTS.iter().any(|name| is_set(name)) {
            return Ok(None);
        }
        let named = is_set("OTEL_SERVICE_NAME");
        Self::new((!named).then_some(operator), None).map(Some)
    }

    /// Creates an exporter. The environment sets the service name or the endpoint if the argument
    /// is `None`.
    fn new(service: Option<&str>, endpoint: Option<String>) -> Result<Self, OperatorError> {
        let exporter = SpanExporter::builder().with_http();
        let sender = Sender::new().map_err(|cause| OperatorError::Traces(cause.into()))?;
        let mut exporter = exporter.with_http_client(sender);
        if let Some(endpoint) = endpoint {
            exporter = exporter.with_endpoint(endpoint);
        }
        let exporter = exporter.build();
        let exporter = exporter.map_err(|cause| OperatorError::Traces(cause.into()))?;
        let mut resource = Resource::builder();
        if let Some(service) = service {
            resource = resource.with_service_name(service.to_owned());
        }
        let provider = SdkTracerProvider::builder()
            .with_resource(resource.build())
            .with_batch_exporter(exporter)
            .build();
        Ok(Self { provider })
    }

    /// Starts logging and tracing. A subscriber that is already installed, for example by a test,
    /// stays.
    pub(crate) fn start(&self, filter: Targets, format: LogFormat) {
        let traces = tracing_subscriber::registry().with(self.layer());
        let logs = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
        let _ = match format {
            LogFormat::Text => {
                let logs = logs.with_ansi(is_terminal());
                traces.with(logs.with_filter(filter)).try_init()
            }
            LogFormat::Json => {
                let logs = logs.json().flatten_event(true);
                traces.with(logs.with_filter(filter)).try_init()
            }
        };
    }

    fn layer<S>(&self) -> impl Layer<S> + use<S>
    where
        S: tracing::Subscriber + for<'a> LookupSpan<'a>,
    {
        let tracer: SdkTracer = self.provider.tracer("opkit");
        tracing_opentelemetry::layer()
            .with_tracer(tracer)
            .with_filter(SPANS)
    }

    /// Sends the spans that are still buffered.
    pub(crate) async fn shut_down(self) {
        // The shutdown blocks on a thread that waits for this runtime.
        let ended =
            tokio::task::spawn_blocking(move || self.provider.shutdown_with_timeout(FLUSH_TIMEOUT));
        if let Ok(Err(error)) = ended.await {
            warn!(%error, "traces were not sent");
        }
    }
}

/// HTTP client that sends batches on the operator's runtime; the exporter calls it from another
/// thread.
#[derive(Clone)]
struct Sender {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    runtime: Handle,
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender").finish_non_exhaustive()
    }
}

impl Sender {
    fn new() -> Result<Self, std::io::Error> {
        let connector = HttpsConnectorBuilder::new().with_native_roots()?;
        let connector = connector.https_or_http().enable_http1().build();
        Ok(Self {
            client: Client::builder(TokioExecutor::new()).build(connector),
            runtime: Handle::current(),
        })
    }

    async fn send(self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let sent = async {
            let (head, body) = self
                .client
                .request(request.map(Full::new))
                .await?
                .into_parts();
            let body = Limited::new(body, RESPONSE_BYTES).collect().await?;
            Ok(Response::from_parts(head, body.to_bytes()))
        };
        tokio::time::timeout(SEND_TIMEOUT, sent).await?
    }
}

impl HttpClient for Sender {
    fn send_bytes<'a, 'b>(
        &'a self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'b>>
    where
        'a: 'b,
        Self: 'b,
    {
        let sent = self.runtime.spawn(self.clone().send(request));
        Box::pin(async { sent.await? })
    }
}

#[cfg(test)]
mod tests;
