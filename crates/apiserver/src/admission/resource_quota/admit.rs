//! The validating phase of the plugin: charges the quotas of a namespace in the store.

use std::time::Duration;

use serde_json::Value;

use super::{Evaluator, QUOTAS, Request, charge};
use crate::admission::Attributes;
use crate::admission::resource_list::{self, ResourceList};
use crate::object;
use crate::registry::{Registry, Write};
use crate::status::{ApiError, ApiResult};
use crate::store::Key;
use crate::target::Target;

/// Number of further attempts to charge a quota that other clients write at the same time.
const RETRIES: usize = 3;
/// Maximum time to wait for other requests in the namespace.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The field manager of the use of a quota.
const MANAGER: &str = "kube-apiserver";

/// Checks that the quotas of the namespace have enough left for an object, and charges them.
///
/// # Cancel safety
/// Quotas that were charged by a dropped future are recalculated.
pub(in crate::admission) async fn check(
    registry: &Registry,
    attributes: &Attributes<'_>,
    object: &Value,
) -> ApiResult<()> {
    let write = attributes.write;
    let namespace = attributes.target.namespace.as_str();
    let subresource = attributes.target.subresource.as_str();
    let Some(evaluator) = Evaluator::of(attributes.kind()) else {
        return Ok(());
    };
    // A charge of an earlier attempt to store the object.
    write.charges.release();
    let is_handled = evaluator.handles(subresource, object, attributes.old);
    if write.is_direct || !is_handled || quotas_of(registry, namespace).is_empty() {
        return Ok(());
    }
    let lock = registry.quotas.lock(namespace);
    let lock = tokio::time::timeout(TIMEOUT, lock)
        .await
        .map_err(|_| ApiError::internal_occurred("resource quota evaluation timed out"))?;
    write.charges.start(&registry.quotas, lock);
    let charged = charge_all(registry, attributes, &evaluator, object).await;
    if !matches!(charged, Ok(true)) {
        write.charges.release();
    }
    charged.map(|_| ())
}

fn quotas_of(registry: &Registry, namespace: &str) -> Vec<Value> {
    let (quotas, _) = registry.store.list(QUOTAS, Some(namespace));
    quotas.iter().map(|quota| Value::clone(quota)).collect()
}

/// Charges all quotas of the namespace, and returns whether one was charged.
async fn charge_all(
    registry: &Registry,
    attributes: &Attributes<'_>,
    evaluator: &Evaluator,
    object: &Value,
) -> ApiResult<bool> {
    let request = Request {
        subresource: &attributes.target.subresource,
        object,
        old: attributes.old,
        now: registry.clock.now(),
    };
    let mut quotas = quotas_of(registry, &attributes.target.namespace);
    let mut is_charged = false;
    for attempt in 0..=RETRIES {
        let charged = charge(evaluator, &request, &quotas).map_err(|why| attributes.forbid(why))?;
        if attributes.is_dry_run() {
            return Ok(false);
        }
        let mut failed = Vec::new();
        for (quota, used) in quotas.iter().zip(charged) {
            let Some(used) = used else {
                continue;
            };
            match write_used(registry, quota, &used).await {
                Err(error) if attempt == RETRIES => return Err(error),
                Err(_) => failed.push(object::name(quota).to_owned()),
                Ok(()) => {
                    is_charged = true;
                    // Without the controller of quotas, nothing recalculates them.
                    if registry.controllers {
                        attributes.write.charges.add(Key::of(quota));
                    }
                }
            }
        }
        if failed.is_empty() {
            break;
        }
        quotas = quotas_of(registry, &attributes.target.namespace);
        quotas.retain(|quota| failed.iter().any(|name| name == object::name(quota)));
    }
    Ok(is_charged)
}

/// Writes the use of a quota, unless another client has changed the quota since it was read.
async fn write_used(registry: &Registry, quota: &Value, used: &ResourceList) -> ApiResult<()> {
    let kind = registry.builtin("", QUOTAS)?;
    let target = Target::new(&kind, object::namespace(quota), object::name(quota));
    let target = target.subresource("status");
    let mut new = quota.clone();
    object::set(&mut new, &["status", "used"], resource_list::to_value(used));
    let mut write = Write::by(MANAGER);
    let written = registry.modify(&target, &mut write, |_| Ok(new.clone()));
    // Boxed, because the quota is written in the same way as the object.
    Box::pin(written).await.map(|_| ())
}
