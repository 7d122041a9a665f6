//! Calls of validating webhooks.

use futures::stream::{FuturesUnordered, StreamExt};
use serde_json::Value;
use tokio::time::Instant;

use super::call::{self, Outcome};
use super::configuration::WebhookType;
use super::select;
use crate::admission::Attributes;
use crate::registry::Registry;
use crate::status::{ApiError, ApiResult};

/// Prefix of the audit annotations about webhooks that could not be called.
const FAILED_OPEN: &str = "failed-open.validating.webhook.admission.k8s.io/round_0_index_";

/// Calls all validating webhooks for a request at the same time. If several refuse the request, the
/// first that responds gives the error.
pub(crate) async fn validate(
    registry: &Registry,
    attributes: &Attributes<'_>,
    object: Option<&Value>,
) -> ApiResult<()> {
    const TYPE: WebhookType = WebhookType::Validating;
    let webhooks = registry.admission_webhooks.of(TYPE, registry);
    let mut selected = Vec::new();
    for webhook in webhooks.iter() {
        let presented = select(registry, TYPE, webhook, attributes, object).await?;
        selected.extend(presented.map(|presented| (webhook, presented)));
    }
    if selected.is_empty() {
        return Ok(());
    }
    if attributes.write.is_overdue() {
        return Err(ApiError::timeout());
    }
    let calls = selected
        .iter()
        .enumerate()
        .map(async |(index, (webhook, presented))| {
            let started = Instant::now();
            let result = call::call(registry, TYPE, webhook, presented).await;
            match call::settle(registry, TYPE, webhook, presented, started, result)? {
                Outcome::Allowed => {}
                Outcome::FailedOpen => {
                    let key = format!("{FAILED_OPEN}{index}");
                    attributes.write.notes.annotate(key, webhook.name.as_str());
                }
            }
            Ok(())
        });
    let mut calls: FuturesUnordered<_> = calls.collect();
    let mut first = Ok(());
    while let Some(result) = calls.next().await {
        first = first.and(result);
    }
    first
}
