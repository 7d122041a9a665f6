//! The calls: one method per verb, erased over kinds, answering in bytes.

mod collection;
mod request;
mod watch;

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt;
use kube::core::Status;
use kube::core::params::{DeleteParams, Preconditions};
use opkit_apimachinery::protobuf;
use serde_json::Value;

pub use self::collection::{CollectionOptions, Encoding, Page, PageOptions, WatchOptions};
pub use self::request::RestRequest;
pub use self::watch::WatchFrames;
use crate::{Call, Deleted, Fenced, Kind, ObjectKey, RequestError, Verb, deleted};

/// How long one request may take, the client's own retries included; watches have their own limit.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// Sends requests and names verb, kind and object in each error. Cloning is cheap.
///
/// # Examples
/// ```
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use opkit_client::{Kind, RequestError, RestClient};
///
/// async fn read(kube: kube::Client) -> Result<(), RequestError> {
///     let client = RestClient::new(kube);
///     match client.get(&Kind::of::<ConfigMap>(), &("default", "settings").into()).await {
///         Err(error) if error.is_not_found() => Ok(()),
///         answer => answer.map(drop),
///     }
/// }
/// ```
#[derive(Clone)]
pub struct RestClient {
    kube: kube::Client,
}

impl std::fmt::Debug for RestClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RestClient").finish_non_exhaustive()
    }
}

/// The body of a [`RestClient::patch`].
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Patch<'a> {
    /// Forced server-side apply of a whole configuration.
    Apply(&'a Value),
    /// An RFC 7386 merge patch.
    Merge(&'a Value),
    /// An RFC 6902 JSON patch.
    Json(&'a Value),
    /// A strategic merge patch, for built-in kinds only.
    Strategic(&'a Value),
}

impl Patch<'_> {
    /// How the server is told which kind of patch it is.
    pub(crate) fn content_type(&self) -> &'static str {
        match self {
            Patch::Apply(_) => "application/apply-patch+yaml",
            Patch::Merge(_) => "application/merge-patch+json",
            Patch::Json(_) => "application/json-patch+json",
            Patch::Strategic(_) => "application/strategic-merge-patch+json",
        }
    }

    pub(crate) fn body(&self) -> &Value {
        match self {
            Patch::Apply(body)
            | Patch::Merge(body)
            | Patch::Json(body)
            | Patch::Strategic(body) => body,
        }
    }
}

impl RestClient {
    /// Sends through `kube`.
    pub fn new(kube: kube::Client) -> Self {
        Self { kube }
    }

    /// The client below, for calls that this room has no word for.
    pub fn kube(&self) -> kube::Client {
        self.kube.clone()
    }

    /// Reads one object.
    ///
    /// # Errors
    /// As every method here: a [`RequestError`] that names the call.
    ///
    /// # Cancel safety
    /// As every method here: dropping the future drops the request; whether the server has acted
    /// on it is then unknown.
    pub async fn get(&self, kind: &Kind, key: &ObjectKey) -> Result<Bytes, RequestError> {
        let call = Call::object(Verb::Get, kind, key);
        let path = kind.path(key.namespace.as_deref()).name(&key.name);
        self.call(Method::GET, &path, call)?.bytes().await
    }

    /// Reads a page of a collection: at most `limit` objects (0: all), from `continue_token` on.
    ///
    /// # Cancel safety
    /// As [`get`](RestClient::get).
    pub async fn list(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        limit: u32,
        continue_token: Option<&str>,
    ) -> Result<Bytes, RequestError> {
        let options = PageOptions {
            limit,
            continue_token: continue_token.map(str::to_owned),
            ..Default::default()
        };
        let page = self.list_page(kind, namespace, &options).await?;
        Ok(page.body)
    }

    /// Reads a page of a collection in the form that is asked for, if the server has it.
    ///
    /// # Cancel safety
    /// As [`get`](RestClient::get).
    pub async fn list_page(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        options: &PageOptions,
    ) -> Result<Page, RequestError> {
        let (path, call) = (kind.path(namespace), self.list_call(kind, namespace));
        let request = self.call(Method::GET, &path, call)?;
        options.add_to(request).page().await
    }

    /// What [`list`](RestClient::list) is called in errors, for whoever decodes its answer.
    pub fn list_call(&self, kind: &Kind, namespace: Option<&str>) -> Call {
        Call::collection(Verb::List, kind, namespace)
    }

    /// Follows a collection with bookmarks. The answer is a stream of events; see [`WatchFrames`].
    ///
    /// # Cancel safety
    /// As [`get`](RestClient::get).
    pub async fn watch(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        options: &WatchOptions,
    ) -> Result<WatchFrames, RequestError> {
        let call = Call::collection(Verb::Watch, kind, namespace);
        let request = self.call(Method::GET, &kind.path(namespace), call)?;
        let (_, call, request) = options.add_to(request).built()?;
        let response = self.answer(&call, request).await?;
        let encoding = Encoding::of(response.headers());
        Ok(WatchFrames::new(call, response.into_body(), encoding))
    }

    /// Makes an object, owned by `field_manager`; fails if the name is taken.
    ///
    /// # Cancel safety
    /// As [`get`](RestClient::get).
    pub async fn create(
        &self,
        kind: &Kind,
        namespace: Option<&str>,
        object: &Value,
        field_manager: &str,
    ) -> Result<Bytes, RequestError> {
        let name = object.pointer("/metadata/name").and_then(Value::as_str);
        let mut call = Call::collection(Verb::Create, kind, namespace);
        call.name = Some(name.unwrap_or_default().to_owned());
        let request = self.call(Method::POST, &kind.path(namespace), call)?;
        let request = request.query("fieldManager", field_manager);
        request.json(object).bytes().await
    }

    /// Changes an object, or its `subresource`, as `field_manager`.
    ///
    /// # Cancel safety
    /// As [`get`](RestClient::get).
    pub async fn patch(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        subresource: Option<&'static str>,
        patch: Patch<'_>,
        field_manager: &str,
    ) -> Result<Bytes, RequestError> {
        let mut call = Call::object(Verb::Patch, kind, key);
        call.subresource = subresource.map(Into::into);
        let mut path = kind.path(key.namespace.as_deref()).name(&key.name);
        if let Some(subresource) = subresource {
            path = path.subresource(subresource);
        }
        let request = self.call(Method::PATCH, &path, call)?;
        let mut request = request.query("fieldManager", field_manager);
        if let Patch::Apply(_) = patch {
            request = request.query("force", "true");
        }
        request
            .json_as(patch.content_type(), patch.body())
            .bytes()
            .await
    }

    /// Deletes an object, if it still has this UID and resourceVersion, where given. Returns
    /// whether it is gone, or the object as it stays for a while. Dependents are deleted in the
    /// background.
    ///
    /// # Cancel safety
    /// As [`get`](RestClient::get).
    pub async fn delete(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        uid: Option<&str>,
        resource_version: Option<&str>,
    ) -> Result<Deleted<Bytes>, RequestError> {
        let params = DeleteParams {
            preconditions: Some(Preconditions {
                uid: uid.map(str::to_owned),
                resource_version: resource_version.map(str::to_owned),
            }),
            ..DeleteParams::background()
        };
        let path = kind.path(key.namespace.as_deref()).name(&key.name);
        let call = Call::object(Verb::Delete, kind, key);
        let request = self.call(Method::DELETE, &path, call.clone())?;
        let response = request.json(&params).bytes().await?;
        Ok(match deleted::is_gone(&call, &response)? {
            true => Deleted::Gone,
            false => Deleted::Terminating(response),
        })
    }

    /// The whole answer, within the time that a request may take.
    async fn answer_within(
        &self,
        call: Box<Call>,
        request: http::Request<kube::client::Body>,
    ) -> Result<(http::HeaderMap, Bytes), RequestError> {
        let answer = async {
            let response = self.answer(&call, request).await?;
            let (head, body) = response.into_parts();
            let body = body.collect().await;
            let body = body.map_err(|cause| unreachable(&call, cause))?.to_bytes();
            Ok((head.headers, body))
        };
        match tokio::time::timeout(REQUEST_TIMEOUT, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(RequestError::Timeout {
                call,
                seconds: REQUEST_TIMEOUT.as_secs(),
            }),
        }
    }

    async fn answer(
        &self,
        call: &Call,
        request: http::Request<kube::client::Body>,
    ) -> Result<http::Response<kube::client::Body>, RequestError> {
        let response = self
            .kube
            .send(request)
            .await
            .map_err(|cause| unreachable(call, cause))?;
        let code = response.status();
        if code.is_success() {
            return Ok(response);
        }
        let encoding = Encoding::of(response.headers());
        let body = response.into_body().collect().await;
        let body = body.map_err(|cause| unreachable(call, cause))?.to_bytes();
        // A proxy, or a path that nobody serves, answers in plain text or in JSON of its own, which
        // reads as a status without a code.
        let status = match encoding {
            Encoding::Protobuf => protobuf::from_slice::<Status>(&body).ok(),
            Encoding::Json => serde_json::from_slice::<Status>(&body).ok(),
        };
        let status = status.filter(|status| status.code != 0);
        let status = status.unwrap_or_else(|| {
            let text = String::from_utf8_lossy(&body);
            Status::failure(text.trim(), "Unknown").with_code(code.as_u16())
        });
        Err(RequestError::Refused {
            call: Box::new(call.clone()),
            status: status.boxed(),
        })
    }
}

fn unreachable(call: &Call, cause: kube::Error) -> RequestError {
    if let Some(cause) = Fenced::of(&cause) {
        let call = Box::new(call.clone());
        return RequestError::Fenced { call, cause };
    }
    // kube repeats the text of the cause in its own; the cause alone says it once.
    let cause = match cause {
        kube::Error::Service(cause) => cause,
        kube::Error::HyperError(cause) => cause.into(),
        cause => cause.into(),
    };
    RequestError::Unreachable {
        call: Box::new(call.clone()),
        cause,
    }
}

#[cfg(test)]
mod tests;
