//! The effect seam, a layer that records requests, injects faults, and responds in place of the
//! server.
//!
//! A [`Seam`] numbers and records requests and responses, injects faults according to [`Rule`]s,
//! and in plan mode responds to writes without sending them. It is a tower layer, so that all
//! requests of a [`kube::Client`] pass through it, those of a user's own [`kube::Api`] included. A
//! client without a seam does not run any code of this module.
//!
//! Recorded bodies are truncated, and secrets are removed before the bodies are stored: the data of
//! Secrets, the tokens in token requests and reviews, and every `Authorization` header.

mod fault;
mod overlay;
mod record;
mod rule;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use futures::FutureExt;
use futures::future::BoxFuture;
use http::Request;
use kube::client::Body;
use parking_lot::Mutex;
use tokio::time::Instant;
use tower::{BoxError, Layer, Service, ServiceExt};

use self::fault::{CutBody, status_response};
pub(crate) use self::fault::{Dropped, Refused};
use self::overlay::Overlay;
pub use self::overlay::PlannedChange;
use self::record::Recorder;
pub use self::record::{Exchange, RecordedBody, RecordedOutcome};
pub use self::rule::{Effect, Rule};
use crate::RequestInfo;
use crate::transport::{HttpResponse, boxed};

/// A layer that records the requests of one or more clients, injects faults, and can respond in
/// place of the server. Clones share the same state.
///
/// # Examples
/// ```
/// use kube::core::Status;
/// use opkit_client::{Effect, Rule, Seam};
/// # use k8s_openapi::api::core::v1::ConfigMap;
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// # let client = kube::Client::new(tower::service_fn(|_: http::Request<kube::client::Body>| async {
/// #     Ok::<_, std::convert::Infallible>(http::Response::new(kube::client::Body::from(b"{}".to_vec())))
/// # }), "default");
/// let seam = Seam::new();
/// let client = seam.wrap(client);
/// seam.add(Rule::new(Effect::Fail(Box::new(Status::failure("not today", "Forbidden").with_code(403))))
///     .verb("get")
///     .resource("configmaps")
///     .times(1));
///
/// let api: kube::Api<ConfigMap> = kube::Api::default_namespaced(client);
/// assert!(api.get("settings").await.is_err());
/// assert!(api.get("settings").await.is_ok());
/// let seen: Vec<String> = seam.exchanges().iter().map(|exchange| exchange.to_string()).collect();
/// assert_eq!(seen[0], "#1 get configmaps default/settings -> 403");
/// assert_eq!(seen[1], "#2 get configmaps default/settings -> 200");
/// # });
/// ```
#[derive(Clone)]
pub struct Seam {
    inner: Arc<Inner>,
}

struct Inner {
    origin: Instant,
    numbers: AtomicU64,
    recorder: Recorder,
    rules: Mutex<Vec<Rule>>,
    overlay: Mutex<Option<Arc<Overlay>>>,
}

impl Default for Seam {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Seam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seam")
            .field("requests", &self.requests())
            .finish_non_exhaustive()
    }
}

impl Seam {
    /// Creates a seam that records the last 1,024 requests and their responses. Of each body, the
    /// seam keeps the first 64 KiB.
    pub fn new() -> Self {
        Self::with_limits(1024, 64 << 10)
    }

    /// Creates a seam that records the last `exchanges_max` requests and their responses. Of each
    /// body, the seam keeps the first `body_max` bytes.
    fn with_limits(exchanges_max: usize, body_max: usize) -> Self {
        Self {
            inner: Arc::new(Inner {
                origin: Instant::now(),
                numbers: AtomicU64::new(0),
                recorder: Recorder::new(exchanges_max, body_max),
                rules: Mutex::default(),
                overlay: Mutex::default(),
            }),
        }
    }

    /// Returns the layer, for [`ClientOptions::seam`](crate::ClientOptions::seam) or any tower
    /// stack.
    pub fn layer(&self) -> SeamLayer {
        SeamLayer { seam: self.clone() }
    }

    /// Returns a client whose requests pass through this seam and then through `client`. The seam
    /// does not record what `client` itself adds, such as retries.
    pub fn wrap(&self, client: kube::Client) -> kube::Client {
        let namespace = client.default_namespace().to_owned();
        let service = tower::service_fn(move |request: Request<Body>| {
            let client = client.clone();
            async move {
                let response = client.send(request).await.map_err(BoxError::from)?;
                Ok::<_, BoxError>(response.map(boxed))
            }
        });
        kube::Client::new(self.layer().layer(service), namespace)
    }

    /// Returns the number of requests so far.
    pub fn requests(&self) -> u64 {
        self.inner.numbers.load(Ordering::Relaxed)
    }

    /// Returns the recorded requests and responses, oldest first.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.inner.recorder.exchanges()
    }

    /// Clears the recorded requests and responses. The numbering of requests continues.
    pub fn forget(&self) {
        self.inner.recorder.clear();
    }

    /// Adds a rule. If several rules apply to a request, the delays of these rules are added up. Of
    /// the effects that are not delays, only the first is used, in the order in which rules were
    /// added.
    pub fn add(&self, rule: Rule) {
        self.inner.rules.lock().push(rule);
    }

    /// Removes all rules.
    pub fn clear_rules(&self) {
        self.inner.rules.lock().clear();
    }

    /// Starts plan mode: the server stores no write, and later gets and lists include the writes.
    ///
    /// Each write is sent as a dry run, so that the server sets defaults, calls admission webhooks
    /// and validates, and the response is kept here. A write that the server cannot process as a
    /// dry run is not sent, and [`PlannedChange::unchecked`] has the reason: a webhook has side
    /// effects, or only the plan knows the object or its namespace. The result of such a write is
    /// an approximation: apply merges the configuration into the object, without field owners, and
    /// removes no fields; strategic merge patches replace lists.
    ///
    /// Evictions, deletions of collections, events and leases are not sent either. Events and
    /// leases are not kept, and are no changes of the plan. Requests that open a connection to a
    /// process, and subresources such as `binding` and `token`, are refused. Watches show the
    /// objects of the server only. Dry runs of the caller and reviews of access or tokens are sent,
    /// since they change nothing.
    pub fn start_plan(&self) {
        *self.inner.overlay.lock() = Some(Arc::default());
    }

    /// Returns the changes of plan mode so far, in the order of the writes, without the first
    /// `skipped`.
    pub fn planned(&self, skipped: usize) -> Vec<PlannedChange> {
        let overlay = self.inner.overlay.lock().clone();
        let changes = overlay.map(|overlay| overlay.changes(skipped));
        changes.unwrap_or_default()
    }

    /// Ends plan mode and discards the planned writes. Returns the changes in the order of the
    /// writes.
    pub fn end_plan(&self) -> Vec<PlannedChange> {
        let overlay = self.inner.overlay.lock().take();
        let changes = overlay.map(|overlay| overlay.changes(0));
        changes.unwrap_or_default()
    }

    fn effects(&self, info: &RequestInfo, body: &[u8]) -> rule::Effects {
        rule::decide(&mut self.inner.rules.lock(), info, body)
    }
}

/// The tower layer of a [`Seam`], which [`Seam::layer`] returns.
///
/// # Examples
/// ```
/// use opkit_client::{ClientOptions, Seam};
/// let seam = Seam::new();
/// let mut options = ClientOptions::default();
/// options.seam = Some(seam.layer());
/// ```
#[derive(Debug, Clone)]
pub struct SeamLayer {
    seam: Seam,
}

impl<S> Layer<S> for SeamLayer {
    type Service = SeamService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        let seam = self.seam.clone();
        SeamService { inner, seam }
    }
}

/// A service whose requests pass through a [`Seam`].
#[derive(Debug, Clone)]
pub struct SeamService<S> {
    inner: S,
    seam: Seam,
}

impl<S> Service<Request<Body>> for SeamService<S>
where
    S: Service<Request<Body>, Response = HttpResponse, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = HttpResponse;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<HttpResponse, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { inner, seam } = self.clone();
        let number = seam.inner.numbers.fetch_add(1, Ordering::Relaxed);
        let number = number.saturating_add(1);
        handle(seam, inner, request, number).boxed()
    }
}

async fn handle<S>(
    seam: Seam,
    inner: S,
    request: Request<Body>,
    number: u64,
) -> Result<HttpResponse, BoxError>
where
    S: Service<Request<Body>, Response = HttpResponse, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send,
{
    let info = RequestInfo::of(&request);
    let (parts, body) = request.into_parts();
    // A streamed body is neither delayed nor recorded.
    let (body, copy) = match body.try_clone() {
        Some(copy) => (body, copy.collect_bytes().await.unwrap_or_default()),
        None => (body, bytes::Bytes::new()),
    };
    let recorder = &seam.inner.recorder;
    let start = seam.inner.origin.elapsed();
    recorder.start(number, start, &info, &parts, &copy);

    let effects = seam.effects(&info, &copy);
    if !effects.delay.is_zero() {
        tokio::time::sleep(effects.delay).await;
    }
    let request = Request::from_parts(parts, body);
    let outcome = match effects.other {
        Some(Effect::Refuse) => Err(BoxError::from(Refused)),
        Some(Effect::Fail(status)) => status_response(&status),
        Some(Effect::DropResponse) => match send(&seam, inner, request, &info, &copy).await {
            Ok(_) => Err(BoxError::from(Dropped)),
            Err(error) => Err(error),
        },
        Some(Effect::CutResponse(bytes)) => send(&seam, inner, request, &info, &copy)
            .await
            .map(|response| response.map(|body| boxed(CutBody::new(body, bytes)))),
        Some(Effect::Delay(_)) | None => send(&seam, inner, request, &info, &copy).await,
    };
    let elapsed = seam.inner.origin.elapsed().saturating_sub(start);
    match outcome {
        Ok(response) => Ok(recorder.responded(number, elapsed, &info, response)),
        Err(error) => {
            recorder.failed(number, elapsed, &error);
            Err(error)
        }
    }
}

async fn send<S>(
    seam: &Seam,
    inner: S,
    request: Request<Body>,
    info: &RequestInfo,
    body: &[u8],
) -> Result<HttpResponse, BoxError>
where
    S: Service<Request<Body>, Response = HttpResponse, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send,
{
    let overlay = seam.inner.overlay.lock().clone();
    match overlay {
        Some(overlay) => overlay.respond(inner, request, info, body).await,
        None => inner.oneshot(request).await,
    }
}

#[cfg(test)]
mod tests;
