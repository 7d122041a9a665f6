//! The plugins `MutatingAdmissionWebhook` and `ValidatingAdmissionWebhook`.
//!
//! Mutating webhooks are called one after the other, each with the object as the previous ones left
//! it. Validating webhooks are called at the same time.

mod call;
mod configuration;
mod mutating;
mod review;
mod validating;

use std::sync::Arc;

use serde_json::Value;

use super::Attributes;
use super::conditions::Matched;
use super::request::Presented;
use crate::kinds::Kind;
use crate::registry::Registry;
use crate::status::{ApiError, ApiResult};
use configuration::{Configurations, Webhook, WebhookType};

pub(crate) use mutating::mutate;
pub(crate) use validating::validate;

/// The webhooks of the configurations in the store.
#[derive(Debug)]
pub(crate) struct AdmissionWebhooks {
    mutating: Configurations,
    validating: Configurations,
}

impl AdmissionWebhooks {
    pub(crate) fn new() -> Self {
        Self {
            mutating: Configurations::new(WebhookType::Mutating),
            validating: Configurations::new(WebhookType::Validating),
        }
    }

    /// Reports whether there is a mutating webhook.
    pub(crate) fn has_mutating(&self, registry: &Registry) -> bool {
        !self.mutating.get(&registry.store).is_empty()
    }

    /// Returns the webhooks of one sort.
    fn of(&self, type_: WebhookType, registry: &Registry) -> Arc<Vec<Webhook>> {
        match type_ {
            WebhookType::Mutating => self.mutating.get(&registry.store),
            WebhookType::Validating => self.validating.get(&registry.store),
        }
    }
}

/// Returns the request in the version that a webhook wants, or `None` if the webhook is not called
/// for the request. `object` is the new object.
async fn select<'a>(
    registry: &Registry,
    type_: WebhookType,
    webhook: &Webhook,
    attributes: &'a Attributes<'a>,
    object: Option<&Value>,
) -> ApiResult<Option<Presented<'a>>> {
    let matching = webhook.matching.as_ref();
    let matching = matching.map_err(|error| ApiError::internal_occurred(error.as_str()))?;
    let Some(kind): Option<Arc<Kind>> = matching.select(registry, attributes, object)? else {
        return Ok(None);
    };
    let presented = Presented::new(registry, attributes, kind, object).await?;
    let operation = attributes.operation.as_str();
    match webhook.conditions.evaluate(registry, &presented) {
        Matched::Yes => Ok(Some(presented)),
        Matched::No => {
            let metrics = &registry.metrics;
            metrics.condition_exclusion(&webhook.name, "webhook", type_.step(), operation);
            Ok(None)
        }
        Matched::Error(error) => {
            let metrics = &registry.metrics;
            metrics.condition_error(&webhook.name, "webhook", type_.step(), operation);
            Err(attributes.forbid(error))
        }
    }
}
