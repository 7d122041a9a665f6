//! The paths of the webhook server, without a socket.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use opkit_controller::RunContext;
use opkit_servers::BodyError;
use tokio::time::Instant;

use crate::authentication::AuthenticationWebhook;
use crate::authorization::AuthorizationWebhook;
use crate::builder::AnyWebhook;
use crate::conversion::ConversionWebhook;
use crate::handler::{Call, ErasedHandler, Services};
use crate::metrics::{PathMetrics, WebhookMetrics};

/// Time limit of a request that has no parameter `timeout`.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
/// Largest time limit of a request: the API server waits no longer for a webhook.
const TIMEOUT_MAX: Duration = Duration::from_secs(30);

/// All webhooks of an operator, by path. [`respond`](Self::respond) returns the response to an HTTP
/// request; a [`WebhookServer`](crate::WebhookServer) calls it for requests over HTTPS, and a test
/// without a socket.
#[derive(Debug)]
pub struct WebhookRouter {
    routes: HashMap<String, Route>,
    services: Arc<Services>,
    pub(crate) metrics: WebhookMetrics,
}

#[derive(Debug)]
struct Route {
    handler: Arc<dyn ErasedHandler>,
    metrics: PathMetrics,
}

/// Webhooks of an operator, before the operator runs.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct WebhookSet {
    /// Admission webhooks.
    pub admission: Vec<AnyWebhook>,
    /// The authentication webhook.
    pub authentication: Option<AuthenticationWebhook>,
    /// The authorization webhook.
    pub authorization: Option<AuthorizationWebhook>,
    /// The conversion webhook.
    pub conversion: Option<ConversionWebhook>,
}

impl WebhookSet {
    /// Reports whether there is no webhook.
    pub fn is_empty(&self) -> bool {
        let Self {
            admission,
            authentication,
            authorization,
            conversion,
        } = self;
        admission.is_empty()
            && authentication.is_none()
            && authorization.is_none()
            && conversion.is_none()
    }

    /// Checks everything that can be checked without a cluster.
    ///
    /// # Errors
    /// A sentence about the webhook that is not valid, or about two webhooks with the same path.
    pub fn check(&self) -> Result<(), String> {
        let mut taken = std::collections::BTreeSet::new();
        for webhook in &self.admission {
            webhook.check()?;
            for path in webhook.paths() {
                if let Some(path) = taken.replace(path) {
                    return Err(format!(
                        "two webhooks have the path {path}: give one of them another name with .named(..)"
                    ));
                }
            }
        }
        Ok(())
    }

    /// Returns the kinds and states that all webhooks read.
    pub fn reads(&self) -> opkit_controller::ReadDeclarations {
        let mut all = opkit_controller::ReadDeclarations::default();
        let admission = self.admission.iter().map(AnyWebhook::reads);
        let authentication = self.authentication.iter().map(|it| it.reads());
        let authorization = self.authorization.iter().map(|it| it.reads());
        for reads in admission.chain(authentication).chain(authorization) {
            all.extend(reads);
        }
        all
    }

    fn handlers(self) -> Vec<(String, Arc<dyn ErasedHandler>)> {
        let admission = self.admission.into_iter();
        let mut handlers: Vec<_> = admission.flat_map(AnyWebhook::into_handlers).collect();
        if let Some(webhook) = self.authentication {
            handlers.push((AuthenticationWebhook::PATH.to_owned(), Arc::new(webhook)));
        }
        if let Some(webhook) = self.authorization {
            handlers.push((AuthorizationWebhook::PATH.to_owned(), Arc::new(webhook)));
        }
        if let Some(webhook) = self.conversion {
            handlers.push((ConversionWebhook::PATH.to_owned(), Arc::new(webhook)));
        }
        handlers
    }
}

impl WebhookRouter {
    /// Creates the router of a running operator, and registers its metrics. The caches of the kinds
    /// that the webhooks read are started.
    pub fn new(webhooks: WebhookSet, run: RunContext) -> Self {
        let router = Self::with_services(webhooks, Services::new(run.clone()));
        router.metrics.register(run.metrics());
        router
    }

    pub(crate) fn with_services(webhooks: WebhookSet, services: Services) -> Self {
        let metrics = WebhookMetrics::default();
        let routes = webhooks.handlers().into_iter().map(|(path, handler)| {
            let route = Route {
                handler,
                metrics: metrics.path(&path),
            };
            (path, route)
        });
        Self {
            routes: routes.collect(),
            services: Arc::new(services),
            metrics,
        }
    }

    /// Returns the maximum size of the body of a request to `path`; zero for an unknown path.
    pub(crate) fn max_bytes(&self, path: &str) -> usize {
        let route = self.routes.get(path);
        route.map_or(0, |route| route.handler.max_bytes())
    }

    /// Returns the response to a request whose body was read completely.
    ///
    /// # Cancel safety
    /// Dropping the future ends the user's functions at their next await.
    pub async fn respond(&self, request: Request<Bytes>) -> Response<Bytes> {
        let (parts, body) = request.into_parts();
        self.respond_to(parts, Ok(body)).await
    }

    /// Returns the response to a request, whose body may not have been read. As in
    /// controller-runtime, the response to a request that is not valid has the HTTP status 200, and
    /// the error is in the review.
    pub(crate) async fn respond_to(
        &self,
        parts: Parts,
        body: Result<Bytes, BodyError>,
    ) -> Response<Bytes> {
        let Some(route) = self.routes.get(parts.uri.path()) else {
            return text(StatusCode::NOT_FOUND, "404 page not found\n");
        };
        let started = Instant::now();
        let _in_flight = route.metrics.start();
        let response = self.respond_on(route, &parts, body).await;
        let code = response.status().as_u16();
        route.metrics.observe(code, started.elapsed());
        response
    }

    async fn respond_on(
        &self,
        route: &Route,
        parts: &Parts,
        body: Result<Bytes, BodyError>,
    ) -> Response<Bytes> {
        if parts.method != Method::POST {
            return text(StatusCode::METHOD_NOT_ALLOWED, "Method Not Allowed\n");
        }
        let handler = &route.handler;
        let refuse = |code: u16, message: String| {
            tracing::warn!(path = parts.uri.path(), message, "refused a bad request");
            json(handler.refuse(code, &message))
        };
        let limit = handler.max_bytes();
        let body = match body {
            Ok(body) if body.is_empty() => return refuse(400, "request body is empty".to_owned()),
            Ok(body) if body.len() < limit => body,
            Ok(_) | Err(BodyError::TooLarge { .. }) => {
                return refuse(
                    413,
                    format!("request entity is too large; limit is {limit} bytes"),
                );
            }
            Err(error) => return refuse(400, error.to_string()),
        };
        let content_type = parts.headers.get(header::CONTENT_TYPE);
        let content_type = content_type.map(|it| String::from_utf8_lossy(it.as_bytes()));
        let content_type = content_type.unwrap_or_default();
        if content_type != "application/json" {
            let message = format!("contentType={content_type}, expected application/json");
            return refuse(400, message);
        }
        let call = Call {
            timeout: timeout_of(parts.uri.query().unwrap_or_default()),
            services: self.services.clone(),
            metrics: self.metrics.clone(),
        };
        json(handler.clone().handle(body, call).await)
    }
}

/// Returns the time that the API server waits for the response, which it sends as `timeout=10s`.
fn timeout_of(query: &str) -> Duration {
    let mut parameters = form_urlencoded::parse(query.as_bytes());
    let timeout = parameters.find(|(name, _)| name == "timeout");
    let seconds = timeout.and_then(|(_, value)| value.strip_suffix('s')?.parse::<u64>().ok());
    match seconds {
        Some(seconds) if seconds > 0 => Duration::from_secs(seconds).min(TIMEOUT_MAX),
        _ => DEFAULT_TIMEOUT,
    }
}

fn json(body: Bytes) -> Response<Bytes> {
    typed(StatusCode::OK, "application/json", body)
}

fn text(status: StatusCode, body: &'static str) -> Response<Bytes> {
    typed(
        status,
        "text/plain; charset=utf-8",
        Bytes::from_static(body.as_bytes()),
    )
}

fn typed(status: StatusCode, content_type: &'static str, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let value = HeaderValue::from_static(content_type);
    response.headers_mut().insert(header::CONTENT_TYPE, value);
    response
}
