//! Audit: writes events about requests to a log, in the format of Kubernetes.
//!
//! A policy decides which requests are recorded. An event is written when the user of a request is
//! authenticated, and when the response is complete; long requests, such as watches, have another
//! event when the response starts. A request that is not authenticated has only that event.

mod event;
mod log;
mod policy;

use std::net::IpAddr;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::HeaderValue;
use http::header::HeaderName;
use http::request::Parts;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admission::Notes;
use crate::authentication::Identity;
use crate::authorization::{Attributes, Decision};
use crate::clock::Clock;
use crate::error::StartError;
use crate::negotiation::Media;
use crate::object;
use crate::random::RandomNames;
use crate::response::{BodyError, HttpResponse, ObjectResponse, ResponseBody};
use crate::status::{ApiError, ApiResult};
use event::{AuthenticationMetadata, Event, Origin};
use log::Log;
use policy::{Level, Policy, Recorded, Stage};

/// The header with the ID of a request. A client may choose the ID.
const AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");
/// Subresources whose responses may take long.
const LONG_RUNNING: [&str; 5] = ["attach", "exec", "proxy", "log", "portforward"];

/// The options of the audit log.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AuditOptions {
    /// The policy: an object of the kind `Policy` of `audit.k8s.io/v1`, in YAML or JSON
    /// (`--audit-policy-file`).
    pub policy: String,
    /// Path of the file to which events are appended (`--audit-log-path`). The path `-` is standard
    /// output.
    pub log_path: PathBuf,
}

impl AuditOptions {
    /// Returns the options for a policy and the path of a log.
    #[must_use]
    pub fn new(policy: impl Into<String>, log_path: impl Into<PathBuf>) -> Self {
        Self {
            policy: policy.into(),
            log_path: log_path.into(),
        }
    }
}

/// The audit of a server.
#[derive(Debug)]
pub(crate) struct Audit {
    ids: RandomNames,
    /// `None` if the server has no audit log. Its requests have IDs nevertheless.
    recorder: Option<Arc<Recorder>>,
}

/// The policy and the log of a server.
#[derive(Debug)]
struct Recorder {
    policy: Policy,
    log: Log,
    clock: Clock,
}

impl Audit {
    /// Starts the audit of a server. The log is written by one of `tasks`, until `stop` is
    /// cancelled.
    pub(crate) fn start(
        options: Option<&AuditOptions>,
        ids: RandomNames,
        clock: Clock,
        tasks: &TaskTracker,
        stop: &CancellationToken,
    ) -> Result<Self, StartError> {
        let Some(options) = options else {
            return Ok(Self {
                ids,
                recorder: None,
            });
        };
        let policy = Policy::parse(&options.policy).map_err(|cause| StartError::Option {
            option: "audit policy",
            cause,
        })?;
        let path = &options.log_path;
        let (log, writer) = Log::open(path).map_err(|error| StartError::Option {
            option: "audit log path",
            cause: format!("cannot open {}: {error}", path.display()),
        })?;
        tasks.spawn(writer.run(stop.clone()));
        let recorder = Recorder { policy, log, clock };
        Ok(Self {
            ids,
            recorder: Some(Arc::new(recorder)),
        })
    }

    /// Starts the audit of a request. `source` is the address of the client, if the client is not
    /// in this process.
    pub(crate) fn begin(&self, parts: &Parts, source: Option<IpAddr>) -> RequestAudit {
        let given = parts.headers.get(AUDIT_ID).filter(|id| !id.is_empty());
        let id = match given {
            Some(id) => id.clone(),
            None => HeaderValue::try_from(self.ids.uid())
                .unwrap_or_else(|_| HeaderValue::from_static("")),
        };
        let recording = self.recorder.as_ref().map(|recorder| {
            let text = String::from_utf8_lossy(id.as_bytes()).into_owned();
            let origin = Origin::new(text, parts, source, recorder.clock.now());
            Box::new(Recording {
                recorder: recorder.clone(),
                state: Mutex::new(State::Received(origin)),
            })
        });
        RequestAudit { id, recording }
    }
}

/// The audit of one request.
#[derive(Debug)]
pub(crate) struct RequestAudit {
    id: HeaderValue,
    /// `None` if the server has no audit log.
    recording: Option<Box<Recording>>,
}

/// The recording of one request. The last event is written when the recording is dropped.
#[derive(Debug)]
struct Recording {
    recorder: Arc<Recorder>,
    state: Mutex<State>,
}

/// The progress of a recording.
#[derive(Debug)]
enum State {
    /// The user is not known yet.
    Received(Origin),
    Recorded(Box<RecordedRequest>),
    /// No more events are written: the policy excludes the request, or its last event is written.
    Ended,
}

/// A request that is recorded.
#[derive(Debug)]
struct RecordedRequest {
    recorded: Recorded,
    /// The next event.
    event: Event,
    /// Whether there is an event when the response starts.
    is_long_running: bool,
    is_authenticated: bool,
}

impl RequestAudit {
    /// Returns the ID of the request.
    pub(crate) fn id(&self) -> &HeaderValue {
        &self.id
    }

    /// Records the user, before impersonation, and writes the first event.
    pub(crate) fn authenticated(&self, user: &Identity, attributes: &Attributes<'_>) {
        self.evaluate(Some(user), attributes);
        let Some(recording) = &self.recording else {
            return;
        };
        if let State::Recorded(request) = &*recording.state.lock() {
            recording.recorder.write(request);
        }
    }

    /// Records that the request has no valid credentials.
    pub(crate) fn unauthenticated(&self, attributes: &Attributes<'_>) {
        self.evaluate(None, attributes);
    }

    fn evaluate(&self, user: Option<&Identity>, attributes: &Attributes<'_>) {
        let Some(recording) = &self.recording else {
            return;
        };
        let mut state = recording.state.lock();
        let State::Received(origin) = std::mem::replace(&mut *state, State::Ended) else {
            return;
        };
        let recorded = recording.recorder.policy.evaluate(user, attributes);
        if recorded.level == Level::None {
            return;
        }
        let is_authenticated = user.is_some();
        let is_long = matches!(attributes.verb.as_ref(), "watch" | "proxy")
            || LONG_RUNNING.contains(&attributes.subresource.as_ref());
        *state = State::Recorded(Box::new(RecordedRequest {
            recorded: recorded.clone(),
            event: Event::received(recorded.level, origin, user, attributes),
            is_long_running: attributes.is_resource_request && is_long || !is_authenticated,
            is_authenticated,
        }));
    }

    /// Records the impersonated user. `constraint` is the verb of a constrained mode of
    /// impersonation.
    pub(crate) fn impersonated(&self, user: &Identity, constraint: Option<String>) {
        self.change(|request| {
            request.event.impersonated_user = Some(user.into());
            request.event.authentication_metadata =
                constraint.map(|constraint| AuthenticationMetadata {
                    impersonation_constraint: constraint,
                });
        });
    }

    /// Records the decision of the authorizers.
    pub(crate) fn authorized(&self, decision: &Decision) {
        self.change(|request| {
            let (verdict, reason) = match (&decision.error, decision.is_allowed()) {
                (_, true) => (Some("allow"), decision.reason.as_str()),
                (Some(_), false) => (None, "internal error"),
                (None, false) => (Some("forbid"), decision.reason.as_str()),
            };
            let annotations = &mut request.event.annotations;
            if let Some(verdict) = verdict {
                annotations.insert("authorization.k8s.io/decision".into(), verdict.to_owned());
            }
            annotations.insert("authorization.k8s.io/reason".into(), reason.to_owned());
        });
    }

    /// Adds annotations of admission to the event.
    pub(crate) fn annotate(&self, notes: &Notes) {
        self.change(|request| {
            let mut annotations = notes.annotations();
            if request.event.level >= Level::Request {
                annotations.extend(notes.request_annotations());
            }
            for (key, value) in annotations {
                request.event.annotations.entry(key.into()).or_insert(value);
            }
        });
    }

    /// Records the object in the body of a create or update. `normalize` sets the defaults of the
    /// recorded copy. If that fails, the request fails, too, and its object is recorded unchanged.
    pub(crate) fn request_object(
        &self,
        object: &Value,
        normalize: impl FnOnce(&mut Value) -> ApiResult<()>,
    ) {
        self.change(|request| {
            request.event.complete_reference(object);
            if request.event.level >= Level::Request {
                let mut copy = request.recorded.copy(object);
                request.event.request_object = match normalize(&mut copy) {
                    Ok(()) => Some(copy),
                    Err(_) => Some(request.recorded.copy(object)),
                };
            }
        });
    }

    /// Records the options in the body of a delete.
    pub(crate) fn delete_options(&self, options: &Value) {
        self.change(|request| {
            if request.event.level >= Level::Request {
                let mut options = options.clone();
                // Kubernetes writes its internal version of the options.
                object::set_field(&mut options, "kind", json!("DeleteOptions"));
                object::set_field(&mut options, "apiVersion", json!("meta.k8s.io/__internal"));
                request.event.request_object = Some(options);
            }
        });
    }

    /// Records a patch. Kubernetes writes the body as it is, and loses the event if the body is
    /// YAML; here the patch of server-side apply is written as JSON.
    pub(crate) fn patch(&self, patch: &Value) {
        self.change(|request| {
            if request.event.level >= Level::Request {
                request.event.request_object = Some(patch.clone());
            }
        });
    }

    /// Records the object in the response of a verb.
    pub(crate) fn response(&self, media: Media, response: &mut ObjectResponse) {
        self.change(|request| {
            let has_object = request.event.level >= Level::RequestResponse;
            if let Some(status) = response.status() {
                request.event.set_status(status);
            }
            if has_object {
                let object = response.decoded(media);
                request.event.response_object = object.map(|object| request.recorded.copy(&object));
            }
        });
    }

    /// Records the error with which the request failed.
    pub(crate) fn failed(&self, error: &ApiError) {
        self.change(|request| {
            let status = error.to_status();
            request.event.set_status(&status);
            if request.event.level >= Level::RequestResponse {
                request.event.response_object = Some(status);
            }
        });
    }

    /// Sets the ID of the request in the headers of its response, and writes the last event when
    /// the body is sent.
    pub(crate) fn respond(self, mut response: HttpResponse) -> HttpResponse {
        let code = response.status().as_u16();
        response.headers_mut().insert(AUDIT_ID, self.id);
        let Some(recording) = self.recording else {
            return response;
        };
        let mut state = recording.state.lock();
        let State::Recorded(request) = &mut *state else {
            drop(state);
            return response;
        };
        request.event.set_code(code);
        let is_authenticated = request.is_authenticated;
        if request.is_long_running {
            recording.recorder.reach(request, Stage::ResponseStarted);
        }
        if !is_authenticated {
            *state = State::Ended;
        }
        drop(state);
        response.map(|body| {
            BodyExt::boxed_unsync(AuditedBody {
                body,
                _recording: recording,
            })
        })
    }

    fn change(&self, change: impl FnOnce(&mut RecordedRequest)) {
        if let Some(recording) = &self.recording
            && let State::Recorded(request) = &mut *recording.state.lock()
        {
            change(request);
        }
    }
}

impl Recorder {
    /// Writes the event of a stage.
    fn reach(&self, request: &mut RecordedRequest, stage: Stage) {
        request.event.reach(stage, self.clock.now());
        self.write(request);
    }

    /// Writes the event, unless the policy omits its stage.
    fn write(&self, request: &RecordedRequest) {
        if request.recorded.omit_stages.contains(&request.event.stage) {
            return;
        }
        match request.event.to_line() {
            Ok(line) => self.log.write(line),
            Err(error) => tracing::warn!(%error, "cannot encode an audit event"),
        }
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let State::Recorded(request) = self.state.get_mut() else {
            return;
        };
        if std::thread::panicking() {
            request.event.set_status(&json!({
                "status": "Failure", "message": "APIServer panic'd", "reason": "InternalError",
                "code": 500,
            }));
            return self.recorder.reach(request, Stage::Panic);
        }
        if request.event.response_status.is_none() {
            // The client closed the connection before there was a response.
            request.event.set_status(&json!({
                "status": "Success", "message": "Connection closed early", "code": 200,
            }));
            if request.is_long_running {
                self.recorder.reach(request, Stage::ResponseStarted);
            }
        }
        self.recorder.reach(request, Stage::ResponseComplete);
    }
}

impl Recorded {
    /// Returns a copy of an object, a list or a table, without managed fields if the policy omits
    /// them.
    fn copy(&self, object: &Value) -> Value {
        let mut copy = object.clone();
        if self.omit_managed_fields {
            remove_managed_fields(&mut copy);
            for (list, path) in [("items", None), ("rows", Some("object"))] {
                let items = copy.get_mut(list).and_then(Value::as_array_mut);
                for item in items.into_iter().flatten() {
                    match path {
                        None => remove_managed_fields(item),
                        Some(path) => item
                            .get_mut(path)
                            .into_iter()
                            .for_each(remove_managed_fields),
                    }
                }
            }
        }
        copy
    }
}

fn remove_managed_fields(object: &mut Value) {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata {
        metadata.remove("managedFields");
    }
}

/// The body of a recorded response. The last event is written when the body is dropped, which is
/// after it is sent.
struct AuditedBody {
    body: ResponseBody,
    _recording: Box<Recording>,
}

impl Body for AuditedBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
