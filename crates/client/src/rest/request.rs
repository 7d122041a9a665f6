//! Any request: a method, a path, and what belongs to it.

use std::borrow::Cow;

use bytes::Bytes;
use futures::Stream;
use http::{HeaderName, HeaderValue, Method, Request, header};
use http_body_util::BodyExt;
use opkit_apimachinery::identity::ResourcePath;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Encoding, Page, RestClient, unreachable};
use crate::{Call, Kind, RequestError, RequestInfo, Verb, codec, request_info};

/// Characters of a query parameter that are written as `%XX`: all but RFC 3986's unreserved ones.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A request that is being put together; see [`RestClient::request`].
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
#[must_use = "it is sent by the method that says how the answer is wanted"]
pub struct RestRequest {
    client: RestClient,
    call: Box<Call>,
    method: Method,
    uri: String,
    headers: Vec<(HeaderName, String)>,
    body: Result<Bytes, Box<dyn std::error::Error + Send + Sync>>,
}

impl RestClient {
    /// Begins a request with any method to any path of the server. The path is sent as it is: one
    /// that is made of names belongs in [`resource_request`](RestClient::resource_request).
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
        self.begun(method, path.to_owned(), call)
    }

    /// Begins a request to a resource.
    ///
    /// # Errors
    /// [`RequestError::Build`] if a field of `path` cannot be in a path.
    pub fn resource_request(
        &self,
        method: Method,
        path: &ResourcePath<'_>,
    ) -> Result<RestRequest, RequestError> {
        let verb = verb_of(&request_info::verb(&method, path.name.is_some(), ""));
        let call = call_at(verb, path);
        self.call(method, path, call)
    }

    /// As [`resource_request`](RestClient::resource_request), for a call that has a name already.
    pub(crate) fn call(
        &self,
        method: Method,
        path: &ResourcePath<'_>,
        call: Call,
    ) -> Result<RestRequest, RequestError> {
        let call = Box::new(call);
        match path.build() {
            Ok(path) => Ok(self.begun(method, path, call)),
            Err(cause) => Err(RequestError::Build {
                call,
                cause: cause.into(),
            }),
        }
    }

    fn begun(&self, method: Method, uri: String, call: Box<Call>) -> RestRequest {
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

    /// Adds a parameter to the query unless it is empty.
    pub(crate) fn query_if(self, name: &str, value: &str) -> Self {
        if value.is_empty() {
            return self;
        }
        self.query(name, value)
    }

    /// What it is called in errors.
    pub(crate) fn as_call(&self) -> Box<Call> {
        self.call.clone()
    }

    pub(crate) fn into_call(self) -> Box<Call> {
        self.call
    }

    /// Adds a header. A value that cannot be one fails the request.
    pub fn header(mut self, name: HeaderName, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Sets the body and its type.
    pub fn body(mut self, content_type: &str, body: impl Into<Bytes>) -> Self {
        self.body = Ok(body.into());
        self.header(header::CONTENT_TYPE, content_type)
    }

    /// Sets the body to `value` in JSON.
    pub fn json(self, value: &impl Serialize) -> Self {
        self.json_as("application/json", value)
    }

    /// Sets the body to `value` in a kind of JSON.
    pub(crate) fn json_as(mut self, content_type: &str, value: &impl Serialize) -> Self {
        let body = serde_json::to_vec(value).map(Bytes::from);
        self.body = body.map_err(Into::into);
        self.header(header::CONTENT_TYPE, content_type)
    }

    /// Sends it; the whole body of the answer.
    ///
    /// # Errors
    /// A [`RequestError`] that names the call, as for each of these methods.
    ///
    /// # Cancel safety
    /// Dropping the future drops the request; whether the server has acted on it is then unknown.
    pub async fn bytes(self) -> Result<Bytes, RequestError> {
        Ok(self.page().await?.body)
    }

    /// Sends it; the whole body of the answer and how it is written.
    ///
    /// # Errors
    /// As [`bytes`](RestRequest::bytes).
    ///
    /// # Cancel safety
    /// As [`bytes`](RestRequest::bytes).
    pub async fn page(self) -> Result<Page, RequestError> {
        let (client, call, request) = self.built()?;
        let (headers, body) = client.answer_within(call, request).await?;
        let encoding = Encoding::of(&headers);
        Ok(Page { body, encoding })
    }

    /// Sends it and reads the answer, which may be JSON or protobuf.
    ///
    /// # Errors
    /// As [`bytes`](RestRequest::bytes), and when the answer does not fit the type.
    ///
    /// # Cancel safety
    /// As [`bytes`](RestRequest::bytes).
    pub async fn typed<T: DeserializeOwned>(self) -> Result<T, RequestError> {
        let call = self.call.clone();
        let page = self.page().await?;
        codec::decode(call, &page)
    }

    /// Sends it; the body of the answer piece by piece, for logs and the like. There is no time
    /// limit.
    ///
    /// # Errors
    /// As [`bytes`](RestRequest::bytes).
    ///
    /// # Cancel safety
    /// As [`bytes`](RestRequest::bytes).
    pub async fn stream(
        self,
    ) -> Result<impl Stream<Item = Result<Bytes, RequestError>> + Send + use<>, RequestError> {
        let (client, call, request) = self.built()?;
        let body = client.answer(&call, request).await?.into_body();
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

    pub(super) fn built(
        self,
    ) -> Result<(RestClient, Box<Call>, Request<kube::client::Body>), RequestError> {
        let call = self.call;
        let unbuilt = |cause| RequestError::Build {
            call: call.clone(),
            cause,
        };
        let mut request = Request::builder().method(self.method).uri(self.uri);
        for (name, value) in self.headers {
            let value = HeaderValue::from_str(&value);
            request = request.header(name, value.map_err(|cause| unbuilt(cause.into()))?);
        }
        let body = self.body.map_err(&unbuilt)?;
        let request = request.body(kube::client::Body::from(body));
        let request = request.map_err(|cause| unbuilt(cause.into()))?;
        Ok((self.client, call, request))
    }
}

/// What a path is called in errors.
fn call_of(method: &Method, path: &str) -> Call {
    let uri: http::Uri = path.parse().unwrap_or_default();
    let verb = verb_of(&RequestInfo::parse(method, &uri).verb);
    match ResourcePath::find(uri.path()) {
        Some((_, path)) => call_at(verb, &path),
        None => call_at(verb, &ResourcePath::new("", "", uri.path())),
    }
}

/// The kind is not known from a path; the resource stands for it.
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
