//! Requests with any method to any path.

use std::borrow::Cow;

use bytes::Bytes;
use futures::Stream;
use http::{HeaderName, HeaderValue, Method, Request, header};
use http_body_util::BodyExt;
use opkit_apimachinery::identity::ResourcePath;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::send::unreachable;
use super::{Encoding, Response, RestClient};
use crate::{Call, Kind, RequestError, RequestInfo, Verb, codec, request_info};

/// Characters of a query parameter that are written as `%XX`: all except the unreserved characters
/// of RFC 3986.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Builder of a request; see [`RestClient::request`].
///
/// # Examples
/// ```
/// use http::Method;
/// use k8s_openapi::api::core::v1::Pod;
/// use opkit_client::{Kind, RequestError, RestClient};
///
/// async fn last_lines(client: &RestClient, pod: &str) -> Result<bytes::Bytes, RequestError> {
///     let kind = Kind::of::<Pod>();
///     let log = kind.path(Some("shops")).name(pod).subresource("log");
///     client.resource_request(Method::GET, &log)?.query("tailLines", "10").bytes().await
/// }
/// ```
#[derive(Debug)]
#[must_use = "a request is sent by `bytes`, `response`, `typed` or `stream`"]
pub struct RestRequest {
    client: RestClient,
    call: Box<Call>,
    method: Method,
    uri: String,
    headers: Vec<(HeaderName, String)>,
    body: Result<Bytes, Box<dyn std::error::Error + Send + Sync>>,
}

impl RestClient {
    /// Starts a request with any method to any path of the server. The path is sent unchanged: use
    /// [`resource_request`](RestClient::resource_request) for a path that contains names.
    ///
    /// # Examples
    /// ```
    /// use http::Method;
    /// use opkit_client::{RequestError, RestClient};
    ///
    /// async fn version(client: &RestClient) -> Result<serde_json::Value, RequestError> {
    ///     client.request(Method::GET, "/version").query("timeout", "5s").typed().await
    /// }
    /// ```
    pub fn request(&self, method: Method, path: &str) -> RestRequest {
        let call = Box::new(call_of(&method, path));
        self.start(method, path.to_owned(), call)
    }

    /// Starts a request to a resource.
    ///
    /// # Errors
    /// [`RequestError::Build`] if a part of `path`, such as the name, is not valid in a URL path.
    pub fn resource_request(
        &self,
        method: Method,
        path: &ResourcePath<'_>,
    ) -> Result<RestRequest, RequestError> {
        let verb = verb_of(&request_info::verb(&method, path.name.is_some(), ""));
        let call = call_at(verb, path);
        self.call(method, path, call)
    }

    /// Starts a request to a resource. Errors of the request name the verb and target in `call`.
    pub(crate) fn call(
        &self,
        method: Method,
        path: &ResourcePath<'_>,
        call: Call,
    ) -> Result<RestRequest, RequestError> {
        let call = Box::new(call);
        match path.build() {
            Ok(path) => Ok(self.start(method, path, call)),
            Err(cause) => Err(RequestError::Build {
                call,
                cause: cause.into(),
            }),
        }
    }

    fn start(&self, method: Method, uri: String, call: Box<Call>) -> RestRequest {
        RestRequest {
            client: self.clone(),
            call,
            method,
            uri,
            headers: Vec::new(),
            body: Ok(Bytes::new()),
        }
    }
}

impl RestRequest {
    /// Adds a parameter to the query.
    pub fn query(mut self, name: &str, value: &str) -> Self {
        self.uri
            .push(if self.uri.contains('?') { '&' } else { '?' });
        self.uri.extend(utf8_percent_encode(name, ESCAPED));
        self.uri.push('=');
        self.uri.extend(utf8_percent_encode(value, ESCAPED));
        self
    }

    /// Adds a parameter to the query, unless `value` is empty.
    pub(crate) fn query_if(self, name: &str, value: &str) -> Self {
        if value.is_empty() {
            return self;
        }
        self.query(name, value)
    }

    /// Sets the name of the object in errors.
    pub(super) fn named(mut self, name: &str) -> Self {
        self.call.name = Some(name.to_owned());
        self
    }

    pub(crate) fn into_call(self) -> Box<Call> {
        self.call
    }

    /// Adds a header. Sending fails if the value is not valid in a header.
    pub fn header(mut self, name: HeaderName, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Sets the body and its content type.
    pub fn body(mut self, content_type: &str, body: impl Into<Bytes>) -> Self {
        self.body = Ok(body.into());
        self.header(header::CONTENT_TYPE, content_type)
    }

    /// Sets the body to `value`, encoded in JSON.
    pub fn json(self, value: &impl Serialize) -> Self {
        self.json_as("application/json", value)
    }

    /// Sets the body to `value`, encoded in JSON with another content type.
    pub(super) fn json_as(mut self, content_type: &str, value: &impl Serialize) -> Self {
        let body = serde_json::to_vec(value).map(Bytes::from);
        self.body = body.map_err(Into::into);
        self.header(header::CONTENT_TYPE, content_type)
    }

    /// Sends the request and returns the body of the response.
    ///
    /// # Errors
    /// A [`RequestError`] that names the request.
    ///
    /// # Cancel safety
    /// Dropping the future drops the request. Whether the server has acted on the request is then
    /// unknown.
    pub async fn bytes(self) -> Result<Bytes, RequestError> {
        Ok(self.response().await?.body)
    }

    /// Sends the request and returns the body of the response and its encoding.
    ///
    /// # Errors
    /// Same as [`bytes`](RestRequest::bytes).
    ///
    /// # Cancel safety
    /// Same as [`bytes`](RestRequest::bytes).
    pub async fn response(self) -> Result<Response, RequestError> {
        let client = self.client.clone();
        let (call, request) = self.build()?;
        let (headers, body) = client.send_within_timeout(&call, request).await?;
        let encoding = Encoding::of(&headers);
        Ok(Response {
            body,
            encoding,
            call,
        })
    }

    /// Sends the request and decodes the response, from JSON or protobuf.
    ///
    /// # Errors
    /// Same as [`bytes`](RestRequest::bytes), and if the response does not fit the type.
    ///
    /// # Cancel safety
    /// Same as [`bytes`](RestRequest::bytes).
    pub async fn typed<T: DeserializeOwned>(self) -> Result<T, RequestError> {
        let response = self.response().await?;
        let decoded = codec::from_slice_by_value(&response.body, response.encoding);
        decoded.map_err(|cause| RequestError::Decode {
            call: response.call,
            cause,
        })
    }

    /// Sends the request and returns the body of the response as a stream, for logs and the like.
    /// There is no time limit.
    ///
    /// # Errors
    /// Same as [`bytes`](RestRequest::bytes).
    ///
    /// # Cancel safety
    /// Same as [`bytes`](RestRequest::bytes).
    pub async fn stream(
        self,
    ) -> Result<impl Stream<Item = Result<Bytes, RequestError>> + Send + use<>, RequestError> {
        let client = self.client.clone();
        let (call, request) = self.build()?;
        let body = client.send(&call, request).await?.into_body();
        Ok(futures::stream::unfold(Some((call, body)), |state| async {
            let (call, mut body) = state?;
            loop {
                match body.frame().await? {
                    Ok(frame) => {
                        if let Ok(data) = frame.into_data() {
                            return Some((Ok(data), Some((call, body))));
                        }
                    }
                    Err(cause) => return Some((Err(unreachable(&call, cause)), None)),
                }
            }
        }))
    }

    pub(super) fn build(self) -> Result<(Box<Call>, Request<kube::client::Body>), RequestError> {
        let call = self.call;
        let failed = |cause| RequestError::Build {
            call: call.clone(),
            cause,
        };
        let mut request = Request::builder().method(self.method).uri(self.uri);
        for (name, value) in self.headers {
            let value = HeaderValue::from_str(&value);
            request = request.header(name, value.map_err(|cause| failed(cause.into()))?);
        }
        let body = self.body.map_err(&failed)?;
        let request = request.body(kube::client::Body::from(body));
        let request = request.map_err(|cause| failed(cause.into()))?;
        Ok((call, request))
    }
}

/// Returns verb and target of a request to any path, for error messages.
fn call_of(method: &Method, path: &str) -> Call {
    let uri: http::Uri = path.parse().unwrap_or_default();
    let verb = verb_of(&RequestInfo::parse(method, &uri).verb);
    match ResourcePath::find(uri.path()) {
        Some((_, path)) => call_at(verb, &path),
        None => call_at(verb, &ResourcePath::new("", "", uri.path())),
    }
}

/// Returns verb and target of a request to a resource, for error messages. The plural name of the
/// resource stands in for the kind, because a path does not contain the kind.
fn call_at(verb: Verb, path: &ResourcePath<'_>) -> Call {
    let owned = |part: &Option<Cow<'_, str>>| part.as_deref().map(str::to_owned);
    Call {
        verb,
        kind: Kind {
            group: path.group.to_string(),
            version: path.version.to_string(),
            kind: path.plural.to_string(),
            plural: path.plural.to_string(),
            namespaced: path.namespace.is_some(),
        },
        subresource: owned(&path.subresource).map(Into::into),
        namespace: owned(&path.namespace),
        name: owned(&path.name),
    }
}

fn verb_of(word: &str) -> Verb {
    match word {
        "list" => Verb::List,
        "watch" => Verb::Watch,
        "create" | "post" => Verb::Create,
        "update" | "put" => Verb::Update,
        "patch" => Verb::Patch,
        "delete" => Verb::Delete,
        "deletecollection" => Verb::DeleteCollection,
        _ => Verb::Get,
    }
}
