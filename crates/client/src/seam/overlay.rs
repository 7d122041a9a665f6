//! Plan mode: writes that are kept here instead of being sent.

mod object;
mod read;
mod write;

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{Request, header};
use http_body_util::BodyExt;
use kube::client::Body;
use kube::core::Status;
use parking_lot::Mutex;
use serde_json::Value;
use tower::{BoxError, Service, ServiceExt};

use super::fault::{answer_of, json};
use crate::RequestInfo;
use crate::transport::{Answer, boxed};

/// How many objects a plan may change. A longer one is refused: nothing of a plan may be forgotten.
const OBJECTS_MAX: usize = 10_000;

/// A write that plan mode answered.
///
/// # Examples
/// ```
/// use opkit_client::Seam;
/// let seam = Seam::new();
/// seam.start_plan();
/// for change in seam.end_plan() {
///     println!("{} {}", change.info.verb, change.info.resource());
/// }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PlannedChange {
    /// What was asked for. A create has the name that the object got.
    pub info: RequestInfo,
    /// The object before; none if there was none.
    pub before: Option<Value>,
    /// The object after; none if it went.
    pub after: Option<Value>,
}

/// The writes so far: a state over that of the server.
#[derive(Default)]
pub(super) struct Overlay {
    state: Mutex<State>,
    /// Held by one write at a time, over what it has to read from the server.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<Key, Option<Value>>,
    /// What the server had of each when it was first changed.
    originals: BTreeMap<Key, Option<Value>>,
    changes: Vec<PlannedChange>,
}

/// Group, resource, namespace and name. The version is left out: an object shows itself in the
/// version in which it was written.
type Key = (String, String, String, String);

fn key(info: &RequestInfo, name: &str) -> Key {
    let namespace = info.namespace.clone().unwrap_or_default();
    (
        info.group.clone(),
        info.plural.clone(),
        namespace,
        name.to_owned(),
    )
}

/// What an inner service must be able to do.
trait Server:
    Service<Request<Body>, Response = Answer, Error = BoxError, Future: Send> + Clone + Send + 'static
{
}

impl<S> Server for S where
    S: Service<Request<Body>, Response = Answer, Error = BoxError, Future: Send>
        + Clone
        + Send
        + 'static
{
}

/// A refusal, or a failure on the way.
enum Stop {
    Status(Box<Status>),
    Failure(BoxError),
}

impl<E: Into<BoxError>> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Failure(error.into())
    }
}

fn refuse(code: u16, reason: &str, message: String) -> Stop {
    Stop::Status(Box::new(Status::failure(&message, reason).with_code(code)))
}

impl Overlay {
    pub(super) fn changes(&self) -> Vec<PlannedChange> {
        self.state.lock().changes.clone()
    }

    /// Answers a request from here, or sends it.
    #[expect(
        private_bounds,
        reason = "the bounds of every caller, under a shorter name"
    )]
    pub(super) async fn answer<S: Server>(
        &self,
        server: S,
        request: Request<Body>,
        info: &RequestInfo,
        body: &[u8],
    ) -> Result<Answer, BoxError> {
        if !info.is_resource || info.changes_nothing(request.uri()) {
            return server.oneshot(request).await;
        }
        let outcome = match info.verb.as_ref() {
            "get" => self.get(server, request, info).await,
            "list" => self.list(server, request, info).await,
            "create" | "update" | "patch" | "delete" | "deletecollection" => {
                let _turn = self.turn.lock().await;
                self.write(server, request, info, body).await
            }
            _ => return server.oneshot(request).await,
        };
        match outcome {
            Ok(answer) => Ok(answer),
            Err(Stop::Status(status)) => answer_of(&status),
            Err(Stop::Failure(error)) => Err(error),
        }
    }

    /// The object of a name as it is now: what was written, else what the server has.
    async fn load<S: Server>(
        &self,
        server: S,
        request: &http::request::Parts,
        info: &RequestInfo,
        name: &str,
    ) -> Result<Option<Value>, Stop> {
        if let Some(known) = self.state.lock().objects.get(&key(info, name)) {
            return Ok(known.clone());
        }
        let path = info.object_path(name);
        let path = path.map_err(|cause| refuse(400, "BadRequest", cause.to_string()))?;
        let (code, body) = fetch(server, request, &path).await?;
        match code {
            404 => Ok(None),
            200..300 => Ok(Some(serde_json::from_slice(&body)?)),
            code => match serde_json::from_slice::<Status>(&body) {
                Ok(status) => Err(Stop::Status(Box::new(status))),
                Err(_) => Err(refuse(code, "Unknown", format!("GET {path} failed"))),
            },
        }
    }

    fn store(
        &self,
        info: &RequestInfo,
        name: &str,
        before: Option<Value>,
        after: Option<Value>,
    ) -> Result<(), Stop> {
        let mut state = self.state.lock();
        let key = key(info, name);
        let full = state.objects.len() >= OBJECTS_MAX || state.changes.len() >= OBJECTS_MAX;
        if full {
            let message = format!("a plan holds at most {OBJECTS_MAX} changes");
            return Err(refuse(507, "Unknown", message));
        }
        let original = state.originals.entry(key.clone());
        original.or_insert_with(|| before.clone());
        state.objects.insert(key, after.clone());
        let mut info = info.clone();
        info.name = Some(name.to_owned());
        state.changes.push(PlannedChange {
            info,
            before,
            after,
        });
        Ok(())
    }
}

/// Reads `path` from the server, in JSON, with the headers of `request` that say who asks.
async fn fetch<S: Server>(
    server: S,
    request: &http::request::Parts,
    path: &str,
) -> Result<(u16, Bytes), Stop> {
    let mut get = Request::get(path).body(Body::empty())?;
    if let Some(authority) = request.uri.authority() {
        let mut parts = get.uri().clone().into_parts();
        parts.scheme = request.uri.scheme().cloned();
        parts.authority = Some(authority.clone());
        *get.uri_mut() = http::Uri::from_parts(parts)?;
    }
    for (name, value) in &request.headers {
        // What is read here is read as it is: nobody decompresses it.
        let about_body = [
            header::CONTENT_TYPE,
            header::CONTENT_LENGTH,
            header::ACCEPT,
            header::ACCEPT_ENCODING,
        ];
        if !about_body.contains(name) {
            get.headers_mut().append(name, value.clone());
        }
    }
    get.headers_mut().insert(
        header::ACCEPT,
        http::HeaderValue::from_static("application/json"),
    );
    let answer = server.oneshot(get).await?;
    let code = answer.status().as_u16();
    Ok((code, answer.into_body().collect().await?.to_bytes()))
}
