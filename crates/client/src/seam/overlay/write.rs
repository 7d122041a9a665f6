//! Writes in plan mode. The server validates each write of an object that it has, or creates, as a
//! dry run. A write that it cannot validate changes the object by the rules of this module.

use http::{Request, header};
use kube::client::Body;
use opkit_apimachinery::patch;
use opkit_apimachinery::protobuf;
use opkit_apimachinery::schema::{NoDefinitions, Schema, Typed};
use serde_json::Value;

use super::dry_run::{Validated, deletion, dry_run, replace_text};
use super::read::{Selection, not_found};
use super::{
    HttpResponse, Next, Overlay, PlanError, Written, fetch, is_bookkeeping, json, key, object,
    refuse, unsupported,
};
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
        if is_bookkeeping(info) {
            return bookkeeping(&parts, info, body);
        }
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
                let change = Change {
                    content_type: "application/json",
                    body: new.clone(),
                    applier: None,
                };
                self.change(server, &parts, info, change, |current| {
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
            _ => Err(unsupported(info)),
        }
    }

    /// Returns why the server cannot validate a write, or `None` if it can: only this plan knows
    /// the object, or the namespace in which it is created.
    fn unknown_to_server(&self, info: &RequestInfo, name: &str) -> Option<String> {
        let state = self.state.lock();
        let is_new = |key: &super::Key| matches!(state.originals.get(key), Some(None));
        let namespace = info.namespace.clone().unwrap_or_default();
        let of_namespace = (
            String::new(),
            "namespaces".to_owned(),
            String::new(),
            namespace.clone(),
        );
        if is_new(&key(info, name)) {
            return Some("the server does not have the object yet".to_owned());
        }
        let is_in_new = !namespace.is_empty() && is_new(&of_namespace);
        is_in_new.then(|| format!("the server does not have the namespace {namespace} yet"))
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
        let existing = self.load(server.clone(), parts, info, &name).await?;
        if existing.is_some() {
            let message = format!("{} {name:?} already exists", info.resource());
            return Err(refuse(409, "AlreadyExists", message));
        }
        let mut name = name;
        let validated = match self.unknown_to_server(info, &name) {
            Some(reason) => Validated::Unchecked(reason),
            None => dry_run(server, parts, "application/json", &new).await?,
        };
        let mut by = Written::default();
        match validated {
            Validated::Object(object) => {
                let chosen = object.pointer("/metadata/name").and_then(Value::as_str);
                name = chosen.unwrap_or(&name).to_owned();
                new = object;
            }
            Validated::Unchecked(reason) => by.unchecked = Some(reason),
        }
        object::created(&mut new, info, &name, number);
        self.store(info, &name, None, Some(new.clone()), by)?;
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
            let validated = match self.unknown_to_server(info, &name) {
                Some(reason) => Validated::Unchecked(reason),
                None => dry_run(server, parts, &content_type, &change).await?,
            };
            let mut by = Written::default();
            let mut new = match validated {
                Validated::Object(object) => object,
                Validated::Unchecked(reason) => {
                    by.unchecked = Some(reason);
                    change
                }
            };
            object::created(&mut new, info, &name, self.number());
            self.store(info, &name, None, Some(new.clone()), by)?;
            return Ok(json(201, &new)?);
        }
        let sent = Change {
            content_type: &content_type,
            body: change.clone(),
            applier: apply.then(|| field_manager(parts)),
        };
        self.change(server, parts, info, sent, |current| {
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

    /// Replaces an object, its status or its scale with the result of a write. `update` is the
    /// result if the server cannot validate the write.
    async fn change<S: Next>(
        &self,
        server: S,
        parts: &http::request::Parts,
        info: &RequestInfo,
        change: Change<'_>,
        update: impl FnOnce(&Value) -> Result<Value, PlanError>,
    ) -> Result<HttpResponse, PlanError> {
        let name = info.name.clone().unwrap_or_default();
        let before = self.load(server.clone(), parts, info, &name).await?;
        let Some(before) = before else {
            return Err(not_found(info, &name));
        };
        // The version of the body is checked here, because the server knows another one.
        let new = match update(&before) {
            Err(PlanError::Status(status)) if status.code == 409 => {
                return Err(PlanError::Status(status));
            }
            new => new,
        };
        let mut by = Written::default();
        let validated = match self.unknown_to_server(info, &name) {
            Some(reason) => Validated::Unchecked(reason),
            None => {
                let mut body = change.body;
                self.restore_version(info, &name, &before, &mut body);
                dry_run(server, parts, change.content_type, &body).await?
            }
        };
        let is_scale = info.subresource.as_deref() == Some("scale");
        let mut after = match validated {
            Validated::Object(object) if !is_scale => {
                by.applier = change.applier.filter(|_| info.subresource.is_none());
                let is_update = info.verb == "update";
                self.merged(info, &name, &before, object, is_update, &by)
            }
            Validated::Object(_) => local(info, &before, new?),
            Validated::Unchecked(reason) => {
                by.unchecked = Some(reason);
                local(info, &before, new?)
            }
        };
        object::updated(&mut after, &before, self.number());
        let removed = is_removed(&after);
        // As on a server, a write that changes nothing gets no new resourceVersion.
        if !removed && object::is_same(&after, &before) {
            after = before;
        } else {
            let kept = (!removed).then(|| after.clone());
            self.store(info, &name, Some(before), kept, by)?;
        }
        match info.subresource.as_deref() {
            Some("scale") => Ok(json(200, &object::scale(&after))?),
            _ => Ok(json(200, &after)?),
        }
    }

    /// Replaces the resourceVersion of this plan by that of the server, in the body of a write.
    fn restore_version(&self, info: &RequestInfo, name: &str, before: &Value, body: &mut Value) {
        let state = self.state.lock();
        let original = state.originals.get(&key(info, name));
        let text = |object: &Value| {
            let version = object.pointer("/metadata/resourceVersion");
            version.and_then(Value::as_str).map(str::to_owned)
        };
        let original = original.and_then(Option::as_ref).and_then(text);
        if let (Some(original), Some(planned)) = (original, text(before)) {
            replace_text(body, &planned, &original);
        }
    }

    /// Returns the object after a write. `object` is what the server returned, which does not know
    /// the earlier writes of this plan.
    fn merged(
        &self,
        info: &RequestInfo,
        name: &str,
        before: &Value,
        object: Value,
        is_update: bool,
        by: &Written,
    ) -> Value {
        let state = self.state.lock();
        let key = key(info, name);
        let Some(Some(original)) = state.originals.get(&key) else {
            return object;
        };
        let is_reapplied = by.applier.is_some() && state.appliers.get(&key) == by.applier.as_ref();
        match info.subresource.as_deref() {
            Some(part) => with_part(before.clone(), part, &object),
            // The body of an update contains the earlier writes, and so does a configuration that
            // is applied again.
            None if is_update || is_reapplied => with_part(object, "status", before),
            None => {
                let mut after = before.clone();
                patch::merge_patch(&mut after, &difference(original, &object));
                after
            }
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
        let before = self.load(server.clone(), parts, info, &name).await?;
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
        let mut by = Written::default();
        let is_eviction = info.subresource.is_some();
        match self.unknown_to_server(info, &name) {
            Some(reason) => by.unchecked = Some(reason),
            None if is_eviction => {}
            None => {
                let mut body = deletion(options);
                self.restore_version(info, &name, &before, &mut body);
                let sent = dry_run(server, parts, "application/json", &body).await?;
                if let Validated::Unchecked(reason) = sent {
                    by.unchecked = Some(reason);
                }
            }
        }
        let after = self.deleted(&before);
        let response = after.clone().unwrap_or_else(|| before.clone());
        let is_dry_run = options.get("dryRun").is_some_and(|it| !it.is_null())
            || info.is_dry_run_or_review(&parts.uri);
        if !is_dry_run {
            self.store(info, &name, Some(before), after, by)?;
        }
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
            let by = Written::default();
            self.store(&one, &name, Some(before), after, by)?;
        }
        Ok(json(200, &success(200))?)
    }
}

/// Responds to a write that is not part of the plan: the object is as the client sent it.
fn bookkeeping(
    parts: &http::request::Parts,
    info: &RequestInfo,
    body: &[u8],
) -> Result<HttpResponse, PlanError> {
    if info.verb.starts_with("delete") {
        return Ok(json(200, &success(200))?);
    }
    let mut object = decode(parts, body)?;
    if !object.is_object() {
        let message = "plan mode does not support JSON patches of events and leases";
        return Err(refuse(415, "UnsupportedMediaType", message.to_owned()));
    }
    let own = object.pointer("/metadata/name").and_then(Value::as_str);
    let name = info.name.as_deref().or(own).unwrap_or_default().to_owned();
    object::created(&mut object, info, &name, 1);
    let code = if info.verb == "create" { 201 } else { 200 };
    Ok(json(code, &object)?)
}

/// A write that changes an object, as it is sent.
struct Change<'a> {
    content_type: &'a str,
    body: Value,
    /// Field manager of a server-side apply.
    applier: Option<String>,
}

/// Returns the object after a write by the rules of this module: `new` replaces the part that the
/// request names.
fn local(info: &RequestInfo, before: &Value, new: Value) -> Value {
    match info.subresource.as_deref() {
        Some("scale") => {
            let replicas = new.pointer("/spec/replicas").cloned();
            let replicas = serde_json::json!({"spec": {"replicas": replicas}});
            let mut after = before.clone();
            patch::merge_patch(&mut after, &replicas);
            after
        }
        Some(part) => with_part(before.clone(), part, &new),
        // The status is kept: nearly all kinds have a status subresource.
        None => with_part(new, "status", before),
    }
}

/// Returns the object with a field of another one.
fn with_part(mut object: Value, part: &str, other: &Value) -> Value {
    if let Some(fields) = object.as_object_mut() {
        match other.get(part) {
            Some(value) => fields.insert(part.to_owned(), value.clone()),
            None => fields.remove(part),
        };
    }
    object
}

/// Returns the merge patch from one object to another.
fn difference(from: &Value, to: &Value) -> Value {
    let (Value::Object(from), Value::Object(to)) = (from, to) else {
        return to.clone();
    };
    let removed = from.keys().filter(|name| !to.contains_key(*name));
    let removed = removed.map(|name| (name.clone(), Value::Null));
    let changed = to.iter().filter_map(|(name, value)| {
        let before = from.get(name);
        (before != Some(value)).then(|| {
            let empty = Value::Object(serde_json::Map::new());
            let before = before.filter(|it| it.is_object()).unwrap_or(&empty);
            (name.clone(), difference(before, value))
        })
    });
    Value::Object(removed.chain(changed).collect())
}

fn field_manager(parts: &http::request::Parts) -> String {
    let query = parts.uri.query().unwrap_or_default();
    let mut pairs = query.split('&');
    let manager = pairs.find_map(|pair| pair.strip_prefix("fieldManager="));
    manager.unwrap_or_default().to_owned()
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
