//! Validation of Nodes.

use serde_json::json;

use super::addresses;
use super::field::{Errors, Field};
use super::{format, resources, scheduling};

const POD_CIDRS: &str = "node updates may not change podCIDR except from \"\" to valid";
const PROVIDER: &str = "node updates may not change providerID except from \"\" to valid";

/// Adds the errors in a Node.
pub(super) fn node(object: &Field<'_>, errors: &mut Errors) {
    let spec = object.get("spec");
    // The path of taints in messages is a mistake of Kubernetes.
    taints(&spec.get("taints").renamed("metadata.taints"), errors);
    for list in ["capacity", "allocatable"] {
        let list = object.at(&["status", list]);
        for (name, amount) in list.entries() {
            let amount = amount.renamed(list.join(name));
            resources::resource_quantity(name, &amount, errors);
        }
    }
    let ranges = spec.get("podCIDRs");
    for range in ranges.items() {
        addresses::cidr(&range, errors);
    }
    if ranges.len() > 1 {
        let sizes = ranges
            .items()
            .map(|range| addresses::Cidr::parse(range.text()));
        let sizes: Vec<u32> = sizes.flatten().map(|cidr| cidr.size).collect();
        let is_dual = sizes.contains(&32) && sizes.contains(&128);
        if !is_dual || ranges.len() > 2 {
            let detail = "may specify no more than one CIDR for each IP family";
            errors.invalid(&ranges, detail);
        }
    }
}

fn taints(list: &Field<'_>, errors: &mut Errors) {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for taint in list.items() {
        let (key, value, effect) = (taint.get("key"), taint.get("value"), taint.get("effect"));
        errors.rules(&key, format::qualified_name(key.text()));
        let rules = format::label_value(value.text());
        if !rules.is_empty() {
            errors.invalid(&value, &rules.join(";"));
        }
        scheduling::taint_effect(&effect, errors);
        let id = (key.text(), effect.text());
        if seen.contains(&id) {
            let printed = format!(
                "{{\"Key\":{},\"Value\":{},\"Effect\":{},\"TimeAdded\":{}}}",
                json!(key.text()),
                json!(value.text()),
                json!(effect.text()),
                taint.get("timeAdded").value
            );
            errors.duplicate(&taint.path, "");
            if let Some(error) = errors.0.last_mut() {
                error.detail = format!(
                    "Duplicate value: {printed}: taints must be unique by key and effect pair"
                );
            }
            continue;
        }
        seen.push(id);
    }
}

/// Adds the errors in the change of a Node.
pub(super) fn node_update(live: &Field<'_>, new: &Field<'_>, errors: &mut Errors) {
    let (before, after) = (live.get("spec"), new.get("spec"));
    let ranges = after.get("podCIDRs");
    if !before.get("podCIDRs").is_empty() && before.get("podCIDRs").value != ranges.value {
        errors.forbidden(&ranges, POD_CIDRS);
    }
    let provider = after.get("providerID");
    if !before.get("providerID").is_empty() && before.get("providerID").value != provider.value {
        errors.forbidden(&provider, PROVIDER);
    }
}
