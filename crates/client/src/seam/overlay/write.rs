//! Writes in plan mode.

use http::{Request, header};
use kube::client::Body;
use opkit_apimachinery::patch;
use opkit_apimachinery::protobuf;
use opkit_apimachinery::schema::{NoDefinitions, Schema, Typed};
use serde_json::Value;

use super::read::{Selection, not_found};
use super::{HttpResponse, Next, Overlay, PlanError, fetch, json, object, refuse};
use crate::RequestInfo;

impl Overlay {
    pub(super) async fn write<S: Next>(
        &self,
        server: S,
        request: Request<Body>,
        info: &RequestInfo,
        body: &[u8],
    ) -> Result<HttpResponse, PlanError> {
        let (parts, _) = request.into_parts();
        let subresource = info.subresource.as_deref();
        match (info.verb.as_ref(), subresource) {
            ("create", None) => self.create(server, &parts, info, body).await,
            ("create", Some("eviction")) => {
                let eviction = decode(&parts, body)?;
                let options = eviction.get("deleteOptions").cloned().unwrap_or_default();
                self.delete(server, &parts, info, &options).await?;
                Ok(json(201, &success(201))?)
            }
            ("update", None | Some("status" | "scale")) => {
                let new = decode(&parts, body)?;
                self.change(server, &parts, info, |current| {
                    check_version(info, current, &new)?;
                    Ok(new)
                })
                .await
            }
            ("patch", None | Some("status" | "scale")) => {
                self.patch(server, &parts, info, body).await
            }
            ("delete", None) => {
                let options = match body {
                    [] => Value::Null,
                    body => decode(&parts, body)?,
                };
                let object = self.delete(server, &parts, info, &options).await?;
                Ok(json(200, &object)?)
            }
            ("deletecollection", None) => self.delete_all(server, &parts, info).await,
            _ => {
                let message = format!(
                    "plan mode cannot {} {} without sending it",
                    info.verb,
                    info.resource()
                );
                Err(refuse(405, "MethodNotAllowed", message))
            }
        }
    }

    fn number(&self) -> usize {
        self.state.lock().changes.len().saturating_add(1)
    }

    async fn create<S: Next>(
        &self,
        server: S,
        parts: &http::request::Parts,
        info: &RequestInfo,
        body: &[u8],
    ) -> Result<HttpResponse, PlanError> {
        let mut new = decode(parts, body)?;
        let number = self.number();
        let text = |pointer: &str| new.pointer(pointer).and_then(Value::as_str);
        let name = match (text("/metadata/name"), text("/metadata/generateName")) {
            (Some(name), _) if !name.is_empty() => name.to_owned(),
            (_, Some(prefix)) => format!("{prefix}{number:05}"),
            _ => {
                let message = "name or generateName is required".to_owned();
                return Err(refuse(422, "Invalid", message));
            }
        };
        let existing = self.load(server, parts, info, &name).await?;
        if existing.is_some() {
            let message = format!("{} {name:?} already exists", info.resource());
            return Err(refuse(409, "AlreadyExists", message));
        }
        object::created(&mut new, info, &name, number);
        self.store(info, &name, None, Some(new.clone()))?;
        Ok(json(201, &new)?)
    }

    async fn patch<S: Next>(
        &self,
        server: S,
        parts: &http::request::Parts,
        info: &RequestInfo,
        body: &[u8],
    ) -> Result<HttpResponse, PlanError> {
        let content_type = content_type(parts);
        let change = match content_type.as_str() {
            // Clients send JSON here, which is also valid YAML.
            "application/apply-patch+yaml" => {
                serde_json::from_slice::<Value>(body).map_err(|error| {
                    refuse(
                        400,
                        "BadRequest",
                        format!("plan mode supports applied configurations in JSON only: {error}"),
                    )
                })?
            }
            _ => serde_json::from_slice(body)
                .map_err(|error| refuse(400, "BadRequest", error.to_string()))?,
        };
        let apply = content_type.starts_with("application/apply-patch");
        let name = info.name.clone().unwrap_or_default();
        let current = self.load(server.clone(), parts, info, &name).await?;
        if current.is_none() && apply && info.subresource.is_none() {
            let mut new = change;
            object::created(&mut new, info, &name, self.number());
            self.store(info, &name, None, Some(new.clone()))?;
            return Ok(json(201, &new)?);
        }
        self.change(server, parts, info, |current| {
            let mut new = match info.subresource.as_deref() {
                Some("scale") => object::scale(current),
                _ => current.clone(),
            };
            let invalid = |error: patch::PatchError| refuse(422, "Invalid", error.to_string());
            match content_type.as_str() {
                "application/json-patch+json" => {
                    patch::json_patch(&mut new, &change).map_err(invalid)?;
                }
                "application/strategic-merge-patch+json" => {
                    let schema = Schema::default();
                    let typed = Typed::new(&schema, &NoDefinitions);
                    patch::strategic_merge(&mut new, &change, &typed).map_err(invalid)?;
                }
                "application/merge-patch+json" => patch::merge_patch(&mut new, &change),
                _ if apply => patch::merge_patch(&mut new, &change),
                other => {
                    let message = format!("plan mode does not support patches of type {other}");
                    return Err(refuse(415, "UnsupportedMediaType", message));
                }
            }
            check_version(info, current, &new)?;
            Ok(new)
        })
        .await
    }

    /// Replaces an object, its status or its scale with the result of `update`.
    async fn change<S: Next>(
        &self,
        server: S,
        parts: &http::request::Parts,
        info: &RequestInfo,
        update: impl FnOnce(&Value) -> Result<Value, PlanError>,
    ) -> Result<HttpResponse, PlanError> {
        let name = info.name.clone().unwrap_or_default();
        let before = self.load(server, parts, info, &name).await?;
        let Some(before) = before else {
            return Err(not_found(info, &name));
        };
        let new = update(&before)?;
        let mut after = before.clone();
        let part = |name: &str| new.get(name).cloned();
        match (info.subresource.as_deref(), after.as_object_mut()) {
            (Some("status"), Some(fields)) => {
                fields.insert("status".to_owned(), part("status").unwrap_or_default());
            }
            (Some("scale"), _) => {
                let replicas = new.pointer("/spec/replicas").cloned();
                let replicas = serde_json::json!({"spec": {"replicas": replicas}});
                patch::merge_patch(&mut after, &replicas);
            }
            _ => {
                // The status is kept: nearly all kinds have a status subresource.
                after = new;
                if let (Some(fields), Some(status)) = (after.as_object_mut(), before.get("status"))
                {
                    fields.insert("status".to_owned(), status.clone());
                }
            }
        }
        object::updated(&mut after, &before, self.number());
        let removed = is_removed(&after);
        // As on a server, a write that changes nothing gets no new resourceVersion.
        if !removed && object::is_same(&after, &before) {
            after = before;
        } else {
            let kept = (!removed).then(|| after.clone());
            self.store(info, &name, Some(before), kept)?;
        }
        match info.subresource.as_deref() {
            Some("scale") => Ok(json(200, &object::scale(&after))?),
            _ => Ok(json(200, &after)?),
        }
    }

    async fn delete<S: Next>(
        &self,
        server: S,
        parts: &http::request::Parts,
        info: &RequestInfo,
        options: &Value,
    ) -> Result<Value, PlanError> {
        let name = info.name.clone().unwrap_or_default();
        let before = self.load(server, parts, info, &name).await?;
        let Some(before) = before else {
            return Err(not_found(info, &name));
        };
        for field in ["uid", "resourceVersion"] {
            let expected = options.pointer(&format!("/preconditions/{field}"));
            let found = before.pointer(&format!("/metadata/{field}"));
            if expected.is_some_and(|expected| !expected.is_null() && Some(expected) != found) {
                let message = format!("Precondition failed: {field} of {name:?} does not match");
                return Err(refuse(409, "Conflict", message));
            }
        }
        let after = self.deleted(&before);
        let response = after.clone().unwrap_or_else(|| before.clone());
        self.store(info, &name, Some(before), after)?;
        Ok(response)
    }

    /// Returns the object with a deletion timestamp, or `None` if the object has no finalizers and
    /// is removed immediately.
    fn deleted(&self, before: &Value) -> Option<Value> {
        let finalizers = before.pointer("/metadata/finalizers");
        let finalizers = finalizers.and_then(Value::as_array);
        if finalizers.is_none_or(Vec::is_empty) {
            return None;
        }
        let mut after = before.clone();
        object::updated(&mut after, before, self.number());
        // Plan mode has no wall clock; the epoch is always in the past.
        let metadata = object::metadata(&mut after)?;
        metadata
            .entry("deletionTimestamp")
            .or_insert_with(|| "1970-01-01T00:00:00Z".into());
        Some(after)
    }

    async fn delete_all<S: Next>(
        &self,
        server: S,
        parts: &http::request::Parts,
        info: &RequestInfo,
    ) -> Result<HttpResponse, PlanError> {
        let selection = Selection::of(parts.uri.query().unwrap_or_default())?;
        let path = &info.path;
        let (code, bytes) = fetch(server.clone(), parts, path).await?;
        if !(200..300).contains(&code) {
            let message = format!("GET {path} failed");
            return Err(refuse(code, "Unknown", message));
        }
        let list: Value = serde_json::from_slice(&bytes)?;
        let mut names: Vec<(String, String)> = Vec::new();
        let text = |object: &Value, pointer: &str| {
            let found = object.pointer(pointer).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let items = list.get("items").and_then(Value::as_array);
        for item in items.into_iter().flatten() {
            names.push((
                text(item, "/metadata/namespace"),
                text(item, "/metadata/name"),
            ));
        }
        for (group, plural, namespace, name) in self.state.lock().objects.keys() {
            if *group == info.group && *plural == info.plural {
                names.push((namespace.clone(), name.clone()));
            }
        }
        names.sort();
        names.dedup();
        for (namespace, name) in names {
            if info.namespace.as_ref().is_some_and(|it| *it != namespace) {
                continue;
            }
            let mut one = info.clone();
            one.namespace = (!namespace.is_empty()).then_some(namespace);
            let before = self.load(server.clone(), parts, &one, &name).await?;
            let Some(before) = before.filter(|before| selection.matches(before)) else {
                continue;
            };
            let after = self.deleted(&before);
            self.store(&one, &name, Some(before), after)?;
        }
        Ok(json(200, &success(200))?)
    }
}

fn success(code: u16) -> Value {
    serde_json::json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Success", "code": code,
    })
}

/// Returns whether an object is being deleted and has no finalizers left.
fn is_removed(object: &Value) -> bool {
    let finalizers = object.pointer("/metadata/finalizers");
    object.pointer("/metadata/deletionTimestamp").is_some()
        && finalizers
            .and_then(Value::as_array)
            .is_none_or(Vec::is_empty)
}

fn check_version(info: &RequestInfo, current: &Value, new: &Value) -> Result<(), PlanError> {
    let version = |object: &Value| {
        let version = object.pointer("/metadata/resourceVersion");
        version
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let expected = version(new);
    if expected.is_empty() || expected == version(current) {
        return Ok(());
    }
    let message = format!(
        "Operation cannot be fulfilled on {} {:?}: the object has been modified; please apply your changes to the latest version and try again",
        info.resource(),
        info.name.as_deref().unwrap_or_default(),
    );
    Err(refuse(409, "Conflict", message))
}

fn content_type(parts: &http::request::Parts) -> String {
    let value = parts.headers.get(header::CONTENT_TYPE);
    let value = value.and_then(|value| value.to_str().ok());
    let value = value.unwrap_or("application/json");
    value
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_owned()
}

fn decode(parts: &http::request::Parts, body: &[u8]) -> Result<Value, PlanError> {
    let bad = |message: String| refuse(400, "BadRequest", message);
    if content_type(parts) == protobuf::CONTENT_TYPE {
        return protobuf::decode(body).map_err(|error| bad(error.to_string()));
    }
    serde_json::from_slice(body).map_err(|error| bad(error.to_string()))
}
