//! Calls of mutating webhooks.

use opkit_apimachinery::patch;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::call::{self, Failure, Outcome};
use super::configuration::{Webhook, WebhookType};
use super::review::Verdict;
use super::select;
use crate::admission::reinvocation::Reinvocation;
use crate::admission::request::{Presented, convert_back};
use crate::admission::{Attributes, Operation};
use crate::object;
use crate::registry::Registry;
use crate::registry::decoding::syntax_error;
use crate::status::{ApiError, ApiResult};

const FAILED_OPEN: &str = "failed-open.mutation.webhook.admission.k8s.io/";
const MUTATION: &str = "mutation.webhook.admission.k8s.io/";
const PATCH: &str = "patch.webhook.admission.k8s.io/";

/// Calls the mutating webhooks for a request, and applies their patches to the object.
pub(crate) async fn mutate(
    registry: &Registry,
    attributes: &Attributes<'_>,
    object: &mut Value,
    reinvocation: &mut Reinvocation,
) -> ApiResult<()> {
    const TYPE: WebhookType = WebhookType::Mutating;
    let webhooks = registry.admission_webhooks.of(TYPE, registry);
    if webhooks.is_empty() {
        return Ok(());
    }
    reinvocation.begin(object);
    let round = reinvocation.round();
    let notes = &attributes.write.notes;
    for (index, webhook) in webhooks.iter().enumerate() {
        let new = (attributes.operation != Operation::Delete).then_some(&*object);
        let presented = select(registry, TYPE, webhook, attributes, new).await?;
        let Some(presented) = presented else {
            continue;
        };
        if !reinvocation.is_due(&webhook.uid) {
            continue;
        }
        let place = format!("round_{round}_index_{index}");
        let started = Instant::now();
        let called = call::call(registry, TYPE, webhook, &presented).await;
        let patched = called.and_then(|verdict| {
            let new = patch_object(webhook, &presented, &verdict)?;
            Ok((verdict, new))
        });
        let (result, new) = match patched {
            Ok((verdict, new)) => (Ok(verdict), new),
            Err(failure) => (Err(failure), None),
        };
        let is_changed = new.as_ref().is_some_and(|new| *new != presented.object);
        let annotation = json!({
            "configuration": webhook.configuration, "webhook": webhook.name, "mutated": is_changed,
        });
        notes.annotate(format!("{MUTATION}{place}"), annotation.to_string());
        if let Some(new) = new {
            if let Ok(verdict) = &result {
                annotate_patch(attributes, webhook, &place, verdict);
            }
            let kind = presented.kind.clone();
            *object = convert_back(registry, attributes, &kind, new).await?;
            registry.default_mutated(attributes, object)?;
        }
        if is_changed {
            reinvocation.changed();
        }
        if webhook.is_reinvoked {
            reinvocation.invoked(webhook.uid.as_str());
        }
        match call::settle(registry, TYPE, webhook, &presented, started, result)? {
            Outcome::Allowed => {}
            Outcome::FailedOpen => {
                notes.annotate(format!("{FAILED_OPEN}{place}"), webhook.name.as_str());
            }
        }
    }
    reinvocation.end(object);
    Ok(())
}

fn annotate_patch(attributes: &Attributes<'_>, webhook: &Webhook, place: &str, verdict: &Verdict) {
    let patch: Value = serde_json::from_slice(&verdict.patch).unwrap_or_default();
    let annotation = json!({
        "configuration": webhook.configuration, "webhook": webhook.name, "patch": patch,
        "patchType": verdict.patch_type,
    });
    let notes = &attributes.write.notes;
    notes.annotate_request(format!("{PATCH}{place}"), annotation.to_string());
}

/// Checks that a patch has not changed the kind of an object.
fn check_kind(before: &Value, patched: &Value) -> ApiResult<()> {
    let name = |object: &Value| {
        let api_version = object::text(object, &["apiVersion"]);
        let kind = object::text(object, &["kind"]);
        (api_version.to_owned(), kind.to_owned())
    };
    let (wanted, found) = (name(before), name(patched));
    if wanted == found {
        return Ok(());
    }
    // Kubernetes prints the package of its types: the version of the patched object, and the group
    // of the internal type.
    let version = found.0.rsplit('/').next().unwrap_or_default();
    let group = match wanted.0.split_once('/') {
        Some((group, _)) => group.split('.').next().unwrap_or_default(),
        None => "core",
    };
    let (found, wanted) = (found.1, wanted.1);
    let message =
        format!("converting ({version}.{found}) to ({group}.{wanted}): unknown conversion");
    Err(ApiError::without_reason(500, message))
}

/// Returns the object with the patch of a webhook, or `None` if there is no patch.
fn patch_object(
    webhook: &Webhook,
    presented: &Presented<'_>,
    verdict: &Verdict,
) -> Result<Option<Value>, Failure> {
    if verdict.patch.is_empty() {
        return Ok(None);
    }
    let patch: Value = serde_json::from_slice(&verdict.patch).map_err(|_| Failure::Calling {
        reason: format!(
            "received undecodable patch in webhook response: {}",
            syntax_error(&verdict.patch)
        ),
        code: 503,
    })?;
    if patch.as_array().is_some_and(Vec::is_empty) {
        return Ok(None);
    }
    if presented.object.is_null() {
        return Err(Failure::Internal(ApiError::internal_occurred(format!(
            "admission webhook {:?} attempted to modify the object, which is not supported for \
             this operation",
            webhook.name
        ))));
    }
    if verdict.patch_type != "JSONPatch" {
        return Err(Failure::Calling {
            reason: format!("unsupported patch type {:?}", verdict.patch_type),
            code: 400,
        });
    }
    let mut object = presented.object.clone();
    patch::json_patch(&mut object, &patch)
        .map_err(|error| Failure::Internal(ApiError::internal_occurred(error.to_string())))?;
    check_kind(&presented.object, &object).map_err(Failure::Internal)?;
    Ok(Some(object))
}
