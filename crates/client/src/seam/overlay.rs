//! Plan mode: writes are stored in memory instead of being sent.

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
use tower::{BoxError, ServiceExt};

use super::fault::{json, status_response};
use crate::RequestInfo;
use crate::transport::{HttpResponse, Next, boxed};

/// Maximum number of changes in a plan, to bound memory. Further writes fail, because a plan must
/// be complete.
const OBJECTS_MAX: usize = 10_000;

/// A write to which a [`Seam`](crate::Seam) in plan mode responded without sending the write.
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
    /// Verb, resource and object of the request. For a create, contains the name of the new object.
    pub info: RequestInfo,
    /// Object before the write; `None` if it did not exist.
    pub before: Option<Value>,
    /// Object after the write; `None` if it was removed.
    pub after: Option<Value>,
}

/// The objects that were written in plan mode, which override the objects of the server.
#[derive(Default)]
pub(super) struct Overlay {
    state: Mutex<State>,
    /// Held during a write, including the reads from the server that the write needs.
    write_lock: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    /// The written objects; `None` for objects that were removed.
    objects: BTreeMap<Key, Option<Value>>,
    /// The objects on the server before their first change; `None` for objects that did not exist.
    originals: BTreeMap<Key, Option<Value>>,
    changes: Vec<PlannedChange>,
}

/// Group, resource, namespace and name of an object. The version is not part of the key: an object
/// is returned in the version in which it was written.
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

/// The failure of a request in plan mode.
enum PlanError {
    /// The request is rejected with a status.
    Status(Box<Status>),
    /// A request to the server failed.
    Failure(BoxError),
}

impl<E: Into<BoxError>> From<E> for PlanError {
    fn from(error: E) -> Self {
        Self::Failure(error.into())
    }
}

fn refuse(code: u16, reason: &str, message: String) -> PlanError {
    PlanError::Status(Box::new(Status::failure(&message, reason).with_code(code)))
}

impl Overlay {
    pub(super) fn changes(&self) -> Vec<PlannedChange> {
        self.state.lock().changes.clone()
    }

    /// Responds to a request from the plan, or sends the request to the server.
    pub(super) async fn respond<S: Next>(
        &self,
        server: S,
        request: Request<Body>,
        info: &RequestInfo,
        body: &[u8],
    ) -> Result<HttpResponse, BoxError> {
        if !info.is_resource || info.is_dry_run_or_review(request.uri()) {
            return server.oneshot(request).await;
        }
        let outcome = match info.verb.as_ref() {
            "get" => self.get(server, request, info).await,
            "list" => self.list(server, request, info).await,
            "create" | "update" | "patch" | "delete" | "deletecollection" => {
                let _write_lock = self.write_lock.lock().await;
                self.write(server, request, info, body).await
            }
            _ => return server.oneshot(request).await,
        };
        match outcome {
            Ok(response) => Ok(response),
            Err(PlanError::Status(status)) => status_response(&status),
            Err(PlanError::Failure(error)) => Err(error),
        }
    }

    /// Returns the current object with a name, from the plan or else from the server.
    async fn load<S: Next>(
        &self,
        server: S,
        request: &http::request::Parts,
        info: &RequestInfo,
        name: &str,
    ) -> Result<Option<Value>, PlanError> {
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
                Ok(status) => Err(PlanError::Status(Box::new(status))),
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
    ) -> Result<(), PlanError> {
        let mut state = self.state.lock();
        let key = key(info, name);
        let full = state.objects.len() >= OBJECTS_MAX || state.changes.len() >= OBJECTS_MAX;
        if full {
            let message = format!("a plan contains at most {OBJECTS_MAX} changes");
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

/// Reads `path` from the server in JSON. Copies the headers of `request`, such as impersonation,
/// except headers about content types, lengths and encodings.
async fn fetch<S: Next>(
    server: S,
    request: &http::request::Parts,
    path: &str,
) -> Result<(u16, Bytes), PlanError> {
    let mut get = Request::get(path).body(Body::empty())?;
    if let Some(authority) = request.uri.authority() {
        let mut parts = get.uri().clone().into_parts();
        parts.scheme = request.uri.scheme().cloned();
        parts.authority = Some(authority.clone());
        *get.uri_mut() = http::Uri::from_parts(parts)?;
    }
    for (name, value) in &request.headers {
        // The response is not decompressed, so no encoding may be accepted.
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
    let response = server.oneshot(get).await?;
    let code = response.status().as_u16();
    Ok((code, response.into_body().collect().await?.to_bytes()))
}
