//! Reads in plan mode.

use http::{Request, header};
use http_body_util::BodyExt;
use kube::client::Body;
use opkit_apimachinery::selector::{FieldSelector, LabelSelector};
use serde_json::Value;
use tower::ServiceExt;

use super::{HttpResponse, Next, Overlay, PlanError, boxed, json, key, object, refuse};
use crate::RequestInfo;

impl Overlay {
    pub(super) async fn get<S: Next>(
        &self,
        server: S,
        request: Request<Body>,
        info: &RequestInfo,
    ) -> Result<HttpResponse, PlanError> {
        let name = info.name.clone().unwrap_or_default();
        let known = self.state.lock().objects.get(&key(info, &name)).cloned();
        let Some(known) = known else {
            return Ok(server.oneshot(request).await?);
        };
        let Some(object) = known else {
            return Err(not_found(info, &name));
        };
        match info.subresource.as_deref() {
            None | Some("status") => Ok(json(
                200,
                &representation(&object, is_metadata_only(&request)),
            )?),
            Some("scale") => Ok(json(200, &object::scale(&object))?),
            // Subresources such as `log` exist on the server only.
            Some(_) => Ok(server.oneshot(request).await?),
        }
    }

    pub(super) async fn list<S: Next>(
        &self,
        server: S,
        mut request: Request<Body>,
        info: &RequestInfo,
    ) -> Result<HttpResponse, PlanError> {
        let selection = Selection::of(request.uri().query().unwrap_or_default())?;
        let planned: Vec<PlannedObject> = {
            let state = self.state.lock();
            let objects = state.objects.iter();
            let objects = objects.filter(|((group, plural, namespace, _), _)| {
                let inside = info.namespace.as_ref().is_none_or(|it| it == namespace);
                *group == info.group && *plural == info.plural && inside
            });
            objects
                .map(|(key, object)| {
                    let original = state.originals.get(key).and_then(Option::as_ref);
                    PlannedObject {
                        key: key.clone(),
                        object: object.clone(),
                        is_listed: original.is_some_and(|it| selection.matches(it)),
                    }
                })
                .collect()
        };
        if planned.is_empty() {
            return Ok(server.oneshot(request).await?);
        }
        // Lists are changed in JSON. A Table is not supported, since it would have to be rendered.
        let metadata_only = is_metadata_only(&request);
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
        let response = server.oneshot(request).await?;
        let (mut parts, body) = response.into_parts();
        let bytes = body.collect().await?.to_bytes();
        let list = serde_json::from_slice::<Value>(&bytes);
        let Ok(mut list) = list.map_err(drop).and_then(|list| {
            let is_list = parts.status.is_success() && list.get("items").is_some();
            is_list.then_some(list).ok_or(())
        }) else {
            let body = boxed(http_body_util::Full::new(bytes));
            return Ok(http::Response::from_parts(parts, body));
        };
        // New objects are added to the last page.
        let token = list.pointer("/metadata/continue").and_then(Value::as_str);
        let last = token.is_none_or(str::is_empty);
        merge(&mut list, planned, &selection, last, metadata_only);
        let body = bytes::Bytes::from(serde_json::to_vec(&list)?);
        parts.headers.remove(header::CONTENT_LENGTH);
        let body = boxed(http_body_util::Full::new(body));
        Ok(http::Response::from_parts(parts, body))
    }
}

/// An object that was written or deleted in the plan.
struct PlannedObject {
    key: super::Key,
    object: Option<Value>,
    /// Whether the server's list contains the object, on any page.
    is_listed: bool,
}

fn merge(
    list: &mut Value,
    planned: Vec<PlannedObject>,
    selection: &Selection,
    last: bool,
    metadata_only: bool,
) {
    let Some(Value::Array(items)) = list.get_mut("items") else {
        return;
    };
    let text = |value: &Value, pointer: &str| {
        let found = value.pointer(pointer).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    for PlannedObject {
        key: (_, _, namespace, name),
        object,
        is_listed,
    } in planned
    {
        let at = items.iter().position(|item| {
            let found = text(item, "/metadata/namespace");
            text(item, "/metadata/name") == name && (found == namespace || found.is_empty())
        });
        let object = object.filter(|object| selection.matches(object));
        match (at, object) {
            (Some(at), Some(object)) => {
                if let Some(item) = items.get_mut(at) {
                    *item = representation(&object, metadata_only);
                }
            }
            (Some(at), None) => {
                items.remove(at);
            }
            (None, Some(object)) if last && !is_listed => {
                items.push(representation(&object, metadata_only))
            }
            (None, _) => {}
        }
    }
}

fn is_metadata_only(request: &Request<Body>) -> bool {
    let accept = request.headers().get(header::ACCEPT);
    accept
        .and_then(|accept| accept.to_str().ok())
        .is_some_and(|accept| accept.contains("as=PartialObjectMetadata"))
}

fn representation(object: &Value, metadata_only: bool) -> Value {
    if !metadata_only {
        return object.clone();
    }
    serde_json::json!({
        "apiVersion": "meta.k8s.io/v1",
        "kind": "PartialObjectMetadata",
        "metadata": object.get("metadata").cloned().unwrap_or_default(),
    })
}

pub(super) fn not_found(info: &RequestInfo, name: &str) -> PlanError {
    let mut whole = info.clone();
    whole.subresource = None;
    refuse(
        404,
        "NotFound",
        format!("{} {name:?} not found", whole.resource()),
    )
}

/// The label and field selectors of a query.
pub(super) struct Selection {
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Selection {
    pub(super) fn of(query: &str) -> Result<Self, PlanError> {
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
