//! Adds a request to the queue again, according to the result of its reconcile.

use std::time::Duration;

use opkit_workqueue::AddOptions;

use super::RunningController;
use crate::error::{Error, Result, Retry};
use crate::object::Request;
use crate::reconcile::Action;
use crate::record::causes::Causes;
use crate::record::{Cause, Outcome};

/// Shortest delay of a requeue, which is the resolution of the timer. A shorter delay counts as
/// zero.
const MIN_DELAY: Duration = Duration::from_millis(1);

/// Message of a reconcile's error, and when the object is retried.
pub(super) struct Failure {
    message: String,
    retry: Retry,
}

impl Failure {
    /// Returns the message, and whether the object is to be retried before its next change.
    pub(super) fn retried(&self) -> Option<&str> {
        (self.retry != Retry::AtNextChange).then_some(self.message.as_str())
    }

    /// Returns the failure without a retry, because there were too many.
    pub(super) fn given_up(self, failures: u32) -> Self {
        let message = format!(
            "gave up after {failures} failures in a row: {}",
            self.message
        );
        Self {
            message,
            retry: Retry::AtNextChange,
        }
    }

    /// Creates a failure after which the object is retried with its backoff.
    pub(super) fn new(message: String) -> Self {
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
    /// Adds the request to the queue again if the result requires it, and counts the result in the
    /// metrics. Instead of a delay of zero, the delay of the rate limiter is used, as after a
    /// failure. If the request is not queued again, the caller has to reset the rate limiter and
    /// the number of failures. `failures` is the number of failures in a row before this reconcile.
    pub(super) fn requeue(
        &self,
        request: &Request,
        priority: i32,
        failures: u32,
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
                if failures > 0 {
                    self.sources.queue.succeed(request);
                }
                let priority = action.priority().unwrap_or(priority);
                let after = match delay < MIN_DELAY {
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
        let failures = self.sources.queue.fail(request);
        let retry_after = match failure.retry {
            Retry::After(delay) if delay >= MIN_DELAY => {
                self.sources.queue.forget(request);
                add(Cause::Retry(failures), after(delay, priority));
                Some(delay)
            }
            Retry::Backoff | Retry::After(_) => {
                Some(add(Cause::Retry(failures), limited(priority)))
            }
            Retry::AtNextChange => {
                self.metrics.terminal.inc();
                self.sources.queue.forget(request);
                self.sources.queue.succeed(request);
                None
            }
        };
        Outcome::Error {
            message: failure.message,
            retry_after,
        }
    }
}
