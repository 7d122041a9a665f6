//! The work loop: takes requests from the queue, calls the user's function, and queues the request
//! again as its result requires.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use jiff::Timestamp;
use opkit_random::uuid;
use opkit_workqueue::{AddOptions, Item};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Level, Span, debug, enabled, error, info_span, warn};

use super::RunningController;
use crate::error::{Error, Result, Retry};
use crate::object::Request;
use crate::reconcile::Action;
use crate::reconcile::function::Reconciler;
use crate::record::causes::Causes;
use crate::record::trace::Trace;
use crate::record::{Cause, Outcome, ReconcileRecord};

/// The way in which the user's function ended.
enum Ended {
    /// The function returned, or could not be called.
    Returned(Result<Action, Failure>),
    Panicked(String),
    TimedOut(Duration),
    /// The object does not exist any more.
    Gone,
}

/// Message and retry of the user's error.
struct Failure {
    message: String,
    retry: Retry,
}

impl Failure {
    /// Creates a failure that is retried with the backoff of the object.
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

impl RunningController {
    /// Reconciles requests until `stop`. A reconcile that has started runs to its end.
    pub(crate) async fn work(self: Arc<Self>, stop: CancellationToken) {
        // A child token, so that workers do not contend for the lock of one token.
        let stop = stop.child_token();
        let mut turn = Turn::default();
        while !stop.is_cancelled() {
            // Most often a request is ready, and there is nothing to wait for.
            let item = match self.sources.queue.try_get() {
                Some(item) => Some(item),
                None => tokio::select! {
                    biased;
                    () = stop.cancelled() => break,
                    item = self.sources.queue.get() => item,
                },
            };
            let Some(item) = item else { break };
            let span = self.span(&item);
            let started = item.taken_at();
            let duration = self.reconcile(item, started).instrument(span).await;
            // A reconcile that only reads the cache never waits, so the worker yields here.
            if turn.is_over(started, duration) {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Returns the span of a reconcile, linked to the spans of its events.
    fn span(&self, item: &Item<Request, Causes>) -> Span {
        // Without a subscriber for tracing, a span would format its fields for the log crate.
        if !enabled!(Level::INFO) {
            return Span::none();
        }
        let span = info_span!(
            "reconcile",
            controller = &*self.identity().name,
            kind = &*self.identity().kind_name,
            object = %item.key(),
            reconcileID = uuid(),
        );
        item.payload().link(&span);
        span
    }

    /// Reconciles one object and returns the duration.
    async fn reconcile(&self, item: Item<Request, Causes>, started: Instant) -> Duration {
        let working = Working::new(self, item);
        let at = Timestamp::now();
        self.look_up_other_manager(&working.request).await;
        let trace = Arc::<Trace>::default();
        let ended = self.run(&working.request, &trace).await;
        let duration = started.elapsed();
        let Some(mut item) = working.finish() else {
            return duration;
        };
        let causes = std::mem::take(&mut item.payload_mut().reasons);
        let request = &item.key().clone();
        let result = match ended {
            Ended::Gone => {
                debug!("the object is gone");
                self.sources.log.forget(&self.identity().name, request);
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
        let is_by_key = matches!(self.reconciler, Reconciler::Key(_));
        // A keyed function is also called for a missing object, and may take several reconciles.
        let has_ended = is_by_key && !result.is_queued_again() && self.is_gone(request);
        let (cache_reads, live_reads, writes) = trace.finish();
        let record = ReconcileRecord {
            controller: self.identity().name.clone(),
            kind: self.identity().kind_name.clone(),
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
        let found = self
            .sources
            .log
            .push(record, &self.identity().field_manager);
        if has_ended {
            self.sources.log.forget(&self.identity().name, request);
        }
        if let Some(hot_loop) = found {
            self.metrics.hot_loops.inc();
            if is_logged(hot_loop.count) {
                warn!(%hot_loop, "an object is reconciled again and again");
            }
        }
        duration
    }

    /// Reports whether the object is missing in the cache.
    fn is_gone(&self, request: &Request) -> bool {
        let cluster = self.cluster(request);
        cluster.is_some_and(|cluster| cluster.primary().stored(request.key()).is_none())
    }

    /// Calls the user's function. Polled by this worker, so that a panic is caught here and nothing
    /// outlives the key.
    async fn run(&self, request: &Request, trace: &Arc<Trace>) -> Ended {
        // What a timeout drops, and an error that is printed, is the user's code too.
        let reconciled = AssertUnwindSafe(async {
            let reconciled = self.reconcile_request(request, trace);
            let reconciled = match self.options.reconcile_timeout {
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
            self.sources
                .queue
                .add_with(request.clone(), Causes::from(cause), options)
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
                        self.sources.queue.forget(request);
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
        let failures = self.sources.queue.num_requeues(request).saturating_add(1);
        let retry_after = match failure.retry {
            Retry::After(delay) if delay >= SOON => {
                self.sources.queue.forget(request);
                add(Cause::Retry(1), after(delay, priority));
                Some(delay)
            }
            Retry::Backoff | Retry::After(_) => {
                Some(add(Cause::Retry(failures), limited(priority)))
            }
            Retry::AtNextChange => {
                self.metrics.terminal.inc();
                self.sources.queue.forget(request);
                None
            }
        };
        Outcome::Error {
            message: failure.message,
            retry_after,
        }
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
    controller: &'a RunningController,
    request: Request,
    item: Option<Item<Request, Causes>>,
}

impl<'a> Working<'a> {
    fn new(controller: &'a RunningController, item: Item<Request, Causes>) -> Self {
        controller.metrics.active.inc();
        Working {
            controller,
            request: item.key().clone(),
            item: Some(item),
        }
    }

    /// The work has ended by itself.
    fn finish(mut self) -> Option<Item<Request, Causes>> {
        self.item.take()
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        self.controller.metrics.active.dec();
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
