//! Calls of webhooks that authenticate or authorize requests.
//!
//! A webhook is described by a file in the format of a kubeconfig: the cluster is the webhook, and
//! the user has the credentials of the API server.

mod client;
mod config;
mod go_error;
mod trust;

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;

use crate::error::StartError;
pub(crate) use client::{WebhookClients, roots};

/// Number of attempts to call a webhook that fails with a transient error, as in Kubernetes.
const ATTEMPTS: u32 = 5;
/// Time between the first two attempts. Each further pause is longer by half.
const BACKOFF: Duration = Duration::from_millis(500);
/// Maximum length of a response, in bytes.
const RESPONSE_MAX: usize = 1024 * 1024;

/// A webhook.
pub(crate) struct Webhook {
    uri: Uri,
    authorization: Option<HeaderValue>,
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    /// Maximum time of one attempt.
    timeout: Duration,
}

/// The result of an attempt that failed.
struct Failure {
    message: String,
    is_transient: bool,
}

impl Webhook {
    /// Creates a webhook from the text of its configuration file.
    pub(crate) fn new(config: &str, timeout: Duration) -> Result<Self, StartError> {
        let config = config::parse(config).map_err(|cause| StartError::Option {
            option: "webhook configuration",
            cause,
        })?;
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(config.tls)
            .https_or_http()
            .enable_http1()
            .build();
        Ok(Self {
            uri: config.uri,
            authorization: config.authorization,
            client: Client::builder(TokioExecutor::new()).build(connector),
            timeout,
        })
    }

    /// Sends a review to the webhook, and returns the review in the response. Retries after
    /// transient errors.
    pub(crate) async fn review(&self, review: &Value) -> Result<Value, String> {
        let body = Bytes::from(review.to_string());
        let mut pause = BACKOFF;
        for attempt in 1.. {
            match self.send(body.clone()).await {
                Ok(review) => return Ok(review),
                Err(failure) if failure.is_transient && attempt < ATTEMPTS => {
                    tracing::debug!(uri = %self.uri, error = failure.message, "webhook failed");
                }
                Err(failure) => return Err(failure.message),
            }
            tokio::time::sleep(pause).await;
            pause = pause.mul_f64(1.5);
        }
        Err("the webhook was not called".to_owned())
    }

    async fn send(&self, body: Bytes) -> Result<Value, Failure> {
        let uri = &self.uri;
        let fail = |is_transient| {
            move |error: String| Failure {
                message: format!("Post \"{uri}\": {error}"),
                is_transient,
            }
        };
        let mut request = Request::post(uri.clone())
            .header(CONTENT_TYPE, "application/json")
            .header("accept", "application/json");
        if let Some(authorization) = &self.authorization {
            request = request.header(AUTHORIZATION, authorization);
        }
        let request = request.body(Full::new(body));
        let request = request.map_err(|error| fail(false)(error.to_string()))?;
        let exchange = async {
            let response = self.client.request(request).await;
            // The cause of a legacy client error is in its source.
            let response = response.map_err(|error| fail(error.is_connect())(chain(&error)))?;
            let status = response.status();
            let body = Limited::new(response.into_body(), RESPONSE_MAX);
            let body = body.collect().await;
            let body = body.map_err(|error| fail(true)(error.to_string()))?;
            Ok((status, body.to_bytes()))
        };
        let exchanged = tokio::time::timeout(self.timeout, exchange).await;
        let (status, body) = exchanged
            .unwrap_or_else(|_| Err(fail(false)("context deadline exceeded".to_owned())))?;
        if !status.is_success() {
            let is_transient = matches!(
                status,
                StatusCode::INTERNAL_SERVER_ERROR
                    | StatusCode::GATEWAY_TIMEOUT
                    | StatusCode::TOO_MANY_REQUESTS
            );
            return Err(fail(is_transient)(format!("the response is {status}")));
        }
        serde_json::from_slice(&body)
            .map_err(|error| fail(false)(format!("the response is not JSON: {error}")))
    }
}

impl fmt::Debug for Webhook {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Webhook")
            .field("uri", &self.uri)
            .finish_non_exhaustive()
    }
}

/// Returns the messages of an error and its causes.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    let texts: Vec<String> = causes.map(ToString::to_string).collect();
    texts.join(": ")
}
