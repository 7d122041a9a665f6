//! Small scripted API server. The program under `benches/peers` that tests kube-runtime compiles
//! the same file, so that both are tested in the same way.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::watch;

type ResponseBody = UnsyncBoxBody<Bytes, Infallible>;

/// Server with config maps and secrets in one namespace, which can be listed in pages and watched.
/// Cloning is cheap.
#[derive(Clone)]
pub(crate) struct Server {
    state: Arc<Mutex<State>>,
    changed: watch::Sender<()>,
}

struct State {
    version: u64,
    objects: BTreeMap<(&'static str, String), Value>,
    /// Watch events: resourceVersion, resource, and line to send.
    history: Vec<(u64, &'static str, String)>,
    /// Whether changes are not sent to watches.
    in_gap: bool,
    /// resourceVersion before which watches can no longer start.
    expired: u64,
    /// Objects per page, regardless of the requested limit.
    page: usize,
    /// Whether pages after the first are held back.
    held: bool,
    /// Resource whose watches fail.
    failing: Option<&'static str>,
}

impl Server {
    pub(crate) fn new(page: usize) -> Self {
        Self {
            state: Arc::new(Mutex::new(State {
                version: 1,
                objects: BTreeMap::new(),
                history: Vec::new(),
                in_gap: false,
                expired: 0,
                page,
                held: false,
                failing: None,
            })),
            changed: watch::Sender::new(()),
        }
    }

    pub(crate) fn client(&self) -> kube::Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move { Ok::<_, Infallible>(server.respond(request.uri()).await) }
        });
        kube::Client::new(service, "d")
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock().unwrap());
        self.changed.send_replace(());
    }

    /// Creates or updates an object. `fields` are all fields except the name.
    pub(crate) fn put(&self, resource: &'static str, name: &str, mut fields: Value) {
        self.change(|state| {
            state.version += 1;
            let key = (resource, name.to_owned());
            let event = match state.objects.contains_key(&key) {
                true => "MODIFIED",
                false => "ADDED",
            };
            let metadata = &mut fields["metadata"];
            metadata["namespace"] = json!("d");
            metadata["name"] = json!(name);
            metadata["uid"] = json!(format!("uid-of-{name}"));
            metadata["resourceVersion"] = json!(state.version.to_string());
            state.record(resource, event, &fields);
            state.objects.insert(key, fields);
        });
    }

    pub(crate) fn delete(&self, resource: &'static str, name: &str) {
        self.change(|state| {
            state.version += 1;
            let Some(mut object) = state.objects.remove(&(resource, name.to_owned())) else {
                return;
            };
            object["metadata"]["resourceVersion"] = json!(state.version.to_string());
            state.record(resource, "DELETED", &object);
        });
    }

    /// Sends no events to watches until [`expire`](Server::expire).
    pub(crate) fn begin_gap(&self) {
        self.change(|state| state.in_gap = true);
    }

    /// Ends every watch with the status 410, and refuses to resume watches from earlier versions.
    pub(crate) fn expire(&self) {
        self.change(|state| {
            state.in_gap = false;
            state.version += 1;
            state.expired = state.version;
        });
    }

    /// Sets whether pages after the first are held back.
    pub(crate) fn hold_pages(&self, held: bool) {
        self.change(|state| state.held = held);
    }

    /// Fails all watches of a resource from now on.
    pub(crate) fn fail_watches(&self, resource: &'static str) {
        self.change(|state| state.failing = Some(resource));
    }

    async fn respond(&self, uri: &http::Uri) -> Response<ResponseBody> {
        let resource = match uri.path().rsplit('/').next() {
            Some("secrets") => "secrets",
            _ => "configmaps",
        };
        let query = uri.query().unwrap_or_default().to_owned();
        let value = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(n, _)| *n == name).map(|(_, v)| v.to_owned())
        };
        if value("sendInitialEvents").is_some() {
            return refusal(400, "streaming lists are not supported");
        }
        if value("watch").is_none() {
            let begin = value("continue").map(|token| token.parse().unwrap());
            return self.list(resource, begin).await;
        }
        if self.state.lock().unwrap().failing == Some(resource) {
            return refusal(500, "watches of this resource fail");
        }
        let version = value("resourceVersion").unwrap_or_default();
        self.watch(resource, version.parse().unwrap_or(0))
    }

    async fn list(&self, resource: &str, begin: Option<usize>) -> Response<ResponseBody> {
        if begin.is_some() {
            let mut changed = self.changed.subscribe();
            while self.state.lock().unwrap().held {
                let _ = changed.changed().await;
            }
        }
        let state = self.state.lock().unwrap();
        let objects = state.objects.iter().filter(|((r, _), _)| *r == resource);
        let objects: Vec<_> = objects.map(|(_, object)| object).collect();
        let begin = begin.unwrap_or(0);
        let end = objects.len().min(begin + state.page);
        let token = match end < objects.len() {
            true => end.to_string(),
            false => String::new(),
        };
        let list = json!({
            "kind": "List", "apiVersion": "v1",
            "metadata": {"resourceVersion": state.version.to_string(), "continue": token},
            "items": objects[begin.min(end)..end],
        });
        Response::new(Full::from(list.to_string()).boxed_unsync())
    }

    fn watch(&self, resource: &'static str, version: u64) -> Response<ResponseBody> {
        let server = self.clone();
        let from = (server, self.changed.subscribe(), version, false);
        let lines = stream::unfold(
            from,
            move |(server, mut changed, mut sent, over)| async move {
                if over {
                    return None;
                }
                loop {
                    let next = server.state.lock().unwrap().after(resource, sent);
                    match next {
                        Next::Line(version, line) => {
                            sent = version;
                            let frame = frame(line);
                            return Some((frame, (server, changed, sent, false)));
                        }
                        Next::Expired => {
                            let status = json!({"type": "ERROR", "object": status(410, "too old")});
                            let frame = frame(format!("{status}\n"));
                            return Some((frame, (server, changed, sent, true)));
                        }
                        Next::Nothing => changed.changed().await.ok()?,
                    }
                }
            },
        );
        Response::new(BodyExt::boxed_unsync(StreamBody::new(lines)))
    }
}

enum Next {
    Line(u64, String),
    Expired,
    Nothing,
}

impl State {
    fn record(&mut self, resource: &'static str, event: &str, object: &Value) {
        if !self.in_gap {
            let line = format!("{}\n", json!({"type": event, "object": object}));
            self.history.push((self.version, resource, line));
        }
    }

    fn after(&self, resource: &str, version: u64) -> Next {
        if version < self.expired {
            return Next::Expired;
        }
        let mut lines = self.history.iter();
        let next = lines.find(|(at, r, _)| *at > version && *r == resource);
        match next {
            Some((at, _, line)) => Next::Line(*at, line.clone()),
            None => Next::Nothing,
        }
    }
}

fn frame(line: String) -> Result<Frame<Bytes>, Infallible> {
    Ok(Frame::data(Bytes::from(line)))
}

fn status(code: u16, message: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "message": message, "reason": "AsScripted",
    })
}

fn refusal(code: u16, message: &str) -> Response<ResponseBody> {
    let mut response = Response::new(Full::from(status(code, message).to_string()).boxed_unsync());
    *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
    response
}
