//! Reads through a plan.

use http::{Request, header};
use http_body_util::BodyExt;
use kube::client::Body;
use opkit_apimachinery::selector::{FieldSelector, LabelSelector};
use serde_json::Value;
use tower::ServiceExt;

use super::{Answer, Overlay, Server, Stop, boxed, json, key, object, refuse};
use crate::RequestInfo;

impl Overlay {
    pub(super) async fn get<S: Server>(
        &self,
        server: S,
        request: Request<Body>,
        info: &RequestInfo,
    ) -> Result<Answer, Stop> {
        let name = info.name.clone().unwrap_or_default();
        let known = self.state.lock().objects.get(&key(info, &name)).cloned();
        let Some(known) = known else {
            return Ok(server.oneshot(request).await?);
        };
        let Some(object) = known else {
            return Err(not_found(info, &name));
        };
        match info.subresource.as_deref() {
            None | Some("status") => Ok(json(200, &shown(&object, wants_metadata(&request)))?),
            Some("scale") => Ok(json(200, &object::scale(&object))?),
            // Logs and the like are of the object that runs.
            Some(_) => Ok(server.oneshot(request).await?),
        }
    }

    pub(super) async fn list<S: Server>(
        &self,
        server: S,
        mut request: Request<Body>,
        info: &RequestInfo,
    ) -> Result<Answer, Stop> {
        let selected = Selection::of(request.uri().query().unwrap_or_default())?;
        let ours: Vec<Ours> = {
            let state = self.state.lock();
            let objects = state.objects.iter();
            let objects = objects.filter(|((group, plural, namespace, _), _)| {
                let inside = info.namespace.as_ref().is_none_or(|it| it == namespace);
                *group == info.group && *plural == info.plural && inside
            });
            objects
                .map(|(key, object)| {
                    let original = state.originals.get(key).and_then(Option::as_ref);
                    Ours {
                        key: key.clone(),
                        object: object.clone(),
                        is_listed: original.is_some_and(|it| selected.matches(it)),
                    }
                })
                .collect()
        };
        if ours.is_empty() {
            return Ok(server.oneshot(request).await?);
        }
        // Lists are changed in JSON; a Table would have to be rendered.
        let metadata_only = wants_metadata(&request);
        let accept = if metadata_only {
            "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
        } else {
            "application/json"
        };
        let headers = request.headers_mut();
        headers.insert(header::ACCEPT, http::HeaderValue::from_static(accept));
        headers.insert(
            header::ACCEPT_ENCODING,
            http::HeaderValue::from_static("identity"),
        );
        let answer = server.oneshot(request).await?;
        let (mut parts, body) = answer.into_parts();
        let bytes = body.collect().await?.to_bytes();
        let list = serde_json::from_slice::<Value>(&bytes);
        let Ok(mut list) = list.map_err(drop).and_then(|list| {
            let is_list = parts.status.is_success() && list.get("items").is_some();
            is_list.then_some(list).ok_or(())
        }) else {
            let body = boxed(http_body_util::Full::new(bytes));
            return Ok(http::Response::from_parts(parts, body));
        };
        // What is new goes to the last page.
        let token = list.pointer("/metadata/continue").and_then(Value::as_str);
        let last = token.is_none_or(str::is_empty);
        merge(&mut list, ours, &selected, last, metadata_only);
        let body = bytes::Bytes::from(serde_json::to_vec(&list)?);
        parts.headers.remove(header::CONTENT_LENGTH);
        let body = boxed(http_body_util::Full::new(body));
        Ok(http::Response::from_parts(parts, body))
    }
}

/// An object that the plan has written or deleted.
struct Ours {
    key: super::Key,
    object: Option<Value>,
    /// The server's list has it, if not on this page then on another.
    is_listed: bool,
}

fn merge(list: &mut Value, ours: Vec<Ours>, selected: &Selection, last: bool, metadata_only: bool) {
    let Some(Value::Array(items)) = list.get_mut("items") else {
        return;
    };
    let text = |value: &Value, pointer: &str| {
        let found = value.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    for Ours {
        key: (_, _, namespace, name),
        object,
        is_listed,
    } in ours
    {
        let at = items.iter().position(|item| {
            let found = text(item, "/metadata/namespace");
            text(item, "/metadata/name") == name && (found == namespace || found.is_empty())
        });
        let object = object.filter(|object| selected.matches(object));
        match (at, object) {
            (Some(at), Some(object)) => {
                if let Some(item) = items.get_mut(at) {
                    *item = shown(&object, metadata_only);
                }
            }
            (Some(at), None) => {
                items.remove(at);
            }
            (None, Some(object)) if last && !is_listed => items.push(shown(&object, metadata_only)),
            (None, _) => {}
        }
    }
}

fn wants_metadata(request: &Request<Body>) -> bool {
    let accept = request.headers().get(header::ACCEPT);
    accept
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains("as=PartialObjectMetadata"))
}

fn shown(object: &Value, metadata_only: bool) -> Value {
    if !metadata_only {
        return object.clone();
    }
    serde_json::json!({
        "apiVersion": "meta.k8s.io/v1",
        "kind": "PartialObjectMetadata",
        "metadata": object.get("metadata").cloned().unwrap_or_default(),
    })
}

pub(super) fn not_found(info: &RequestInfo, name: &str) -> Stop {
    let mut whole = info.clone();
    whole.subresource = None;
    refuse(
        404,
        "NotFound",
        format!("{} {name:?} not found", whole.resource()),
    )
}

/// The selectors of a query.
pub(super) struct Selection {
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Selection {
    pub(super) fn of(query: &str) -> Result<Self, Stop> {
        let value = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            let found = pairs.find(|(found, _)| *found == name);
            let text = found.map(|(_, value)| value.replace('+', " "));
            let text = text.unwrap_or_default();
            percent_encoding::percent_decode_str(&text)
                .decode_utf8_lossy()
                .into_owned()
        };
        let bad = |error: opkit_apimachinery::selector::SelectorError| {
            refuse(400, "BadRequest", error.to_string())
        };
        Ok(Self {
            labels: LabelSelector::parse(&value("labelSelector")).map_err(bad)?,
            fields: FieldSelector::parse(&value("fieldSelector")).map_err(bad)?,
        })
    }

    pub(super) fn matches(&self, object: &Value) -> bool {
        let labels = object
            .pointer("/metadata/labels")
            .and_then(Value::as_object);
        self.labels.matches(labels)
            && self.fields.matches(|field| {
                let pointer = format!("/{}", field.replace('.', "/"));
                match object.pointer(&pointer)? {
                    Value::String(text) => Some(text.clone()),
                    other => Some(other.to_string()),
                }
            })
    }
}
