//! The tower service that a `kube::Client` or the HTTPS front sends requests to.
//!
//! The service authenticates the caller, reads the body and finds the target of the request. Then
//! [`verbs`] executes the request.

use std::convert::Infallible;
use std::future::Future;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Uri, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use opkit_apimachinery::identity::ResourcePath;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::aggregator::Origin;
use crate::audit::{Audit, RequestAudit};
use crate::authentication::{Identity, Peer};
use crate::authorization::Attributes;
use crate::kinds::NotServed;
use crate::negotiation::Media;
use crate::registry::Registry;
use crate::request::{Request, header_text};
use crate::response::{self, BoxError, HttpResponse, Response, ResponseBody};
use crate::status::{ApiError, ApiResult};
use crate::target::Target;
use crate::{aggregator, denials, discovery, openapi, verbs, watch};

/// Maximum length of a request body in bytes: 3 MiB, as in Kubernetes.
const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// The state that all connections and controllers of a server share.
#[derive(Debug)]
pub(crate) struct ServiceState {
    pub(crate) registry: Arc<Registry>,
    pub(crate) openapi: openapi::Cache,
    pub(crate) denied: denials::DeniedRequests,
    pub(crate) audit: Audit,
    /// The first address at which the server listens.
    pub(crate) address: OnceLock<SocketAddr>,
    /// Cancelled when the server stops.
    pub(crate) stop: CancellationToken,
}

impl ServiceState {
    /// Returns the address of the server: the first at which it listens, or the name of its
    /// Service.
    fn address(&self) -> String {
        match self.address.get() {
            Some(address) => address.to_string(),
            None => "kubernetes.default.svc".to_owned(),
        }
    }
}

/// The API as a tower service, for one caller.
///
/// A `kube::Client` that is created with this service needs no socket.
#[derive(Clone, Debug)]
pub struct Service {
    pub(crate) shared: Arc<ServiceState>,
    pub(crate) peer: Peer,
    /// Address of the client. `None` for a caller in this process.
    pub(crate) source: Option<IpAddr>,
}

impl<B> tower::Service<http::Request<B>> for Service
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = http::Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let audit = service.shared.audit.begin(&parts, service.source);
            let response = service.respond(&parts, body, &audit).await;
            let response = response.unwrap_or_else(|error| {
                audit.failed(&error);
                let accept = header_text(&parts.headers, header::ACCEPT);
                response::failure(&error, Media::of_error(accept))
            });
            Ok(audit.respond(response))
        })
    }
}

impl Service {
    /// Returns the response to a request. The body is read only if the caller may execute the
    /// request.
    async fn respond<B>(
        &self,
        parts: &Parts,
        body: B,
        audit: &RequestAudit,
    ) -> ApiResult<HttpResponse>
    where
        B: http_body::Body + Send + 'static,
        B::Data: Send,
        B::Error: Into<BoxError>,
    {
        if let Some(uri) = watch_uri(&parts.uri) {
            let mut parts = parts.clone();
            parts.uri = uri;
            return Box::pin(self.respond(&parts, body, audit)).await;
        }
        let registry = &self.shared.registry;
        let attributes = Attributes::of_request(&parts.method, &parts.uri);
        let identity = self.admit(parts, &attributes, audit).await?;
        let path = parts.uri.path();
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        if let ["readyz" | "livez" | "healthz", ..] = segments.as_slice() {
            return Ok(response::text(200, "ok"));
        }
        if let Some(route) = registry.aggregator.route(&segments) {
            let origin = Origin {
                user: &identity,
                audit_id: audit.id(),
                source: self.source,
            };
            return aggregator::forward(registry, &route, parts, body, origin).await;
        }
        let body = read(body).await?;
        // As on a real server, the list of groups is returned for every method.
        let is_described = parts.method == Method::GET || matches!(segments.as_slice(), ["apis"]);
        match self.describe(parts, &segments) {
            Some(response) if is_described => return Ok(response),
            Some(_) if segments == ["version"] => return Err(ApiError::method_not_allowed()),
            _ => {}
        }
        if let ["apis", group, _] = segments.as_slice()
            && registry.catalog.has_builtin_group(group)
        {
            return Err(ApiError::no_such_resource());
        }
        let path = ResourcePath::parse(path).ok_or(NotServed::Path);
        let target = match path.and_then(|path| Target::resolve(&registry.catalog, &path)) {
            Ok(target) => target,
            Err(NotServed::Path) => return Ok(response::text(404, "404 page not found\n")),
            Err(NotServed::Resource) => return Err(ApiError::no_such_resource()),
        };
        let request = Request::new(parts, &identity, body);
        let (media, mut response) = verbs::respond(registry, target, &request, audit).await?;
        if let Response::Object(object) = &mut response {
            audit.response(media, object);
        }
        match response {
            Response::NoContent => Ok(response::no_content()),
            Response::Object(object) => object.respond(media, &parts.headers),
            Response::Watch(mut watch) => {
                let stop = self.shared.stop.clone();
                let warnings = std::mem::take(&mut watch.warnings);
                let frames = watch::frames(registry.clone(), *watch, stop);
                let mut response = response::stream(media, frames);
                response::add_warnings(response.headers_mut(), &warnings);
                Ok(response)
            }
        }
    }

    /// Authenticates and authorizes a request, and returns its user. Logs a refused request.
    async fn admit(
        &self,
        parts: &Parts,
        attributes: &Attributes<'_>,
        audit: &RequestAudit,
    ) -> ApiResult<Arc<Identity>> {
        let registry = &self.shared.registry;
        let authenticated = registry
            .authentication
            .authenticate(&registry.token_context(), &self.peer, &parts.headers)
            .await;
        let mut identity = authenticated.map_err(|error| {
            audit.unauthenticated(attributes);
            denials::log_unauthenticated(attributes, &error);
            ApiError::unauthorized()
        })?;
        audit.authenticated(&identity, attributes);
        let impersonated = registry
            .impersonation
            .impersonate(
                &registry.authorizer,
                &registry.store,
                &parts.headers,
                &identity,
                attributes,
            )
            .await;
        match impersonated {
            Ok(None) => {}
            Ok(Some((impersonated, constraint))) => {
                audit.impersonated(&impersonated, constraint);
                identity = impersonated;
            }
            Err(error) => {
                denials::log_impersonation(&identity, attributes, &error);
                return Err(error);
            }
        }
        let decision = registry
            .authorizer
            .authorize(&registry.store, &identity, attributes)
            .await;
        audit.authorized(&decision);
        if decision.is_allowed() {
            return Ok(identity);
        }
        self.shared.denied.add(&identity, attributes, &decision);
        Err(match decision.error {
            Some(error) => {
                let uri = parts.uri.to_string();
                ApiError::internal(format!("Internal Server Error: {uri:?}: {error}"))
            }
            None => ApiError::denied(&identity.user, attributes, &decision.reason),
        })
    }

    /// Returns the response to a request for the server's version, OpenAPI documents or discovery.
    /// Returns `None` for any other path.
    fn describe(&self, parts: &Parts, segments: &[&str]) -> Option<HttpResponse> {
        const JSON: &str = "application/json";
        const KEY_SET: &str = "application/jwk-set+json";
        let catalog = &self.shared.registry.catalog;
        let routes = self.shared.registry.aggregator.routes();
        if segments == ["version"] {
            return Some(response::json(JSON, &version()));
        }
        if segments == ["metrics"] {
            return Some(response::metrics(self.shared.registry.metrics.encode()));
        }
        let tokens = self.shared.registry.authentication.service_accounts();
        match segments {
            [".well-known", "openid-configuration"] => {
                let document = tokens.openid_configuration(&self.shared.address())?;
                return Some(response::cacheable_json(JSON, &document));
            }
            ["openid", "v1", "jwks"] => {
                let accept = header_text(&parts.headers, header::ACCEPT);
                let accepts = |media: &str| accept.contains(media);
                if !accept.is_empty() && !accepts("*/*") && !accepts(KEY_SET) {
                    let error = ApiError::not_acceptable_but(KEY_SET);
                    return Some(response::failure(&error, Media::of_error(accept)));
                }
                return Some(response::cacheable_json(KEY_SET, &tokens.key_set()));
            }
            _ => {}
        }
        if segments == ["openapi", "v2"] {
            let document = self.shared.openapi.v2(catalog);
            return Some(response::openapi_v2(&document, &parts.headers));
        }
        if let Some(document) = self.shared.openapi.respond(segments, catalog, &routes) {
            return Some(response::json(JSON, &document));
        }
        let accept = header_text(&parts.headers, header::ACCEPT);
        let (content_type, body) = discovery::respond(segments, accept, catalog, &routes)?;
        Some(response::json(&content_type, &body))
    }
}

/// Returns the URI of the watch for a deprecated path, such as `/api/v1/watch/pods`. Returns `None`
/// for any other path.
fn watch_uri(uri: &Uri) -> Option<Uri> {
    let segments: Vec<&str> = uri.path().trim_start_matches('/').split('/').collect();
    let (group, rest) = match segments.as_slice() {
        ["api", version, "watch", rest @ ..] => (format!("/api/{version}"), rest),
        ["apis", group, version, "watch", rest @ ..] => (format!("/apis/{group}/{version}"), rest),
        _ => return None,
    };
    let (rest, name) = match rest {
        ["namespaces", namespace, plural, name] => {
            (format!("namespaces/{namespace}/{plural}"), Some(*name))
        }
        ["namespaces", _, _] | [_] => (rest.join("/"), None),
        [plural, name] => ((*plural).to_owned(), Some(*name)),
        _ => return None,
    };
    let mut query = uri.query().unwrap_or_default().to_owned();
    query.push_str("&watch=true");
    if let Some(name) = name {
        query.push_str(&format!("&fieldSelector=metadata.name%3D{name}"));
    }
    format!("{group}/{rest}?{query}").parse().ok()
}

/// Reads a whole request body.
async fn read<B>(body: B) -> ApiResult<Bytes>
where
    B: http_body::Body,
    B::Error: Into<BoxError>,
{
    match Limited::new(body, BODY_LIMIT).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            let message = format!("Request entity too large: limit is {BODY_LIMIT}");
            Err(ApiError::too_large(message))
        }
        Err(error) => Err(ApiError::bad_request(error.to_string())),
    }
}

fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "gitVersion": "v1.36.3+opkit",
        "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none", "compiler": "rustc", "platform": std::env::consts::OS,
    })
}
