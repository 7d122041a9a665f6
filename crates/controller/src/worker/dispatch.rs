//! The loop of a worker: takes a request from the queue, calls the user's function, and adds the
//! request to the queue again if the result requires it.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use jiff::Timestamp;
use opkit_random::uuid;
use opkit_workqueue::Item;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Level, Span, debug, enabled, error, info_span, warn};

use super::RunningController;
use super::requeue::Failure;
use super::slots::Permit;
use super::turn::Turn;
use crate::error::Result;
use crate::object::Request;
use crate::reconcile::Action;
use crate::reconcile::function::Reconciler;
use crate::record::causes::Causes;
use crate::record::trace::Trace;
use crate::record::{Outcome, ReconcileRecord};

/// Outcome of a call of the user's function.
enum Ended {
    /// The function returned, or could not be called; contains the result.
    Returned(Result<Action, Failure>),
    Panicked(String),
    TimedOut(Duration),
    /// The object no longer exists.
    Gone,
}

impl RunningController {
    /// Reconciles requests until `stop` is cancelled. A reconcile that has started is not
    /// interrupted.
    pub(crate) async fn work(self: Arc<Self>, stop: CancellationToken) {
        // A child token per worker, so that workers do not contend for the lock of one token.
        let stop = stop.child_token();
        let mut turn = Turn::default();
        while !stop.is_cancelled() {
            // Most often a request is ready and no wait is needed.
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
            if turn.count(started, duration) {
                tokio::task::yield_now().await;
            }
        }
    }

    /// Reconciles the next request that is ready. Returns `None` if no request is ready.
    pub(crate) async fn reconcile_next(&self) -> Option<Request> {
        let item = self.sources.queue.try_get()?;
        let (request, span, started) = (item.key().clone(), self.span(&item), item.taken_at());
        self.reconcile(item, started).instrument(span).await;
        Some(request)
    }

    /// Returns the tracing span of a reconcile, linked to the spans of the events that caused it.
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

    /// Reconciles one object and returns the duration of the reconcile.
    async fn reconcile(&self, item: Item<Request, Causes>, started: Instant) -> Duration {
        let permit = match &self.slots() {
            None => None,
            Some(slots) => match self.begin(slots, item.key()) {
                Some(permit) => Some(permit),
                None => {
                    // Another replica reconciles the object, if it exists.
                    if self.is_gone(item.key()) {
                        self.sources.log.forget(&self.identity().name, item.key());
                    }
                    item.forget();
                    return started.elapsed();
                }
            },
        };
        let working = Working::new(self, item, permit);
        let at = Timestamp::now();
        let before = self.before_limit(&working);
        if self.is_echo(&working, before.as_ref()) {
            if let Some(item) = working.finish() {
                item.forget();
            }
            return started.elapsed();
        }
        self.look_up_other_manager(&working.request).await;
        let failures = working.failures();
        let trace = Arc::new(Trace::of_attempt(failures));
        let Some(ended) = self.run_in_slot(&working, &trace).await else {
            // The slot is lost. The request is dropped when it is taken from the queue again.
            return started.elapsed();
        };
        let duration = started.elapsed();
        let result = match ended {
            Ended::Gone => {
                if let Some(item) = working.finish() {
                    debug!("the object is deleted");
                    self.sources.log.forget(&self.identity().name, item.key());
                    item.forget();
                }
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
                    "the reconcile did not finish within {limit:?}"
                )))
            }
        };
        // While the request still counts as unfinished, because this may send requests.
        let result = match &self.retries {
            None => result,
            Some(retries) => {
                let limited = self.limited(&**retries, &working, &trace, before.as_ref(), result);
                Box::pin(limited).await
            }
        };
        let Some(mut item) = working.finish() else {
            return duration;
        };
        let causes = std::mem::take(&mut item.payload_mut().reasons);
        let request = &item.key().clone();
        self.metrics.took(duration);
        let result = self.requeue(request, item.priority(), failures, result);
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
        // A function that takes a key is also called for a deleted object, and may need several
        // reconciles.
        let may_end = is_by_key && !result.is_queued_again();
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
        let log = &self.sources.log;
        let pushed = log.push(record, &self.identity().field_manager);
        if may_end && pushed.may_be_gone && self.is_gone(request) {
            log.forget(&self.identity().name, request);
        }
        if let Some(hot_loop) = pushed.hot_loop {
            self.metrics.hot_loops.inc();
            if is_logged(hot_loop.count) {
                warn!(%hot_loop, "an object is reconciled in a loop");
            }
        }
        duration
    }

    /// Reports whether the object is missing from the cache.
    fn is_gone(&self, request: &Request) -> bool {
        let cluster = self.cluster(request);
        cluster.is_some_and(|cluster| cluster.primary().stored(request.key()).is_none())
    }

    /// Calls the user's function, and drops its future if the slot of the object is lost. Returns
    /// `None` in that case.
    async fn run_in_slot(&self, working: &Working<'_>, trace: &Arc<Trace>) -> Option<Ended> {
        let run = self.run(working, trace);
        match &working.permit {
            None => Some(run.await),
            Some(permit) => permit.lost().run_until_cancelled(run).await,
        }
    }

    /// Calls the user's function. The worker polls the function's future directly, so that a panic
    /// is caught here, and no task continues after the reconcile.
    async fn run(&self, working: &Working<'_>, trace: &Arc<Trace>) -> Ended {
        // Dropping the future after a timeout and printing the error run the user's code too.
        let reconciled = AssertUnwindSafe(async {
            let (request, permit) = (&working.request, working.permit.as_ref());
            let reconciled = self.reconcile_request(request, permit, trace);
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
}

/// Reports whether a loop is logged at its reconcile number `count`. The longer a loop lasts, the
/// fewer of its reconciles are logged.
fn is_logged(count: u32) -> bool {
    count.is_power_of_two() || (count < 1_000 && count % 100 == 10) || count.is_multiple_of(10_000)
}

/// A request that is being reconciled. If the reconcile is dropped, for example when leadership is
/// lost, the request is added to the queue again unchanged.
pub(super) struct Working<'a> {
    controller: &'a RunningController,
    pub(super) request: Request,
    pub(super) item: Option<Item<Request, Causes>>,
    /// Permit of the object's slot, if the operator is sharded.
    pub(super) permit: Option<Permit>,
}

impl<'a> Working<'a> {
    fn new(
        controller: &'a RunningController,
        item: Item<Request, Causes>,
        permit: Option<Permit>,
    ) -> Self {
        controller.metrics.active.inc();
        Working {
            controller,
            request: item.key().clone(),
            item: Some(item),
            permit,
        }
    }

    /// Returns the number of failures in a row before this reconcile.
    pub(super) fn failures(&self) -> u32 {
        self.item.as_ref().map_or(0, Item::failures)
    }

    /// Returns the queue item of a finished reconcile, which is then not added to the queue again.
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
