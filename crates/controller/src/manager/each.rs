//! Reconciles each existing object a bounded number of times, instead of running.

use std::time::Duration;

use opkit_client::Kind;
use tokio_util::sync::CancellationToken;

use super::Manager;
use super::running::RunningManager;
use super::task_group::Deadline;
use crate::error::ManagerError;
use crate::object::Request;
use crate::record::Outcome;

/// Longest duration of one reconcile, if the controller has no shorter limit. A reconcile may wait
/// for a change that never comes, because no write is stored and other controllers do nothing.
const RECONCILE_MAX: Duration = Duration::from_secs(30);

/// A reconcile that [`Manager::reconcile_each`] has finished.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reconciled {
    /// Name of the controller.
    pub controller: String,
    /// The reconciled kind.
    pub kind: Kind,
    /// The reconciled object.
    pub request: Request,
    /// The error and its causes, on one line; `None` if the reconcile succeeded.
    pub error: Option<String>,
}

/// Function that receives each finished reconcile, and returns whether the objects must be
/// reconciled once more.
type Receive<'a> = &'a mut (dyn FnMut(Reconciled) -> bool + Send);

impl Manager {
    /// Reconciles each object of the controllers' kinds, one after the other, and then stops. While
    /// `receive` returns true for one of them, all objects are reconciled again, `rounds_max` times
    /// at most. Returns whether the last round was one for which `receive` returned false.
    ///
    /// Starts the caches and creates the states, but no runnable, no election and no workers.
    /// Delays of requeues are not waited for. A reconcile that takes longer than 30 s, or than the
    /// controller's own limit if that is shorter, fails.
    ///
    /// # Errors
    /// Same as [`run`](Manager::run).
    ///
    /// # Cancel safety
    /// Not cancel safe: dropping the future aborts all tasks. Cancel `stop` instead.
    pub async fn reconcile_each(
        mut self,
        stop: CancellationToken,
        rounds_max: usize,
        receive: &mut (dyn FnMut(Reconciled) -> bool + Send),
    ) -> Result<bool, ManagerError> {
        self.check()?;
        // Each object is reconciled in each round anyway.
        self.options.resync = None;
        for controller in &mut self.controllers {
            let options = &mut controller.spec.options;
            options.resync = None;
            let own = options.reconcile_timeout.unwrap_or(RECONCILE_MAX);
            options.reconcile_timeout = Some(own.min(RECONCILE_MAX));
        }
        let grace = self.options.grace_period;
        let mut running = RunningManager::new(self);
        let result = running.reconcile_each(&stop, rounds_max, receive).await;
        let late = running.stop(Deadline::after(grace)).await;
        match (result, late) {
            (Err(first), Err(then)) => Err(ManagerError::Several {
                first: Box::new(first),
                then: Box::new(then),
            }),
            (result, late) => late.and(result),
        }
    }
}

impl RunningManager {
    async fn reconcile_each(
        &mut self,
        stop: &CancellationToken,
        rounds_max: usize,
        receive: Receive<'_>,
    ) -> Result<bool, ManagerError> {
        let started = stop.run_until_cancelled(self.prepare());
        if let Some(started) = started.await {
            started?;
        }
        for _ in 0..rounds_max {
            let mut is_last = true;
            for controller in &self.controllers {
                // Requests that the writes of this round cause are part of the next round.
                for _ in 0..controller.sources.queue.len() {
                    let next = stop.run_until_cancelled(controller.reconcile_next());
                    let Some(Some(request)) = next.await else {
                        break;
                    };
                    let identity = controller.identity();
                    let log = &controller.sources.log;
                    let last = log.of(&identity.name, &request).pop();
                    let error = last.and_then(|record| match &record.result {
                        Outcome::Error { message, .. } => Some(message.clone()),
                        _ => None,
                    });
                    let limit = controller.options.reconcile_timeout.unwrap_or_default();
                    let error = error.map(|error| explained(error, limit));
                    is_last &= !receive(Reconciled {
                        controller: identity.name.to_string(),
                        kind: (*identity.kind).clone(),
                        request,
                        error,
                    });
                }
            }
            if is_last || stop.is_cancelled() {
                return Ok(is_last && !stop.is_cancelled());
            }
            self.controllers
                .iter()
                .for_each(|it| it.requeue_all(|_| true));
        }
        Ok(false)
    }
}

/// Adds the probable cause to the error of a reconcile that was dropped at the time limit.
fn explained(error: String, limit: Duration) -> String {
    match error == format!("the reconcile did not finish within {limit:?}") {
        true => format!("{error}; it may wait for something that a plan does not do"),
        false => error,
    }
}
