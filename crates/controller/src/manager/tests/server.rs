//! A minimal API server in memory: list, watch, create, patch and delete. It implements versions,
//! conflicts and finalizers; it has no schemas, and server-side apply overwrites.

use std::collections::{BTreeMap, HashSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::stream;
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::broadcast;

type ResponseBody = UnsyncBoxBody<Bytes, Infallible>;

#[derive(Clone)]
pub(super) struct Server {
    state: Arc<Mutex<State>>,
    events: broadcast::Sender<(String, String)>,
    /// Closes all watches.
    cuts: broadcast::Sender<()>,
}

#[derive(Default)]
struct State {
    /// Objects by `collection path/name`.
    objects: BTreeMap<String, Value>,
    version: u64,
    /// Method and path of every write.
    writes: Vec<String>,
    conflicts: u32,
    was_cut: bool,
    kinds: HashSet<&'static str>,
}

impl Server {
    /// Creates a server of these resources.
    pub(super) fn new(kinds: &[&'static str]) -> Self {
        let state = State {
            kinds: kinds.iter().copied().collect(),
            ..Default::default()
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            events: broadcast::Sender::new(1000),
            cuts: broadcast::Sender::new(1),
        }
    }

    pub(super) fn client(&self) -> kube::Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move { Ok::<_, Infallible>(server.respond(request).await) }
        });
        kube::Client::new(service, "default")
    }

    pub(super) fn put(&self, path: &str, object: Value) {
        self.store("ADDED", path, object);
    }

    pub(super) fn get(&self, path: &str) -> Option<Value> {
        self.state.lock().unwrap().objects.get(path).cloned()
    }

    /// Closes all watches, like a server that restarts. Watches from an earlier version then get
    /// the error that the version is too old.
    pub(super) fn cut_watches(&self) {
        self.state.lock().unwrap().was_cut = true;
        let _ = self.cuts.send(());
    }

    pub(super) fn delete(&self, path: &str) {
        let object = self.get(path).unwrap();
        self.store("DELETED", path, object);
    }

    /// Sets the deletion timestamp of an object, like a DELETE while it has finalizers.
    pub(super) fn begin_deletion(&self, path: &str) {
        let mut object = self.get(path).unwrap();
        object["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        self.store("MODIFIED", path, object);
    }

    /// Makes the next `count` writes of a status fail with a conflict.
    pub(super) fn conflicts(&self, count: u32) {
        self.state.lock().unwrap().conflicts = count;
    }

    /// Returns and clears the writes so far, without those of events.
    pub(super) fn writes(&self) -> Vec<String> {
        let writes = std::mem::take(&mut self.state.lock().unwrap().writes);
        writes
            .into_iter()
            .filter(|write| !write.contains("/events"))
            .collect()
    }

    fn store(&self, event: &str, path: &str, mut object: Value) -> Value {
        let mut state = self.state.lock().unwrap();
        state.version += 1;
        let meta = &mut object["metadata"];
        meta["resourceVersion"] = json!(state.version.to_string());
        if meta.get("uid").is_none() {
            meta["uid"] = json!(format!("uid-{}", state.version));
        }
        let finalizers = meta["finalizers"]
            .as_array()
            .is_some_and(|list| !list.is_empty());
        let is_deleted =
            event == "DELETED" || (meta["deletionTimestamp"].is_string() && !finalizers);
        if is_deleted {
            state.objects.remove(path);
        } else {
            state.objects.insert(path.to_owned(), object.clone());
        }
        let event = if is_deleted { "DELETED" } else { event };
        let line = format!("{}\n", json!({"type": event, "object": object}));
        let _ = self.events.send((path.to_owned(), line));
        object
    }

    async fn respond(&self, request: Request<Body>) -> Response<ResponseBody> {
        let (head, body) = request.into_parts();
        let path = head.uri.path().to_owned();
        let query = head.uri.query().unwrap_or_default().to_owned();
        let kind = head
            .headers
            .get("content-type")
            .map(|v| v.to_str().unwrap().to_owned());
        let body = body.collect_bytes().await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        if head.method != Method::GET {
            let write = format!("{} {path}", head.method);
            self.state.lock().unwrap().writes.push(write);
        }
        let resource = |path: &str| {
            let parts: Vec<_> = path.split('/').collect();
            let at = parts.iter().position(|part| *part == "namespaces");
            parts
                .get(at.map_or(parts.len() - 1, |at| at + 2))
                .unwrap_or(&"")
                .to_string()
        };
        if !self
            .state
            .lock()
            .unwrap()
            .kinds
            .contains(resource(&path).as_str())
        {
            return failure(
                404,
                "NotFound",
                "the server could not find the requested resource",
            );
        }
        match head.method {
            Method::GET if query.contains("sendInitialEvents=true") => {
                failure(400, "BadRequest", "there are no streaming lists")
            }
            Method::GET if query.contains("watch=true") && self.is_too_old(&query) => {
                failure(410, "Expired", "too old resource version")
            }
            Method::GET if query.contains("watch=true") => self.watch(path),
            Method::GET => match self.get(&path) {
                Some(object) => ok(&object),
                None if path.ends_with(&resource(&path)) => self.list(&path),
                None => failure(404, "NotFound", "not found"),
            },
            Method::POST => self.create(&path, body, &query),
            Method::DELETE => match self.get(&path) {
                Some(object) => ok(&self.store("DELETED", &path, object)),
                None => failure(404, "NotFound", "not found"),
            },
            _ => self.patch(&path, &body, &kind.unwrap_or_default(), &query),
        }
    }

    fn is_too_old(&self, query: &str) -> bool {
        let state = self.state.lock().unwrap();
        let mut pairs = query.split('&');
        let version = pairs.find_map(|pair| pair.strip_prefix("resourceVersion="));
        state.was_cut && version.is_some_and(|version| version.parse() != Ok(state.version))
    }

    fn list(&self, path: &str) -> Response<ResponseBody> {
        let state = self.state.lock().unwrap();
        let items: Vec<_> = state
            .objects
            .iter()
            .filter(|(at, _)| within(at, path))
            .map(|(_, o)| o)
            .collect();
        ok(&json!({"metadata": {"resourceVersion": state.version.to_string()}, "items": items}))
    }

    /// Sends events from now on: the tests change nothing between a list and its watch.
    fn watch(&self, path: String) -> Response<ResponseBody> {
        let lines = stream::unfold(
            (self.events.subscribe(), self.cuts.subscribe(), path),
            |(mut events, mut cuts, path)| async {
                loop {
                    let (at, line) = tokio::select! {
                        event = events.recv() => event.ok()?,
                        _ = cuts.recv() => return None,
                    };
                    if within(&at, &path) {
                        let frame = Ok(Frame::data(Bytes::from(line)));
                        return Some((frame, (events, cuts, path)));
                    }
                }
            },
        );
        Response::new(StreamBody::new(lines).boxed_unsync())
    }

    fn create(&self, path: &str, mut body: Value, query: &str) -> Response<ResponseBody> {
        let at = format!("{path}/{}", body["metadata"]["name"].as_str().unwrap());
        if self.get(&at).is_some() {
            return failure(409, "AlreadyExists", "already exists");
        }
        body["metadata"]["managedFields"] = json!([entry(&body, query, "Update")]);
        ok(&self.store("ADDED", &at, body))
    }

    fn patch(&self, path: &str, body: &Value, kind: &str, query: &str) -> Response<ResponseBody> {
        let status = path.ends_with("/status");
        let at = path.trim_end_matches("/status");
        let Some(mut object) = self.get(at) else {
            return failure(404, "NotFound", "not found");
        };
        if status {
            let mut state = self.state.lock().unwrap();
            if state.conflicts > 0 {
                state.conflicts -= 1;
                return failure(409, "Conflict", "the object has been modified");
            }
        }
        let asked = &body["metadata"]["resourceVersion"];
        if asked.is_string() && *asked != object["metadata"]["resourceVersion"] {
            return failure(409, "Conflict", "the object has been modified");
        }
        match kind {
            "application/json-patch+json" => {
                object["metadata"]["managedFields"] = body[1]["value"].clone();
            }
            _ => merge(&mut object, body),
        }
        if kind.contains("apply") {
            object["metadata"]["managedFields"] = json!([entry(body, query, "Apply")]);
        }
        ok(&self.store("MODIFIED", at, object))
    }
}

/// Reports whether the object at `at` is in the collection `path`, of one or all namespaces.
fn within(at: &str, path: &str) -> bool {
    let collection = at.rsplit_once('/').map_or("", |(collection, _)| collection);
    let parts: Vec<_> = collection.split('/').collect();
    let spread = match parts.iter().position(|part| *part == "namespaces") {
        Some(n) => [&parts[..n], &parts[n + 2..]].concat().join("/"),
        None => collection.to_owned(),
    };
    collection == path || spread == path
}

fn merge(object: &mut Value, patch: &Value) {
    let (Some(fields), Some(patch)) = (object.as_object_mut(), patch.as_object()) else {
        *object = patch.clone();
        return;
    };
    for (key, value) in patch {
        if value.is_null() {
            fields.remove(key);
        } else {
            merge(fields.entry(key.clone()).or_insert(json!({})), value);
        }
    }
}

fn entry(body: &Value, query: &str, operation: &str) -> Value {
    fn fields(value: &Value) -> Value {
        let Some(map) = value.as_object() else {
            return json!({});
        };
        map.iter()
            .map(|(key, value)| (format!("f:{key}"), fields(value)))
            .collect()
    }
    let manager = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("fieldManager="));
    let mut owned = body.clone();
    for field in ["apiVersion", "kind", "metadata"] {
        owned.as_object_mut().unwrap().remove(field);
    }
    json!({"manager": manager, "operation": operation, "fieldsV1": fields(&owned)})
}

fn ok(body: &Value) -> Response<ResponseBody> {
    Response::new(Full::new(Bytes::from(body.to_string())).boxed_unsync())
}

fn failure(code: u16, reason: &str, message: &str) -> Response<ResponseBody> {
    let body = json!({"kind": "Status", "code": code, "reason": reason, "message": message});
    let body = Full::new(Bytes::from(body.to_string())).boxed_unsync();
    Response::builder().status(code).body(body).unwrap()
}
