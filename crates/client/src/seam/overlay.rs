//! Plan mode: writes are sent as dry runs, and their results are kept in memory.

mod dry_run;
mod object;
mod read;
mod write;

use std::collections::BTreeMap;

use http::Request;
use kube::client::Body;
use kube::core::Status;
use parking_lot::Mutex;
use serde_json::Value;
use tower::{BoxError, ServiceExt};

use self::dry_run::fetch;
use super::fault::{json, status_response};
use crate::RequestInfo;
use crate::transport::{HttpResponse, Next, boxed};

/// Maximum number of changes in a plan, to bound memory. Further writes fail, because a plan must
/// be complete.
const OBJECTS_MAX: usize = 10_000;

/// A write to which a [`Seam`](crate::Seam) in plan mode responded. The server has not stored it.
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
    /// Reason why the server has not validated the write; `None` if it has.
    pub unchecked: Option<String>,
}

/// How an object was written.
#[derive(Default)]
struct Written {
    /// Field manager of a server-side apply of the object.
    applier: Option<String>,
    unchecked: Option<String>,
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
    /// Field managers of objects that only one manager has applied since the plan started.
    appliers: BTreeMap<Key, String>,
    /// The objects on the server before their first change; `None` for objects that did not exist.
    originals: BTreeMap<Key, Option<Value>>,
    changes: Vec<PlannedChange>,
}

/// Group, resource, namespace and name of an object. The version is not part of the key: an object
/// is returned in the version in which it was written.
type Key = (String, String, String, String);

fn key(info: &RequestInfo, name: &str) -> Key {
    // A request about a Namespace has its name as namespace, a request to create one has none.
    let namespace = info
        .namespace
        .clone()
        .filter(|_| info.plural != "namespaces");
    let namespace = namespace.unwrap_or_default();
    (
        info.group.clone(),
        info.plural.clone(),
        namespace,
        name.to_owned(),
    )
}

/// Reports whether a write is about the work of the operator itself: events that it posts, and
/// leases by which it elects a leader. Such writes are not part of a plan.
fn is_bookkeeping(info: &RequestInfo) -> bool {
    matches!(
        (info.group.as_str(), info.plural.as_str()),
        ("" | "events.k8s.io", "events") | ("coordination.k8s.io", "leases")
    )
}

/// Reports whether a request opens a connection to a process, which may change anything.
fn connects(info: &RequestInfo) -> bool {
    let subresource = info.subresource.as_deref().unwrap_or_default();
    let subresource = subresource.split('/').next();
    matches!(
        subresource,
        Some("exec" | "attach" | "portforward" | "proxy")
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

fn unsupported(info: &RequestInfo) -> PlanError {
    let what = match info.is_resource {
        true => info.resource(),
        false => info.path.clone(),
    };
    let message = format!("plan mode cannot {} {what} without sending it", info.verb);
    refuse(405, "MethodNotAllowed", message)
}

impl Overlay {
    pub(super) fn changes(&self, skipped: usize) -> Vec<PlannedChange> {
        let state = self.state.lock();
        state.changes.iter().skip(skipped).cloned().collect()
    }

    /// Responds to a request from the plan, or sends the request to the server.
    pub(super) async fn respond<S: Next>(
        &self,
        server: S,
        request: Request<Body>,
        info: &RequestInfo,
        body: &[u8],
    ) -> Result<HttpResponse, BoxError> {
        if !RequestInfo::may_change(&request) && info.is_write() {
            return server.oneshot(request).await;
        }
        let outcome = match info.verb.as_ref() {
            _ if !info.is_resource && !info.is_write() => return server.oneshot(request).await,
            _ if connects(info) => Err(unsupported(info)),
            "get" => self.get(server, request, info).await,
            "list" => self.list(server, request, info).await,
            "create" | "update" | "patch" | "delete" | "deletecollection" => {
                let _write_lock = self.write_lock.lock().await;
                self.write(server, request, info, body).await
            }
            "watch" => return server.oneshot(request).await,
            _ if info.is_write() => Err(unsupported(info)),
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
        by: Written,
    ) -> Result<(), PlanError> {
        let mut state = self.state.lock();
        let key = key(info, name);
        let full = state.objects.len() >= OBJECTS_MAX || state.changes.len() >= OBJECTS_MAX;
        if full {
            let message = format!("a plan contains at most {OBJECTS_MAX} changes");
            return Err(refuse(507, "Unknown", message));
        }
        let is_first = !state.originals.contains_key(&key);
        let original = state.originals.entry(key.clone());
        original.or_insert_with(|| before.clone());
        match by.applier {
            Some(manager) if is_first => drop(state.appliers.insert(key.clone(), manager)),
            Some(manager) if state.appliers.get(&key) == Some(&manager) => {}
            _ => drop(state.appliers.remove(&key)),
        }
        state.objects.insert(key, after.clone());
        let mut info = info.clone();
        info.name = Some(name.to_owned());
        state.changes.push(PlannedChange {
            info,
            before,
            after,
            unchecked: by.unchecked,
        });
        Ok(())
    }
}
