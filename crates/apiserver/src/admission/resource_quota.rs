//! The plugin `ResourceQuota`: charges the resources that an object uses to the quotas of its
//! namespace, and refuses an object for which a quota has not enough left.
//!
//! As in Kubernetes, the limits are those in the status of a quota, which the controller of quotas
//! copies from the spec. A quota without a status limits nothing.

mod admit;
mod charges;
mod evaluator;
mod pods;
mod usage;

use jiff::Timestamp;
use serde_json::Value;

use super::resource_list::{self, ResourceList};
use crate::object;
pub(super) use admit::check;
pub(crate) use charges::{Charges, QuotaState};
pub(crate) use evaluator::Evaluator;
pub(super) use evaluator::{has_storage_class, storage_class};
pub(crate) use usage::calculate;

/// The resource name of quotas.
pub(crate) const QUOTAS: &str = "resourcequotas";

/// A request that may use resources.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    pub(super) subresource: &'a str,
    pub(super) object: &'a Value,
    /// The object that the request replaces, unless the request creates the object.
    pub(super) old: Option<&'a Value>,
    pub(super) now: Timestamp,
}

/// The resources that a quota limits, and those that are used.
#[derive(Clone, Debug)]
struct Limits {
    hard: ResourceList,
    used: ResourceList,
}

impl Limits {
    fn of(quota: &Value) -> Self {
        let list = |field| resource_list::parse(object::at(quota, &["status", field]));
        Self {
            hard: list("hard"),
            used: list("used"),
        }
    }
}

/// Checks a request against a quota. Returns the new `status.used` of the quota, or `None` if the
/// request does not change it.
///
/// # Errors
/// The reason for which the request is forbidden.
pub(super) fn charge(
    evaluator: &Evaluator,
    request: &Request<'_>,
    quotas: &[Value],
) -> Result<Vec<Option<ResourceList>>, String> {
    let mut matching = Vec::new();
    for quota in quotas {
        let limits = Limits::of(quota);
        let is_matching = evaluator.matches(quota, &limits.hard, request.object);
        if is_matching {
            check_usable(evaluator, quota, &limits, request.object)?;
        }
        matching.push(is_matching.then_some(limits));
    }
    let unchanged = || Ok(vec![None; quotas.len()]);
    if matching.iter().all(Option::is_none) {
        return unchanged();
    }
    let usage = evaluator.usage(request.object, request.now);
    let zero = Default::default();
    let negative: Vec<&str> = usage
        .iter()
        .filter(|(_, quantity)| **quantity < zero)
        .map(|(name, _)| name.as_str())
        .collect();
    if !negative.is_empty() {
        let names = negative.join(",");
        return Err(format!("quota usage is negative for resource(s): {names}"));
    }
    let before = request
        .old
        .filter(|old| !object::meta(old, "resourceVersion").is_empty())
        .map(|old| (old, evaluator.usage(old, request.now)));
    let mut charged = Vec::new();
    for (quota, limits) in quotas.iter().zip(matching) {
        let Some(limits) = limits else {
            charged.push(None);
            continue;
        };
        // A quota to which the old object did not belong is charged for the whole object.
        let added = match &before {
            Some((old, used)) if evaluator.matches(quota, &limits.hard, old) => {
                increase(&usage, used)
            }
            _ => usage.clone(),
        };
        charged.push(charge_one(quota, &limits, added, request.subresource)?);
    }
    Ok(charged)
}

/// Checks that the object has what the quota requires, and that the use of all limited resources is
/// known.
fn check_usable(
    evaluator: &Evaluator,
    quota: &Value,
    limits: &Limits,
    object: &Value,
) -> Result<(), String> {
    let name = object::name(quota);
    let names = limits.hard.keys().map(String::as_str);
    let restricted: Vec<&str> = names.filter(|name| evaluator.counts(name)).collect();
    evaluator
        .check_constraints(&restricted, object)
        .map_err(|why| format!("failed quota: {name}: {why}"))?;
    match restricted
        .iter()
        .all(|name| limits.used.contains_key(*name))
    {
        true => Ok(()),
        false => Err(format!(
            "status unknown for quota: {name}, resources: {}",
            restricted.join(",")
        )),
    }
}

/// Returns the quantities by which `new` exceeds `old`.
fn increase(new: &ResourceList, old: &ResourceList) -> ResourceList {
    let more = new.iter().map(|(name, quantity)| {
        let before = old.get(name).copied().unwrap_or_default();
        (name.clone(), *quantity - before)
    });
    more.filter(|(_, quantity)| *quantity > Default::default())
        .collect()
}

/// Adds `added` to the use of a quota, and returns the sum, or `None` if nothing is added.
fn charge_one(
    quota: &Value,
    limits: &Limits,
    mut added: ResourceList,
    subresource: &str,
) -> Result<Option<ResourceList>, String> {
    added.retain(|name, quantity| !quantity.is_zero() && limits.hard.contains_key(name));
    if added.is_empty() {
        return Ok(None);
    }
    let mut used = limits.used.clone();
    resource_list::add(&mut used, &added);
    if subresource != "status" {
        let exceeded: Vec<&String> = added
            .keys()
            .filter(|name| used.get(*name) > limits.hard.get(*name))
            .collect();
        if !exceeded.is_empty() {
            let print = |list: &ResourceList| {
                let parts = exceeded.iter().filter_map(|name| {
                    let quantity = list.get(*name)?;
                    Some(format!("{name}={quantity}"))
                });
                parts.collect::<Vec<_>>().join(",")
            };
            return Err(format!(
                "exceeded quota: {}, requested: {}, used: {}, limited: {}",
                object::name(quota),
                print(&added),
                print(&limits.used),
                print(&limits.hard)
            ));
        }
    }
    Ok(Some(used))
}

#[cfg(test)]
mod tests;
