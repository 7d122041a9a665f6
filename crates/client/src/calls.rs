//! The calls of all clients, erased over kinds: what to send for each verb.

mod options;

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, header};
use opkit_apimachinery::protobuf;
use parking_lot::Mutex;
use serde_json::Value;

pub use self::options::{
    DeleteOptions, FieldValidation, ListOptions, Propagation, VersionMatch, WriteOptions,
};
use crate::{
    Call, CollectionOptions, Deleted, Kind, ObjectKey, Page, Patch, RequestError, RestClient,
    RestRequest, Verb, WatchFrames, WatchOptions, deleted,
};

/// Sends requests about kinds that are known at run time.
#[derive(Debug, Clone)]
pub(crate) struct Calls {
    pub(crate) rest: RestClient,
    pub(crate) write: WriteOptions,
    /// Kinds whose server does not read protobuf; at most as many as there are kinds.
    json_only: Arc<Mutex<HashSet<Kind>>>,
}

/// An answer and what it is the answer to.
pub(crate) struct Answered {
    pub(crate) call: Box<Call>,
    pub(crate) page: Page,
}

/// In which form a watch is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Whole objects for a type: protobuf where there is that.
    Typed,
    /// Metadata alone: protobuf for every kind.
    Metadata,
    /// Whole objects as they are.
    Json,
}

/// The object of a request: its kind, its key, and perhaps a part of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) kind: &'a Kind,
    pub(crate) key: &'a ObjectKey,
    pub(crate) subresource: Option<&'a str>,
}

/// An object to send: in protobuf if there is that form, and in JSON if the server wants it.
pub(crate) struct Payload<'a> {
    pub(crate) protobuf: Option<Vec<u8>>,
    pub(crate) json: &'a dyn Fn() -> Result<Vec<u8>, serde_json::Error>,
}

impl Calls {
    pub(crate) fn new(kube: kube::Client) -> Self {
        Self {
            rest: RestClient::new(kube),
            write: WriteOptions::default(),
            json_only: Arc::default(),
        }
    }

    /// The key of an object of `kind`: one without a namespace is in the client's.
    pub(crate) fn key(&self, kind: &Kind, key: impl Into<ObjectKey>) -> ObjectKey {
        let kube = self.rest.kube();
        let mut key = key.into();
        if kind.namespaced {
            key = key.or_namespace(Some(kube.default_namespace()));
        } else {
            key.namespace = None;
        }
        key
    }

    fn object(
        &self,
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

    pub(crate) async fn get(
        &self,
        target: Target<'_>,
        accept: &str,
    ) -> Result<Answered, RequestError> {
        let request = self.object(Verb::Get, Method::GET, target)?;
        answered(request.header(header::ACCEPT, accept)).await
    }

    pub(crate) async fn list(
        &self,
        kind: &Kind,
        options: &ListOptions,
        accept: &str,
    ) -> Result<Answered, RequestError> {
        let namespace = options.namespace.as_deref();
        let call = Call::collection(Verb::List, kind, namespace);
        let path = kind.path(namespace);
        let request = self.rest.call(Method::GET, &path, call)?;
        answered(options.query(request).header(header::ACCEPT, accept)).await
    }

    pub(crate) async fn watch(
        &self,
        kind: &Kind,
        options: &ListOptions,
        form: Form,
    ) -> Result<WatchFrames, RequestError> {
        let watch = WatchOptions {
            resource_version: options.resource_version.clone(),
            timeout: options.watch_timeout,
            collection: CollectionOptions {
                label_selector: options.label_selector.clone(),
                field_selector: options.field_selector.clone(),
                metadata_only: form == Form::Metadata,
                protobuf: match form {
                    Form::Typed => crate::codec::is_built_in(kind),
                    Form::Metadata => true,
                    Form::Json => false,
                },
                ..Default::default()
            },
            ..Default::default()
        };
        let namespace = options.namespace.as_deref();
        self.rest.watch(kind, namespace, &watch).await
    }

    pub(crate) async fn create(
        &self,
        kind: &Kind,
        key: &ObjectKey,
        payload: Payload<'_>,
    ) -> Result<Answered, RequestError> {
        let namespace = key.namespace.as_deref();
        let mut call = Call::collection(Verb::Create, kind, namespace);
        call.name = Some(key.name.clone());
        let path = kind.path(namespace);
        self.send(kind, payload, || {
            self.rest.call(Method::POST, &path, call.clone())
        })
        .await
    }

    /// Creates what a subresource makes, such as a token or an eviction.
    pub(crate) async fn create_part(
        &self,
        target: Target<'_>,
        body: &Value,
    ) -> Result<Answered, RequestError> {
        let request = self.object(Verb::Create, Method::POST, target)?;
        let request = request.header(header::ACCEPT, "application/json");
        answered(self.write.query(request).json(body)).await
    }

    pub(crate) async fn update(
        &self,
        target: Target<'_>,
        payload: Payload<'_>,
    ) -> Result<Answered, RequestError> {
        self.send(target.kind, payload, || {
            self.object(Verb::Update, Method::PUT, target)
        })
        .await
    }

    /// Sends an object in protobuf, and in JSON if the server does not read that.
    async fn send(
        &self,
        kind: &Kind,
        payload: Payload<'_>,
        request: impl Fn() -> Result<RestRequest, RequestError>,
    ) -> Result<Answered, RequestError> {
        let accept = crate::codec::accept(kind);
        let request = || {
            let request = request()?.header(header::ACCEPT, accept);
            Ok::<_, RequestError>(self.write.query(request))
        };
        let Payload {
            protobuf: body,
            json,
        } = payload;
        let body = body.filter(|_| !self.json_only.lock().contains(kind));
        if let Some(body) = body {
            let outcome = answered(request()?.body(protobuf::CONTENT_TYPE, body)).await;
            match outcome {
                Err(error)
                    if error
                        .status()
                        .is_some_and(|it| matches!(it.code, 406 | 415)) =>
                {
                    self.json_only.lock().insert(kind.clone());
                }
                outcome => return outcome,
            }
        }
        let request = request()?;
        match json() {
            Ok(body) => answered(request.body("application/json", Bytes::from(body))).await,
            Err(cause) => Err(RequestError::Build {
                call: request.into_call(),
                cause: cause.into(),
            }),
        }
    }

    pub(crate) async fn patch(
        &self,
        target: Target<'_>,
        patch: Patch<'_>,
        accept: &str,
    ) -> Result<Answered, RequestError> {
        let request = self.object(Verb::Patch, Method::PATCH, target)?;
        let request = request.header(header::ACCEPT, accept);
        let mut request = self.write.query(request);
        if matches!(patch, Patch::Apply(_)) && self.write.force {
            request = request.query("force", "true");
        }
        answered(request.json_as(patch.content_type(), patch.body())).await
    }

    pub(crate) async fn delete(
        &self,
        target: Target<'_>,
        options: &DeleteOptions,
    ) -> Result<Deleted<Answered>, RequestError> {
        let request = self.object(Verb::Delete, Method::DELETE, target)?;
        let request = request.header(header::ACCEPT, "application/json");
        let answered = answered(request.json(&options.body(&self.write))).await?;
        let is_gone = deleted::is_gone(&answered.call, &answered.page.body)?;
        Ok(match is_gone {
            true => Deleted::Gone,
            false => Deleted::Terminating(answered),
        })
    }

    pub(crate) async fn delete_all(
        &self,
        kind: &Kind,
        list: &ListOptions,
        options: &DeleteOptions,
    ) -> Result<(), RequestError> {
        let namespace = list.namespace.as_deref();
        let call = Call::collection(Verb::DeleteCollection, kind, namespace);
        let path = kind.path(namespace);
        let request = self.rest.call(Method::DELETE, &path, call)?;
        let request = list
            .query(request)
            .header(header::ACCEPT, "application/json");
        request.json(&options.body(&self.write)).bytes().await?;
        Ok(())
    }
}

async fn answered(request: RestRequest) -> Result<Answered, RequestError> {
    let call = request.as_call();
    let page = request.page().await?;
    Ok(Answered { call, page })
}
