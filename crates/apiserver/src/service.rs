//! HTTP in, HTTP out: the tower service that a `kube::Client` or the HTTPS front sends requests to.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::StreamExt;
use http::{HeaderValue, Method, Request, Response, header, request::Parts};
use http_body::Frame;
use http_body_util::{
    BodyExt, Full, LengthLimitError, Limited, StreamBody, combinators::UnsyncBoxBody,
};
use opkit_apimachinery::identity::ResourcePath;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::{
    auth::{Authenticator, Identity},
    compression, discovery,
    kinds::{Kind, SchemaSource},
    negotiation::Media,
    openapi,
    query::Query,
    registry::Registry,
    status::{ApiError, ApiResult},
    verbs,
};

/// Kubernetes takes request bodies up to 3 MiB.
const BODY_LIMIT: usize = 3 * 1024 * 1024;

/// The body of an answer: whole, or the frames of a watch.
pub type ResponseBody = UnsyncBoxBody<Bytes, Infallible>;

/// What the server's parts share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) registry: Arc<Registry>,
    pub(crate) stop: CancellationToken,
}

/// The API as a tower service, for one caller.
///
/// Give it to `kube::Client::new`: the client then needs no socket.
#[derive(Clone, Debug)]
pub struct Service {
    pub(crate) shared: Arc<Shared>,
    pub(crate) authenticator: Authenticator,
}

impl<B> tower::Service<Request<B>> for Service
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let accept = header_text(&parts, header::ACCEPT);
            let answer = service.respond(&parts, body).await;
            let answer = answer.unwrap_or_else(|error| failure(&error, Media::of_error(accept)));
            Ok(answer)
        })
    }
}

impl Service {
    /// Returns the response to a request. Its body is read for authenticated callers only.
    async fn respond<B>(&self, parts: &Parts, body: B) -> ApiResult<Response<ResponseBody>>
    where
        B: http_body::Body,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let path = parts.uri.path().trim_matches('/');
        let segments: Vec<&str> = path.split('/').collect();
        if let ["readyz" | "livez" | "healthz", ..] = segments.as_slice() {
            return Ok(text(200, "ok"));
        }
        let authorization = header_text(parts, header::AUTHORIZATION);
        let Some(identity) = self.authenticator.identify(authorization) else {
            return Err(ApiError::unauthorized());
        };
        let body = match Limited::new(body, BODY_LIMIT).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<LengthLimitError>() => {
                let message = format!("Request entity too large: limit is {BODY_LIMIT}");
                return Err(ApiError::too_large(message));
            }
            Err(error) => return Err(ApiError::bad_request(error.to_string())),
        };
        self.answer(parts, &segments, &identity, body).await
    }

    async fn answer(
        &self,
        parts: &Parts,
        segments: &[&str],
        identity: &Identity,
        body: Bytes,
    ) -> ApiResult<Response<ResponseBody>> {
        let registry = &self.shared.registry;
        let accept = header_text(parts, header::ACCEPT);
        let raw_query = parts.uri.query().unwrap_or_default();
        if parts.method == Method::GET {
            if segments == ["version"] {
                return Ok(json_answer(200, "application/json", &version()));
            }
            if let Some(body) = openapi::answer(segments, raw_query, &registry.catalog) {
                return Ok(json_answer(200, "application/json", &body));
            }
            if let Some((content_type, body)) =
                discovery::answer(segments, accept, &registry.catalog)
            {
                return Ok(json_answer(200, &content_type, &body));
            }
        }
        let path = ResourcePath::parse(parts.uri.path()).filter(|path| {
            let kinds = registry.catalog.all();
            kinds.iter().any(|kind| is_served(kind, path))
        });
        let Some(path) = path else {
            return Ok(text(404, "404 page not found\n"));
        };
        let request = verbs::Incoming {
            method: &parts.method,
            path,
            query: Query::parse(raw_query),
            accept,
            content_type: header_text(parts, header::CONTENT_TYPE),
            user_agent: header_text(parts, header::USER_AGENT),
            identity,
            body,
        };
        let (media, content) = verbs::dispatch(registry, request).await?;
        Ok(match content {
            verbs::Answer::Body {
                code,
                body,
                warnings,
            } => {
                let accepted = header_text(parts, header::ACCEPT_ENCODING);
                let response = encoded(code, media, media.encode(&body)?, accepted);
                with_warnings(response, &warnings)
            }
            verbs::Answer::Watch(request) => {
                let stop = self.shared.stop.clone();
                let frames = crate::watch::frames(registry.clone(), *request, stop);
                let body = StreamBody::new(frames.map(|bytes| Ok(Frame::data(bytes))));
                answer(200, media.stream_type(), BodyExt::boxed_unsync(body))
            }
        })
    }
}

/// Whether the part of the server that answers for `kind` knows the path: that of built-in kinds
/// answers for whole groups, that of custom resources for each of its resources.
fn is_served(kind: &Kind, path: &ResourcePath<'_>) -> bool {
    if kind.group != path.group || matches!(kind.schema, SchemaSource::Definition(_)) {
        return kind.group == path.group;
    }
    let misplaced = if kind.namespaced {
        path.namespace.is_none() && path.name.is_some()
    } else {
        path.namespace.is_some()
    };
    kind.version == path.version && kind.plural == path.plural && !misplaced
}

fn header_text(parts: &Parts, name: header::HeaderName) -> &str {
    parts
        .headers
        .get(name)
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

fn version() -> Value {
    json!({
        "major": "1", "minor": "36", "gitVersion": "v1.36.3+opkit",
        "gitCommit": "", "gitTreeState": "clean", "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "none", "compiler": "rustc", "platform": std::env::consts::OS,
    })
}

fn answer(code: u16, content_type: &str, body: ResponseBody) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    *response.status_mut() =
        http::StatusCode::from_u16(code).unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(content_type) {
        headers.insert(header::CONTENT_TYPE, value);
    }
    headers.insert(
        header::CACHE_CONTROL,
        HeaderValue::from_static("no-cache, private"),
    );
    response
}

fn whole(body: impl Into<Bytes>) -> ResponseBody {
    BodyExt::boxed_unsync(Full::new(body.into()))
}

/// A body in the form that was negotiated, compressed if it is long and the client accepts that.
fn encoded(code: u16, media: Media, body: Bytes, accepted: &str) -> Response<ResponseBody> {
    let Some(compressed) = compression::gzip(accepted, &body) else {
        return answer(code, media.content_type(), whole(body));
    };
    let mut response = answer(code, media.content_type(), whole(compressed));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
    response
}

fn text(code: u16, body: &'static str) -> Response<ResponseBody> {
    answer(code, "text/plain; charset=utf-8", whole(body))
}

fn json_answer(code: u16, content_type: &str, body: &Value) -> Response<ResponseBody> {
    answer(code, content_type, whole(body.to_string()))
}

fn failure(error: &ApiError, media: Media) -> Response<ResponseBody> {
    let status = error.to_status();
    match media.encode(&status) {
        Ok(body) => answer(error.code, media.content_type(), whole(body)),
        Err(_) => json_answer(error.code, "application/json", &status),
    }
}

/// Warnings as the header that clients print (RFC 7234, code 299).
fn with_warnings(
    mut response: Response<ResponseBody>,
    warnings: &[String],
) -> Response<ResponseBody> {
    for warning in warnings {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            response.headers_mut().append(header::WARNING, value);
        }
    }
    response
}
