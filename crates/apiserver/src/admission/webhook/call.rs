//! One call of a webhook.

use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use super::configuration::{SideEffects, Webhook, WebhookType};
use super::review::{self, Invalid, ReviewVersion, Verdict};
use crate::admission::metrics::Call;
use crate::admission::request::Presented;
use crate::registry::Registry;
use crate::status::{ApiError, ApiResult};

/// The result of a call that does not let the request pass.
#[derive(Debug)]
pub(super) enum Failure {
    /// The webhook could not be called, or did not respond properly. Its failure policy decides.
    Calling { reason: String, code: u16 },
    /// The webhook denies the request.
    Denied(ApiError),
    /// The request cannot be executed whatever the failure policy is.
    Internal(ApiError),
}

/// Calls a webhook, and returns its verdict on a request that it allows.
pub(super) async fn call(
    registry: &Registry,
    type_: WebhookType,
    webhook: &Webhook,
    presented: &Presented<'_>,
) -> Result<Verdict, Failure> {
    let attributes = presented.attributes;
    if attributes.is_dry_run() {
        match webhook.side_effects {
            SideEffects::None => {}
            SideEffects::Unknown => {
                return Err(Failure::Calling {
                    reason: "Webhook SideEffects is nil".to_owned(),
                    code: 400,
                });
            }
            SideEffects::Some => {
                let name = &webhook.name;
                let message = format!("admission webhook {name:?} does not support dry run");
                return Err(Failure::Internal(ApiError::bad_request(message)));
            }
        }
    }
    let Some(version) = ReviewVersion::of(webhook) else {
        return Err(Failure::Calling {
            reason: "could not create admission objects: webhook does not accept known \
                     AdmissionReview versions (v1, v1beta1)"
                .to_owned(),
            code: 400,
        });
    };
    let uid = registry.random.uid();
    let body = Bytes::from(review::review(version, &uid, presented).to_string());
    let timeout = remaining(webhook.timeout, attributes.write.deadline);
    let sent = registry.webhooks.post(
        &registry.resolver,
        &registry.store,
        &webhook.client_config,
        body,
        timeout,
    );
    let body = sent.await.map_err(|error| Failure::Calling {
        reason: format!("failed to call webhook: {}", error.message),
        code: error.code,
    })?;
    let verdict = review::parse(type_, version, &uid, &body).map_err(|invalid| match invalid {
        Invalid::Body(why) => Failure::Calling {
            reason: format!("failed to call webhook: {why}"),
            code: 503,
        },
        Invalid::Response(why) => Failure::Calling {
            reason: format!("received invalid webhook response: {why}"),
            code: 503,
        },
    })?;
    let notes = &attributes.write.notes;
    for (key, value) in &verdict.audit_annotations {
        notes.annotate(format!("{}/{key}", webhook.name), value.as_str());
    }
    for warning in &verdict.warnings {
        notes.warn(warning.as_str());
    }
    match verdict.is_allowed {
        true => Ok(verdict),
        false => {
            let (code, status) = review::denial(&webhook.name, &verdict.status);
            Err(Failure::Denied(ApiError::from_status(code, &status)))
        }
    }
}

/// Returns the time for a call: that of the webhook, or the rest of the time of the request.
fn remaining(timeout: Duration, deadline: Option<Instant>) -> Duration {
    match deadline {
        Some(deadline) => timeout.min(deadline.saturating_duration_since(Instant::now())),
        None => timeout,
    }
}

/// The outcome of a call after the failure policy was applied.
pub(super) enum Outcome {
    Allowed,
    /// The webhook could not be called, and is ignored.
    FailedOpen,
}

/// Applies the failure policy of the webhook to the result of a call, and counts the call.
pub(super) fn settle(
    registry: &Registry,
    type_: WebhookType,
    webhook: &Webhook,
    presented: &Presented<'_>,
    started: Instant,
    result: Result<Verdict, Failure>,
) -> ApiResult<Outcome> {
    let metrics = &registry.metrics;
    let count = |code: u16, rejection: Option<&'static str>| {
        metrics.observe(&Call {
            name: &webhook.name,
            step: type_.step(),
            operation: presented.attributes.operation.as_str(),
            elapsed: started.elapsed(),
            code,
            rejection,
        });
    };
    match result {
        Ok(_) => {
            count(200, None);
            Ok(Outcome::Allowed)
        }
        Err(Failure::Calling { reason, code }) if webhook.is_ignored_on_failure => {
            count(code, None);
            metrics.fail_open(&webhook.name, type_.step());
            tracing::warn!(
                webhook = webhook.name,
                reason,
                "webhook failed, failing open"
            );
            match presented.attributes.write.is_overdue() {
                true => Err(ApiError::timeout()),
                false => Ok(Outcome::FailedOpen),
            }
        }
        Err(Failure::Calling { reason, code }) => {
            count(code, Some("calling_webhook_error"));
            let name = &webhook.name;
            tracing::warn!(webhook = name, reason, "webhook failed, failing closed");
            let cause = format!("failed calling webhook {name:?}: {reason}");
            Err(ApiError::internal_occurred(cause))
        }
        Err(Failure::Denied(error)) => {
            count(error.code, Some("no_error"));
            Err(error)
        }
        Err(Failure::Internal(error)) => {
            count(0, Some("apiserver_internal_error"));
            Err(error)
        }
    }
}
