//! Calls the limit of the retries of an object, if the controller has one.

use opkit_cache::Stored;
use tracing::{info, warn};

use super::RunningController;
use super::dispatch::Working;
use super::requeue::Failure;
use crate::context::status::change::StatusWriter;
use crate::error::Result;
use crate::reconcile::Action;
use crate::reconcile::retries::RetryLimit;
use crate::record::Cause;
use crate::record::trace::Trace;

impl RunningController {
    /// Returns the object as it is before its reconcile, if the controller limits retries.
    pub(super) fn before_limit(&self, working: &Working<'_>) -> Option<Stored> {
        self.retries.as_ref()?;
        let cluster = self.cluster(&working.request)?;
        cluster.primary().stored(working.request.key())
    }

    /// Reports whether the reconcile has no cause but the condition of an object that is not
    /// retried.
    pub(super) fn is_echo(&self, working: &Working<'_>, before: Option<&Stored>) -> bool {
        let (Some(retries), Some(item)) = (&self.retries, &working.item) else {
            return false;
        };
        let causes = &item.payload().reasons;
        let is_own = |cause: &Cause| matches!(cause, Cause::Changed { kind: None, .. });
        let is_own_change = causes.more() == 0 && causes.iter().all(is_own);
        retries.is_echo(&working.request, is_own_change, before)
    }

    /// Applies the limit to the result of a reconcile. A failure that exceeds the limit is returned
    /// as one without a retry.
    pub(super) async fn limited(
        &self,
        retries: &dyn RetryLimit,
        working: &Working<'_>,
        trace: &Trace,
        before: Option<&Stored>,
        result: Result<Action, Failure>,
    ) -> Result<Action, Failure> {
        let Some(cluster) = self.cluster_in(&working.request, working.permit.as_ref()) else {
            return result;
        };
        let term = cluster.term();
        let object = StatusWriter {
            term: &term,
            trace,
            request: &working.request,
            before,
        };
        let failure = match result {
            Ok(action) => {
                retries.recovered(object).await;
                return Ok(action);
            }
            Err(failure) => failure,
        };
        let failures = working.failures().saturating_add(1);
        let Some(message) = failure.retried().filter(|_| retries.is_exceeded(failures)) else {
            return Err(failure);
        };
        if let Err(error) = retries.exhausted(object, message).await {
            warn!(%error, "cannot set the condition of an object; it is retried");
            return Err(failure);
        }
        info!(failures, "the object is not retried until it changes");
        self.metrics.exhausted.inc();
        Err(failure.given_up(failures))
    }
}
