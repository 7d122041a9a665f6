//! One implementation of the verbs, which takes the kind as a value. Every client of this crate
//! uses this implementation.

use std::borrow::Cow;

use bytes::Bytes;
use http::{Method, header};
use opkit_apimachinery::protobuf;
use serde_json::Value;

use super::{Encoding, Response, ResponseFormat, RestClient, RestRequest, WatchFrames};
use crate::{
    Call, DeleteOptions, Deleted, Kind, ListOptions, ObjectKey, Patch, RequestError, Verb,
    WriteOptions, codec, deleted,
};

/// Verbs of the Kubernetes API; see [`RestClient::verbs`].
///
/// A `format` of `None` sends no `Accept` header; the server then sends JSON.
#[derive(Clone, Copy)]
pub(crate) struct Verbs<'a> {
    rest: &'a RestClient,
}

/// Object of a request, or a subresource of the object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) kind: &'a Kind,
    pub(crate) key: &'a ObjectKey,
    pub(crate) subresource: Option<&'a str>,
}

impl<'a> Target<'a> {
    /// Returns the object itself as a target.
    pub(crate) fn object(kind: &'a Kind, key: &'a ObjectKey) -> Self {
        let subresource = None;
        Self {
            kind,
            key,
            subresource,
        }
    }

    pub(crate) fn subresource(self, name: &'a str) -> Self {
        let subresource = Some(name);
        Self {
            subresource,
            ..self
        }
    }
}

/// Object to send, in protobuf and in JSON. JSON is sent if the object has no protobuf encoding, or
/// if the server refuses protobuf.
pub(crate) struct Payload<'a> {
    pub(crate) protobuf: Option<Vec<u8>>,
    pub(crate) json: &'a (dyn Fn() -> Result<Vec<u8>, serde_json::Error> + Sync),
}

impl RestClient {
    pub(crate) fn verbs(&self) -> Verbs<'_> {
        Verbs { rest: self }
    }
}

impl Verbs<'_> {
    pub(crate) async fn get(
        self,
        target: Target<'_>,
        format: Option<ResponseFormat>,
    ) -> Result<Response, RequestError> {
        let request = self.object(Verb::Get, Method::GET, target)?;
        accept(request, format).response().await
    }

    pub(crate) async fn list(
        self,
        kind: &Kind,
        options: &ListOptions,
        format: ResponseFormat,
    ) -> Result<Response, RequestError> {
        let namespace = options.namespace.as_deref();
        let request = self.collection(Verb::List, Method::GET, kind, namespace)?;
        let request = options.add_to_list(request);
        request
            .header(header::ACCEPT, format.accept_list())
            .response()
            .await
    }

    pub(crate) async fn watch(
        self,
        kind: &Kind,
        options: &ListOptions,
        format: ResponseFormat,
    ) -> Result<WatchFrames, RequestError> {
        let namespace = options.namespace.as_deref();
        let request = self.collection(Verb::Watch, Method::GET, kind, namespace)?;
        let request = options.add_to_watch(request);
        let request = request.header(header::ACCEPT, format.accept_object());
        let (call, request) = request.build()?;
        let response = self.rest.send(&call, request).await?;
        let encoding = Encoding::of(response.headers());
        Ok(WatchFrames::new(call, response.into_body(), encoding))
    }

    pub(crate) async fn create(
        self,
        kind: &Kind,
        key: &ObjectKey,
        payload: Payload<'_>,
        format: Option<ResponseFormat>,
        options: &WriteOptions,
    ) -> Result<Response, RequestError> {
        let namespace = key.namespace.as_deref();
        self.send(kind, payload, || {
            let request = self.collection(Verb::Create, Method::POST, kind, namespace)?;
            let request = accept(request.named(&key.name), format);
            Ok(options.add_to(request))
        })
        .await
    }

    /// Sends a POST to a subresource, such as `token` or `eviction`.
    pub(crate) async fn create_subresource(
        self,
        target: Target<'_>,
        body: &Value,
        options: &WriteOptions,
    ) -> Result<Response, RequestError> {
        let request = self.object(Verb::Create, Method::POST, target)?;
        let request = accept(request, Some(ResponseFormat::default()));
        options.add_to(request).json(body).response().await
    }

    pub(crate) async fn update(
        self,
        target: Target<'_>,
        payload: Payload<'_>,
        options: &WriteOptions,
    ) -> Result<Response, RequestError> {
        let format = codec::format(target.kind);
        self.send(target.kind, payload, || {
            let request = self.object(Verb::Update, Method::PUT, target)?;
            Ok(options.add_to(accept(request, Some(format))))
        })
        .await
    }

    pub(crate) async fn patch(
        self,
        target: Target<'_>,
        patch: Patch<'_>,
        format: Option<ResponseFormat>,
        options: &WriteOptions,
    ) -> Result<Response, RequestError> {
        let request = self.object(Verb::Patch, Method::PATCH, target)?;
        let mut request = options.add_to(accept(request, format));
        if matches!(patch, Patch::Apply(_)) && options.force {
            request = request.query("force", "true");
        }
        let request = request.json_as(patch.content_type(), patch.body());
        request.response().await
    }

    pub(crate) async fn delete(
        self,
        target: Target<'_>,
        options: &DeleteOptions,
        format: Option<ResponseFormat>,
        write: &WriteOptions,
    ) -> Result<Deleted<Response>, RequestError> {
        let request = self.object(Verb::Delete, Method::DELETE, target)?;
        let request = accept(request, format).json(&options.body(write));
        let response = request.response().await?;
        Ok(match deleted::is_gone(&response.call, &response.body)? {
            true => Deleted::Gone,
            false => Deleted::Terminating(response),
        })
    }

    /// Deletes the selected objects of one namespace. If the options have no namespace, the default
    /// namespace of the client is used: the API cannot delete the objects of all namespaces in one
    /// request, and such a request would be dangerous.
    pub(crate) async fn delete_collection(
        self,
        kind: &Kind,
        list: &ListOptions,
        options: &DeleteOptions,
        write: &WriteOptions,
    ) -> Result<(), RequestError> {
        let kube = self.rest.kube();
        let namespace = list.namespace.as_deref();
        let namespace = namespace.or(kind.namespaced.then(|| kube.default_namespace()));
        let request = self.collection(Verb::DeleteCollection, Method::DELETE, kind, namespace)?;
        let request = list.add_to_list(request);
        let request = accept(request, Some(ResponseFormat::default()));
        request.json(&options.body(write)).response().await?;
        Ok(())
    }

    /// Sends an object in protobuf, and in JSON if the server refuses protobuf.
    async fn send(
        self,
        kind: &Kind,
        payload: Payload<'_>,
        request: impl Fn() -> Result<RestRequest, RequestError>,
    ) -> Result<Response, RequestError> {
        let body = payload.protobuf;
        if let Some(body) = body.filter(|_| !self.rest.is_json_only(kind)) {
            let request = request()?.body(protobuf::CONTENT_TYPE, body);
            match request.response().await {
                Err(error)
                    if error
                        .status()
                        .is_some_and(|it| matches!(it.code, 406 | 415)) =>
                {
                    self.rest.set_json_only(kind);
                }
                response => return response,
            }
        }
        let request = request()?;
        match (payload.json)() {
            Ok(body) => {
                let request = request.body("application/json", Bytes::from(body));
                request.response().await
            }
            Err(cause) => Err(RequestError::Build {
                call: request.into_call(),
                cause: cause.into(),
            }),
        }
    }

    fn object(
        self,
        verb: Verb,
        method: Method,
        target: Target<'_>,
    ) -> Result<RestRequest, RequestError> {
        let Target {
            kind,
            key,
            subresource,
        } = target;
        let mut call = Call::object(verb, kind, key);
        call.subresource = subresource.map(|name| Cow::Owned(name.to_owned()));
        let mut path = kind.path(key.namespace.as_deref()).name(&key.name);
        if let Some(subresource) = subresource {
            path = path.subresource(subresource);
        }
        self.rest.call(method, &path, call)
    }

    fn collection(
        self,
        verb: Verb,
        method: Method,
        kind: &Kind,
        namespace: Option<&str>,
    ) -> Result<RestRequest, RequestError> {
        let call = Call::collection(verb, kind, namespace);
        self.rest.call(method, &kind.path(namespace), call)
    }
}

fn accept(request: RestRequest, format: Option<ResponseFormat>) -> RestRequest {
    match format {
        Some(format) => request.header(header::ACCEPT, format.accept_object()),
        None => request,
    }
}
