//! One reconcile: from a key to the next entry in the queue.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use jiff::Timestamp;
use opkit_cache::{Informer, Selection};
use opkit_client::{Fence, ObjectKey, RestClient};
use opkit_random::uuid;
use opkit_workqueue::{AddOptions, Item, Queue, WaitState};
use parking_lot::RwLock;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Level, Span, debug, enabled, error, info_span, warn};

use super::metrics::ControllerMetrics;
use crate::builder::spec::ControllerSpec;
use crate::context::Shared;
use crate::context::apply::applied::AppliedChildren;
use crate::error::{Error, Result, Retry};
use crate::object::Request;
use crate::object::owner::Head;
use crate::reads::MapContext;
use crate::reconcile::Action;
use crate::reconcile::function::Reconciler;
use crate::record::causes::Why;
use crate::record::trace::Run;
use crate::record::{Cause, Outcome, ReconcileLog, ReconcileRecord, manager_of};
use crate::source::enqueue::LOW_PRIORITY;
use crate::state::States;

/// How long the look at who undoes what was written may take.
const RIVAL: Duration = Duration::from_secs(5);

/// A controller that runs.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) spec: ControllerSpec,
    /// Name and kind, for records.
    pub(crate) name: Arc<str>,
    pub(crate) kind: Arc<str>,
    pub(crate) field_manager: String,
    pub(crate) queue: Queue<Request, Why>,
    /// One for each cluster.
    pub(crate) sides: Vec<Arc<Side>>,
    pub(crate) log: ReconcileLog,
    pub(crate) metrics: ControllerMetrics,
}

/// What a controller has in one cluster.
#[derive(Debug)]
pub(crate) struct Side {
    pub(crate) cluster: Option<Arc<str>>,
    pub(crate) client: RestClient,
    pub(crate) informer: Informer,
    /// The informers of the sources, in the order of the sources.
    pub(crate) informers: Vec<Informer>,
    pub(crate) reads: MapContext,
    pub(crate) applied: Arc<AppliedChildren>,
    /// Of the present term of leadership: the client is fenced by it.
    pub(crate) shared: RwLock<Arc<Shared>>,
}

impl Side {
    /// From now on reconciles write behind `fence` and read `states`.
    pub(crate) fn begin_term(&self, fence: &Fence, states: &Arc<States>) {
        let mut shared = self.shared.write();
        let client = RestClient::new(fence.layer(self.client.kube()));
        *shared = Arc::new(Shared {
            client,
            states: states.clone(),
            ..(**shared).clone()
        });
    }

    pub(super) fn shared(&self) -> Arc<Shared> {
        self.shared.read().clone()
    }
}

/// How the user's function ended.
enum Ended {
    /// It returned, or could not be called.
    Returned(Result<Action, Failure>),
    Panicked(String),
    TimedOut(Duration),
    /// There is no such object any more.
    Gone,
}

/// What is kept of the user's error.
struct Failure {
    message: String,
    retry: Retry,
}

impl Failure {
    /// With the key's backoff.
    fn new(message: String) -> Self {
        let retry = Retry::Backoff;
        Self { message, retry }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self {
            message: error.to_string(),
            retry: error.retry(),
        }
    }
}

impl Running {
    /// Works until `stop`; a reconcile that has begun is finished.
    pub(crate) async fn work(self: Arc<Self>, stop: CancellationToken) {
        // One of its own, so that asking it keeps no other worker waiting.
        let stop = stop.child_token();
        let mut turn = Turn::default();
        while !stop.is_cancelled() {
            // Most often there is something to do, and nothing to wait for.
            let item = match self.queue.try_get() {
                Some(item) => Some(item),
                None => tokio::select! {
                    biased;
                    () = stop.cancelled() => break,
                    item = self.queue.get() => item,
                },
            };
            let Some(item) = item else { break };
            let span = self.span(&item);
            let started = item.taken_at();
            let duration = self.reconcile(item, started).instrument(span).await;
            // A reconcile that only reads the cache never waits: others get their turn here.
            if turn.is_over(started, duration) {
                tokio::task::yield_now().await;
            }
        }
    }

    /// The span of a reconcile, linked to its events.
    fn span(&self, item: &Item<Request, Why>) -> Span {
        // Where nobody has set up tracing at all, a span would format its fields for the log crate.
        if !enabled!(Level::INFO) {
            return Span::none();
        }
        let span = info_span!(
            "reconcile",
            controller = self.spec.name,
            kind = &*self.kind,
            object = %item.key(),
            reconcileID = uuid(),
        );
        item.payload().link(&span);
        span
    }

    /// Reconciles one object; answers how long it took.
    async fn reconcile(&self, item: Item<Request, Why>, started: Instant) -> Duration {
        let working = Working::new(self, item);
        let at = Timestamp::now();
        self.look_up_rival(&working.request).await;
        let run = Arc::<Run>::default();
        let ended = self.run(&working.request, &run).await;
        let duration = started.elapsed();
        let Some(mut item) = working.finish() else {
            return duration;
        };
        let causes = std::mem::take(&mut item.payload_mut().causes);
        let request = &item.key().clone();
        let result = match ended {
            Ended::Gone => {
                debug!("the object is gone");
                self.log.forget(&self.name, request);
                item.forget();
                return duration;
            }
            Ended::Returned(result) => result,
            Ended::Panicked(message) => {
                error!(panic = message, "reconcile panicked");
                self.metrics.panics.inc();
                Err(Failure::new(format!("reconcile panicked: {message}")))
            }
            Ended::TimedOut(limit) => {
                self.metrics.timeouts.inc();
                Err(Failure::new(format!(
                    "the reconcile did not end within {limit:?}"
                )))
            }
        };
        self.metrics.took(duration);
        let result = self.requeue(request, item.priority(), result);
        match &result {
            Outcome::Error {
                message,
                retry_after,
            } => {
                warn!(error = message, retry_in = ?retry_after, ?duration, "reconcile failed");
            }
            _ => debug!(?duration, "reconciled"),
        }
        let is_settled = result == Outcome::Ok;
        let is_by_key = matches!(self.spec.reconciler, Reconciler::Key(_));
        // By key, the end of an object is reconciled like anything else, and may take several runs.
        let has_ended = is_by_key && !result.is_queued_again() && self.is_gone(request);
        let (cache_reads, live_reads, writes) = run.trace();
        let record = ReconcileRecord {
            controller: self.name.clone(),
            kind: self.kind.clone(),
            request: request.clone(),
            number: 0,
            causes,
            cache_reads,
            live_reads,
            writes,
            started: at,
            duration,
            result,
            hot_loop: None,
        };
        if is_settled {
            item.forget();
        }
        let found = self.log.push(record, &self.field_manager);
        if has_ended {
            self.log.forget(&self.name, request);
        }
        if let Some(hot_loop) = found {
            self.metrics.hot_loops.inc();
            if is_logged(hot_loop.count) {
                warn!(%hot_loop, "an object is reconciled again and again");
            }
        }
        duration
    }

    /// Whether the cache has no such object.
    fn is_gone(&self, request: &Request) -> bool {
        let side = self.side(request);
        side.is_some_and(|side| side.informer.stored(request.key()).is_none())
    }

    /// If it looks as if somebody undoes what is written for this object, asks the server who,
    /// before the field is overwritten once more: afterwards it would be ours.
    async fn look_up_rival(&self, request: &Request) {
        let Some((object, field)) = self.log.suspected(&self.name, request) else {
            return;
        };
        let (kind, name) = object.split_once(' ').unwrap_or_default();
        let mut sources = self.spec.sources.iter().map(|source| &source.watched.kind);
        let (Some(kind), Some(side)) = (
            sources.find(|watched| watched.kind == kind),
            self.side(request),
        ) else {
            return;
        };
        let namespace = request.namespace.as_deref().filter(|_| kind.namespaced);
        let key = ObjectKey::from(name).or_namespace(namespace);
        // It is a courtesy: the object does not wait for it long.
        let live = tokio::time::timeout(RIVAL, side.client.get(kind, &key)).await;
        let Ok(Ok(live)) = live else {
            return;
        };
        let head: Head = serde_json::from_slice(&live).unwrap_or_default();
        let entries = head.metadata.managed_fields.unwrap_or_default();
        if let Some(manager) = manager_of(&entries, &field, &self.field_manager) {
            self.log.rival(&self.name, request, manager);
        }
    }

    /// Calls the user's function. Polled by this worker, so that a panic is caught here and nothing
    /// outlives the key.
    async fn run(&self, request: &Request, run: &Arc<Run>) -> Ended {
        // What a timeout drops, and an error that is printed, is the user's code too.
        let reconciled = AssertUnwindSafe(async {
            let reconciled = self.reconcile_request(request, run);
            let reconciled = match self.spec.options.reconcile_timeout {
                None => reconciled.await,
                Some(limit) => match tokio::time::timeout(limit, reconciled).await {
                    Ok(reconciled) => reconciled,
                    Err(_) => return Ended::TimedOut(limit),
                },
            };
            match reconciled {
                Some(result) => Ended::Returned(result.map_err(Failure::from)),
                None => Ended::Gone,
            }
        });
        match reconciled.catch_unwind().await {
            Ok(ended) => ended,
            Err(panic) => Ended::Panicked(panic_message(&*panic)),
        }
    }

    /// Queues the key again as the result asks for, and counts it. A delay of zero means soon:
    /// after the key's rate limiter, as after a failure. That there were failures of a key that is
    /// not queued again is for the caller to forget.
    fn requeue(
        &self,
        request: &Request,
        priority: i32,
        result: Result<Action, Failure>,
    ) -> Outcome {
        let add = |cause: Cause, options: AddOptions| {
            self.queue
                .add_with(request.clone(), Why::from(cause), options)
        };
        let after = |after: Duration, priority: i32| AddOptions {
            priority: Some(priority),
            after,
            ..Default::default()
        };
        let limited = |priority: i32| AddOptions {
            priority: Some(priority),
            rate_limited: true,
            ..Default::default()
        };
        let failure = match result {
            Ok(action) => {
                let Some(delay) = action.requeue_after() else {
                    self.metrics.success.inc();
                    return Outcome::Ok;
                };
                self.metrics.requeue_after.inc();
                let priority = action.priority().unwrap_or(priority);
                let after = match delay < SOON {
                    true => add(Cause::Requeued, limited(priority)),
                    false => {
                        self.queue.forget(request);
                        add(Cause::Requeued, after(delay, priority));
                        delay
                    }
                };
                return Outcome::Requeue { after };
            }
            Err(failure) => failure,
        };
        self.metrics.error.inc();
        self.metrics.errors.inc();
        let failures = self.queue.num_requeues(request).saturating_add(1);
        let retry_after = match failure.retry {
            Retry::After(delay) if delay >= SOON => {
                self.queue.forget(request);
                add(Cause::Retry(1), after(delay, priority));
                Some(delay)
            }
            Retry::Backoff | Retry::After(_) => {
                Some(add(Cause::Retry(failures), limited(priority)))
            }
            Retry::AtNextChange => {
                self.metrics.terminal.inc();
                self.queue.forget(request);
                None
            }
        };
        Outcome::Error {
            message: failure.message,
            retry_after,
        }
    }

    /// Has every object reconciled, after what changes now.
    pub(crate) fn requeue_all(&self) {
        let low = AddOptions {
            priority: Some(LOW_PRIORITY),
            ..Default::default()
        };
        for side in &self.sides {
            for stored in side.informer.select(&Selection::default().all_namespaces()) {
                let request = Request::new(side.cluster.clone(), stored.key());
                self.queue.add_with(request, Why::from(Cause::Elected), low);
            }
        }
    }

    /// What is being reconciled, and for how long, the longest first.
    pub(crate) fn in_work(&self) -> Vec<(Request, Duration)> {
        let most = self.spec.options.max_concurrent_reconciles;
        let keys = self.queue.snapshot(most).keys.into_iter();
        let in_work = keys.filter(|key| key.state == WaitState::InWork);
        in_work.map(|key| (key.key, key.age)).collect()
    }

    pub(crate) fn side(&self, request: &Request) -> Option<&Arc<Side>> {
        let cluster = request.cluster();
        let mut sides = self.sides.iter();
        sides.find(|side| side.cluster.as_deref() == cluster)
    }
}

/// A delay that is asked for and is shorter than this counts as zero: it is the resolution of the
/// timer.
const SOON: Duration = Duration::from_millis(1);

/// Whether the step of that number of a loop is logged: each is counted, and some are logged, fewer
/// the longer it lasts.
fn is_logged(count: u32) -> bool {
    count.is_power_of_two() || (count < 1_000 && count % 100 == 10) || count.is_multiple_of(10_000)
}

/// How long a worker goes on that never waits.
const TURN: Duration = Duration::from_micros(50);
/// And how many reconciles, should the clock stand still.
const RECONCILES: u32 = 64;

/// The time that a worker has had to itself. Giving others a turn after each reconcile would cost
/// more than a short one does.
#[derive(Default)]
struct Turn {
    began: Option<Instant>,
    reconciles: u32,
}

impl Turn {
    /// Takes in a reconcile; whether others are to have a turn now.
    fn is_over(&mut self, started: Instant, duration: Duration) -> bool {
        let began = *self.began.get_or_insert(started);
        self.reconciles += 1;
        let is_over = self.reconciles >= RECONCILES || started - began + duration >= TURN;
        if is_over {
            *self = Self::default();
        }
        is_over
    }
}

/// A key in work. If the work is dropped before its end, as when leadership is lost, the key is
/// queued again as it was.
struct Working<'a> {
    running: &'a Running,
    request: Request,
    item: Option<Item<Request, Why>>,
}

impl<'a> Working<'a> {
    fn new(running: &'a Running, item: Item<Request, Why>) -> Self {
        running.metrics.active.inc();
        Working {
            running,
            request: item.key().clone(),
            item: Some(item),
        }
    }

    /// The work has ended by itself.
    fn finish(mut self) -> Option<Item<Request, Why>> {
        self.item.take()
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.running.metrics.active.dec();
        if let Some(item) = self.item.take() {
            item.requeue_unworked();
        }
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "no message".to_owned())
}

#[cfg(test)]
mod tests;
