//! The effect seam: the one place where every request can be seen, disturbed or answered.
//!
//! A [`Seam`] numbers and records requests and answers, disturbs them by [`Rule`]s, and in plan
//! mode answers writes itself. It is a tower layer, so that whatever goes through a
//! [`kube::Client`] passes it, a user's own [`kube::Api`] included. A client without a seam has
//! none of its code in the way of a request.
//!
//! Recorded bodies are cut at a length, and secrets are blacked out before they are kept: the data
//! of Secrets, tokens that are asked for or reviewed, and every `Authorization`.

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

use self::fault::{CutBody, answer_of};
pub(crate) use self::fault::{Dropped, Refused};
use self::overlay::Overlay;
pub use self::overlay::PlannedChange;
use self::record::Recorder;
pub use self::record::{Exchange, RecordedBody, RecordedOutcome};
pub use self::rule::{Effect, Rule};
use crate::RequestInfo;
use crate::transport::{Answer, boxed};

/// A handle on the seam of one or more clients. Cloning gives another handle on the same seam.
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
    /// A seam that keeps the last 1,024 exchanges, of each body the first 64 KiB.
    pub fn new() -> Self {
        Self::with_limits(1024, 64 << 10)
    }

    /// A seam that keeps the last `exchanges_max` exchanges, of each body the first `body_max`
    /// bytes.
    pub fn with_limits(exchanges_max: usize, body_max: usize) -> Self {
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

    /// The layer, for [`ClientOptions::seam`](crate::ClientOptions::seam) or any tower stack.
    pub fn layer(&self) -> SeamLayer {
        SeamLayer { seam: self.clone() }
    }

    /// A client that sends through `client`, seen by this seam. What `client` does by itself, such
    /// as sending again, happens behind it.
    pub fn wrap(&self, client: kube::Client) -> kube::Client {
        let namespace = client.default_namespace().to_owned();
        let service = tower::service_fn(move |request: Request<Body>| {
            let client = client.clone();
            async move {
                let answer = client.send(request).await.map_err(BoxError::from)?;
                Ok::<_, BoxError>(answer.map(boxed))
            }
        });
        kube::Client::new(self.layer().layer(service), namespace)
    }

    /// How many requests came so far.
    pub fn requests(&self) -> u64 {
        self.inner.numbers.load(Ordering::Relaxed)
    }

    /// What is kept of the requests and their answers, the oldest first.
    pub fn exchanges(&self) -> Vec<Exchange> {
        self.inner.recorder.exchanges()
    }

    /// Forgets the exchanges that were kept; numbers go on.
    pub fn forget(&self) {
        self.inner.recorder.clear();
    }

    /// Adds a rule. All delays that match a request are waited for; of the other effects the first
    /// one counts.
    pub fn add(&self, rule: Rule) {
        self.inner.rules.lock().push(rule);
    }

    /// Removes all rules.
    pub fn clear_rules(&self) {
        self.inner.rules.lock().clear();
    }

    /// Begins plan mode: from now on writes are answered from here and not sent, and reads of
    /// single objects and lists show them.
    ///
    /// What it cannot know, it approximates: apply merges the configuration that is sent into the
    /// object, with no owners of fields and no removal; strategic merge patches replace lists;
    /// nothing is defaulted, validated or admitted; watches show what the server has. A dry run,
    /// and a review of access or tokens, changes nothing and is sent.
    pub fn start_plan(&self) {
        *self.inner.overlay.lock() = Some(Arc::default());
    }

    /// Ends plan mode and forgets what was written in it; returns the changes in their order.
    pub fn end_plan(&self) -> Vec<PlannedChange> {
        let overlay = self.inner.overlay.lock().take();
        overlay.map(|overlay| overlay.changes()).unwrap_or_default()
    }

    /// The changes of plan mode so far.
    pub fn planned(&self) -> Vec<PlannedChange> {
        let overlay = self.inner.overlay.lock().clone();
        overlay.map(|overlay| overlay.changes()).unwrap_or_default()
    }

    fn effects(&self, info: &RequestInfo, body: &[u8]) -> rule::Effects {
        rule::decide(&mut self.inner.rules.lock(), info, body)
    }
}

/// Makes a service pass a [`Seam`]; see [`Seam::layer`].
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

/// A service that passes a [`Seam`].
#[derive(Debug, Clone)]
pub struct SeamService<S> {
    inner: S,
    seam: Seam,
}

impl<S> Service<Request<Body>> for SeamService<S>
where
    S: Service<Request<Body>, Response = Answer, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send,
{
    type Response = Answer;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Answer, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { inner, seam } = self.clone();
        let number = seam.inner.numbers.fetch_add(1, Ordering::Relaxed);
        let number = number.saturating_add(1);
        pass(seam, inner, request, number).boxed()
    }
}

async fn pass<S>(
    seam: Seam,
    inner: S,
    request: Request<Body>,
    number: u64,
) -> Result<Answer, BoxError>
where
    S: Service<Request<Body>, Response = Answer, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send,
{
    let info = RequestInfo::of(&request);
    let (parts, body) = request.into_parts();
    // A body that streams is not held up; it passes unseen.
    let (body, copy) = match body.try_clone() {
        Some(copy) => (body, copy.collect_bytes().await.unwrap_or_default()),
        None => (body, bytes::Bytes::new()),
    };
    let recorder = &seam.inner.recorder;
    let start = seam.inner.origin.elapsed();
    recorder.begin(number, start, &info, &parts, &copy);

    let effects = seam.effects(&info, &copy);
    if !effects.delay.is_zero() {
        tokio::time::sleep(effects.delay).await;
    }
    let request = Request::from_parts(parts, body);
    let outcome = match effects.other {
        Some(Effect::Refuse) => Err(BoxError::from(Refused)),
        Some(Effect::Fail(status)) => answer_of(&status),
        Some(Effect::DropAnswer) => match send(&seam, inner, request, &info, &copy).await {
            Ok(_) => Err(BoxError::from(Dropped)),
            Err(error) => Err(error),
        },
        Some(Effect::CutAnswer(bytes)) => send(&seam, inner, request, &info, &copy)
            .await
            .map(|answer| answer.map(|body| boxed(CutBody::new(body, bytes)))),
        Some(Effect::Delay(_)) | None => send(&seam, inner, request, &info, &copy).await,
    };
    let elapsed = seam.inner.origin.elapsed().saturating_sub(start);
    match outcome {
        Ok(answer) => Ok(recorder.answered(number, elapsed, &info, answer)),
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
) -> Result<Answer, BoxError>
where
    S: Service<Request<Body>, Response = Answer, Error = BoxError> + Clone + Send + 'static,
    S::Future: Send,
{
    let overlay = seam.inner.overlay.lock().clone();
    match overlay {
        Some(overlay) => overlay.answer(inner, request, info, body).await,
        None => inner.oneshot(request).await,
    }
}

#[cfg(test)]
mod tests;
