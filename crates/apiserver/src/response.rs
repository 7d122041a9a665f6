//! Responses: encodes the result of a verb as an HTTP response.

use bytes::Bytes;
use futures::{Stream, StreamExt, stream};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use serde_json::Value;

use crate::negotiation::Media;
use crate::request::header_text;
use crate::status::{ApiError, ApiResult};
use crate::view::Chunks;
use crate::watch::WatchRequest;
use crate::{compression, object, openapi};

/// The body of an HTTP response: a complete body, or a stream of the chunks of a long list or of
/// the frames of a watch. Only the response of an aggregated API server can fail in the middle.
pub type ResponseBody = UnsyncBoxBody<Bytes, BodyError>;

/// The error of the body of a response that ends early.
#[derive(Debug, thiserror::Error)]
#[error("the response of an aggregated API server ended early")]
pub struct BodyError(#[source] pub(crate) BoxError);

/// The error of the body of a request.
pub(crate) type BoxError = Box<dyn std::error::Error + Send + Sync>;

pub(crate) type HttpResponse = http::Response<ResponseBody>;

/// The response of a verb, before it is encoded.
#[derive(Debug)]
pub(crate) enum Response {
    Object(ObjectResponse),
    /// A watch, which starts when its frames are read.
    Watch(Box<WatchRequest>),
    /// A response without a body.
    NoContent,
}

/// The body of a response, encoded or not.
#[derive(Debug)]
pub(crate) enum Content {
    /// An object, a list or a `Status`.
    Value(Value),
    /// A body in the media type of the request.
    Encoded(Bytes),
    /// A list in the media type of the request.
    List(Chunks),
}

/// A response with one body: an object, a list or a `Status`.
#[derive(Debug)]
pub(crate) struct ObjectResponse {
    /// The HTTP status code.
    pub(crate) code: u16,
    pub(crate) body: Content,
    /// Warnings for the client, which kubectl prints.
    pub(crate) warnings: Vec<String>,
}

impl Response {
    /// Returns a response with the code 200 and without warnings.
    pub(crate) fn ok(body: Value) -> Self {
        Self::with_code(200, body, Vec::new())
    }

    pub(crate) fn with_code(code: u16, body: Value, warnings: Vec<String>) -> Self {
        Self::with_content(code, Content::Value(body), warnings)
    }

    pub(crate) fn with_content(code: u16, body: Content, warnings: Vec<String>) -> Self {
        Self::Object(ObjectResponse {
            code,
            body,
            warnings,
        })
    }
}

impl ObjectResponse {
    /// Returns the body if it is a `Status`.
    pub(crate) fn status(&self) -> Option<&Value> {
        match &self.body {
            Content::Value(body) if object::text(body, &["kind"]) == "Status" => Some(body),
            _ => None,
        }
    }

    /// Returns a copy of the body, decoded. The chunks of a list are joined.
    pub(crate) fn decoded(&mut self, media: Media) -> Option<Value> {
        if let Content::List(chunks) = &mut self.body {
            let chunks: Vec<Bytes> = chunks.collect();
            self.body = Content::Encoded(chunks.concat().into());
        }
        match &self.body {
            Content::Value(body) => Some(body.clone()),
            Content::Encoded(body) => media.decode(body),
            Content::List(_) => None,
        }
    }

    /// Encodes the response as HTTP, and compresses a long body if the client accepts compression.
    pub(crate) fn respond(self, media: Media, request: &HeaderMap) -> ApiResult<HttpResponse> {
        let accepted = header_text(request, header::ACCEPT_ENCODING);
        let is_gzip_accepted = compression::is_accepted(accepted);
        let (body, is_compressed) = match self.body {
            Content::Value(body) => whole(media.encode(&body)?, is_gzip_accepted),
            Content::Encoded(body) => whole(body, is_gzip_accepted),
            Content::List(chunks) => list(chunks, is_gzip_accepted),
        };
        let mut response = respond(self.code, media.content_type(), body);
        let headers = response.headers_mut();
        if is_compressed {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
            headers.insert(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        }
        add_warnings(headers, &self.warnings);
        Ok(response)
    }
}

/// Adds a `Warning` header with the code 299 of RFC 7234 for each warning.
pub(crate) fn add_warnings(headers: &mut HeaderMap, warnings: &[String]) {
    for warning in warnings {
        let quoted = warning.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_str(&format!("299 - \"{quoted}\"")) {
            headers.append(header::WARNING, value);
        }
    }
}

/// Returns a complete body, and whether it is compressed.
fn whole(body: Bytes, is_gzip_accepted: bool) -> (ResponseBody, bool) {
    if !is_gzip_accepted || body.len() <= compression::THRESHOLD {
        return (complete(body), false);
    }
    let compressed: Vec<Bytes> = compression::gzip(std::iter::once(body)).collect();
    (complete(compressed.concat()), true)
}

/// Returns the body of a list, and whether it is compressed. A short body is complete, a long body
/// is a stream of the chunks.
fn list(mut chunks: Chunks, is_gzip_accepted: bool) -> (ResponseBody, bool) {
    let mut first = Vec::new();
    let mut length = 0;
    while length <= compression::THRESHOLD {
        let Some(chunk) = chunks.next() else {
            let body = match first.as_slice() {
                [only] => Bytes::clone(only),
                several => several.concat().into(),
            };
            return (complete(body), false);
        };
        length += chunk.len();
        first.push(chunk);
    }
    let chunks = first.into_iter().chain(chunks);
    match is_gzip_accepted {
        true => (streamed(compression::gzip(chunks)), true),
        false => (streamed(chunks), false),
    }
}

fn streamed(chunks: impl Iterator<Item = Bytes> + Send + 'static) -> ResponseBody {
    let frames = stream::iter(chunks.map(|chunk| Ok(Frame::data(chunk))));
    BodyExt::boxed_unsync(StreamBody::new(frames))
}

/// Returns a response whose body is a stream of frames.
pub(crate) fn stream(
    media: Media,
    frames: impl Stream<Item = Bytes> + Send + 'static,
) -> HttpResponse {
    let body = StreamBody::new(frames.map(|bytes| Ok(Frame::data(bytes))));
    respond(200, media.stream_type(), BodyExt::boxed_unsync(body))
}

/// Returns a plain text response.
pub(crate) fn text(code: u16, body: &'static str) -> HttpResponse {
    respond(code, "text/plain; charset=utf-8", complete(body))
}

/// Returns metrics in the text format of Prometheus.
pub(crate) fn metrics(text: String) -> HttpResponse {
    let content_type = "text/plain; version=0.0.4; charset=utf-8";
    respond(200, content_type, complete(text))
}

/// Returns a plain text error in the form in which Go's HTTP server writes it.
pub(crate) fn error_text(code: u16, message: &str) -> HttpResponse {
    let body = complete(format!("{message}\n"));
    let mut response = respond(code, "text/plain; charset=utf-8", body);
    let no_sniff = HeaderValue::from_static("nosniff");
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, no_sniff);
    response
}

/// Returns a response without a body.
pub(crate) fn no_content() -> HttpResponse {
    let mut response = respond(204, "", complete(""));
    response.headers_mut().remove(header::CONTENT_TYPE);
    response
}

/// Returns a response with the code 200 and a JSON body.
pub(crate) fn json(content_type: &str, body: &Value) -> HttpResponse {
    respond(200, content_type, complete(body.to_string()))
}

/// Returns the response with the document of OpenAPI v2: 304 if the client has it already, and 406
/// if the client accepts no encoding of it.
pub(crate) fn openapi_v2(document: &openapi::Document, request: &HeaderMap) -> HttpResponse {
    let header = |name| {
        let value = request.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default()
    };
    let Some((content_type, body)) = document.encoded(header(header::ACCEPT)) else {
        let mut response = respond(406, "", complete(""));
        response.headers_mut().remove(header::CONTENT_TYPE);
        return response;
    };
    let is_known = header(header::IF_NONE_MATCH)
        .split(',')
        .any(|known| matches!(known.trim(), "*") || known.trim() == document.etag);
    let mut response = match is_known {
        true => respond(304, content_type, complete("")),
        false => respond(200, content_type, complete(body)),
    };
    let headers = response.headers_mut();
    headers.append(header::VARY, HeaderValue::from_static("Accept"));
    if let Ok(etag) = HeaderValue::from_str(&document.etag) {
        headers.insert(header::ETAG, etag);
    }
    response
}

/// Returns a response like [`json`] that clients may keep for an hour.
pub(crate) fn cacheable_json(content_type: &str, body: &Value) -> HttpResponse {
    let mut response = json(content_type, body);
    let cache_control = HeaderValue::from_static("public, max-age=3600");
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, cache_control);
    response
}

/// Returns the response to a request that failed. The body is the `Status` of the error, encoded in
/// `media` or, if that fails, in JSON.
pub(crate) fn failure(error: &ApiError, media: Media) -> HttpResponse {
    let status = error.to_status();
    let (media, body) = match media.encode(&status) {
        Ok(body) => (media, body),
        Err(_) => (Media::Json, status.to_string().into()),
    };
    let mut response = respond(error.code, media.content_type(), complete(body));
    if let Some(seconds) = error.retry_after_seconds() {
        let headers = response.headers_mut();
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    add_warnings(response.headers_mut(), &error.warnings);
    response
}

fn respond(code: u16, content_type: &str, body: ResponseBody) -> HttpResponse {
    let mut response = http::Response::new(body);
    *response.status_mut() =
        StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    if let Ok(value) = HeaderValue::from_str(content_type) {
        headers.insert(header::CONTENT_TYPE, value);
    }
    let cache_control = HeaderValue::from_static("no-cache, private");
    headers.insert(header::CACHE_CONTROL, cache_control);
    response
}

fn complete(body: impl Into<Bytes>) -> ResponseBody {
    let body = Full::new(body.into());
    BodyExt::boxed_unsync(body.map_err(|never| match never {}))
}
