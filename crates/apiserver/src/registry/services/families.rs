//! The fields `ipFamilyPolicy` and `ipFamilies` of a Service.

use std::net::IpAddr;

use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use super::addresses::Family;
use super::spec::{self, PREFER_DUAL_STACK, REQUIRE_DUAL_STACK, SINGLE_STACK};
use super::{ServiceRanges, validation};
use crate::object;

const POLICY: &str = "spec.ipFamilyPolicy";

/// Sets the IP families of a Service from its cluster IPs, from `live`, or from the configuration
/// of the cluster.
pub(super) fn init(
    ranges: &ServiceRanges,
    service: &mut Value,
    live: Option<&Value>,
) -> Result<(), Vec<FieldError>> {
    if spec::is_external_name(service)
        || live.is_some_and(|live| keeps_preferred_families(live, service))
    {
        return Ok(());
    }
    let is_free = spec::text(service, "clusterIP") == spec::NONE && !spec::has_selector(service);
    if spec::text(service, "ipFamilyPolicy").is_empty() {
        let before = live.map(|live| spec::text(live, "ipFamilyPolicy"));
        let policy = match before.filter(|policy| !policy.is_empty()) {
            Some(policy) => policy,
            // A headless Service without a selector can have endpoints of both families.
            None if is_free => REQUIRE_DUAL_STACK,
            None => SINGLE_STACK,
        };
        let policy = json!(policy);
        spec::set(service, "ipFamilyPolicy", policy);
    }
    let errors = validation::cluster_ips(service, live);
    if !errors.is_empty() {
        return Err(errors);
    }
    let mut errors = Vec::new();
    if let Some(live) = live {
        errors.extend(shorten(live, service));
    }
    let policy = spec::text(service, "ipFamilyPolicy").to_owned();
    let invalid_policy =
        |detail: &str| FieldError::invalid(POLICY, &json!(policy.as_str()), detail);
    let addresses = spec::texts(service, "clusterIPs");
    let mut families = spec::texts(service, "ipFamilies");
    if policy == SINGLE_STACK {
        for (list, what) in [(&addresses, "cluster IPs"), (&families, "IP families")] {
            if list.len() == 2 {
                errors.push(invalid_policy(&format!(
                    "must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are \
                     specified"
                )));
            }
        }
    }
    for (index, address) in addresses.iter().enumerate().skip(families.len()) {
        let Ok(address) = address.parse::<IpAddr>() else {
            break;
        };
        let family = Family::of(address);
        if ranges.range(family).is_none() {
            let field = format!("spec.clusterIPs[{index}]");
            let detail = format!("{} is not configured on this cluster", family.as_str());
            errors.push(FieldError::invalid(field, &json!(addresses), detail));
        } else {
            families.push(family.as_str().to_owned());
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    if is_free {
        add_families(&mut families, ranges, policy != SINGLE_STACK);
        spec::set(service, "ipFamilies", json!(families));
        return Ok(());
    }
    let is_dual_stack = ranges.secondary.is_some();
    if policy == REQUIRE_DUAL_STACK && !is_dual_stack {
        errors.push(invalid_policy(
            "this cluster is not configured for dual-stack services",
        ));
    }
    for (index, family) in families.iter().enumerate() {
        if !is_configured(ranges, family) {
            let field = format!("spec.ipFamilies[{index}]");
            let detail = "not configured on this cluster";
            errors.push(FieldError::invalid(field, &json!(family), detail));
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let is_dual = policy != SINGLE_STACK && is_dual_stack;
    add_families(&mut families, ranges, is_dual);
    spec::set(service, "ipFamilies", json!(families));
    Ok(())
}

fn is_configured(ranges: &ServiceRanges, family: &str) -> bool {
    [Family::V4, Family::V6]
        .into_iter()
        .any(|known| known.as_str() == family && ranges.range(known).is_some())
}

/// Adds the default family to an empty list and, if `is_dual`, the other family to a list of one.
fn add_families(families: &mut Vec<String>, ranges: &ServiceRanges, is_dual: bool) {
    if families.is_empty() {
        families.push(ranges.primary.family().as_str().to_owned());
    }
    if let [one] = families.as_slice()
        && is_dual
    {
        let one = match one == Family::V4.as_str() {
            true => Family::V4,
            false => Family::V6,
        };
        families.push(one.other().as_str().to_owned());
    }
}

/// Reports whether an update of a Service with the policy `PreferDualStack` changes neither its
/// type nor its addresses and families. Such a Service gets no second address.
fn keeps_preferred_families(live: &Value, new: &Value) -> bool {
    let is_same = |field: &str| spec::texts(live, field) == spec::texts(new, field);
    let before = spec::text(live, "ipFamilyPolicy");
    spec::text(new, "ipFamilyPolicy") == PREFER_DUAL_STACK
        && (before.is_empty() || before == PREFER_DUAL_STACK)
        && spec::text(live, "type") == spec::text(new, "type")
        && is_same("clusterIPs")
        && is_same("ipFamilies")
}

/// Removes the second address and family after a change of the policy to `SingleStack`. Returns an
/// error for each list that is shorter without this change of the policy.
fn shorten(live: &Value, service: &mut Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let is_single = spec::text(service, "ipFamilyPolicy") == SINGLE_STACK;
    for (field, what) in [("clusterIPs", "cluster IP"), ("ipFamilies", "IP family")] {
        let (before, mut after) = (spec::texts(live, field), spec::texts(service, field));
        if is_single && before == after && after.len() > 1 {
            after.truncate(1);
            spec::set(service, field, json!(after));
        } else if !is_single && !after.is_empty() && after.len() < before.len() {
            let policy = object::at(service, &["spec", "ipFamilyPolicy"]);
            let detail = format!("must be 'SingleStack' to release the secondary {what}");
            errors.push(FieldError::invalid(POLICY, policy, detail));
        }
    }
    errors
}
