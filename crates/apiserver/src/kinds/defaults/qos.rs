//! The quality of service class of a Pod.

use std::collections::BTreeMap;

use opkit_apimachinery::quantity::Quantity;
use serde_json::Value;

/// The resources that determine the class.
const RESOURCES: [&str; 2] = ["cpu", "memory"];

/// Returns the quality of service class of a Pod, from the resources of the Pod itself, or else
/// from those of its containers.
pub(crate) fn qos_class(pod: &Value) -> &'static str {
    let spec = pod.get("spec");
    let whole = spec.and_then(|spec| spec.get("resources"));
    let whole = whole.filter(|resources| !resources.is_null());
    let containers = ["containers", "initContainers"]
        .into_iter()
        .filter_map(|list| spec?.get(list)?.as_array())
        .flatten()
        .map(|container| container.get("resources").unwrap_or(&Value::Null));
    let parts: Vec<&Value> = match whole {
        Some(whole) => vec![whole],
        None => containers.collect(),
    };
    let mut requests: BTreeMap<&str, Quantity> = BTreeMap::new();
    let mut limits: BTreeMap<&str, Quantity> = BTreeMap::new();
    let mut is_limited = true;
    for part in parts {
        let amounts = |list: &str| {
            let amounts = RESOURCES.map(|name| (name, amount(part, list, name)));
            amounts
                .into_iter()
                .filter_map(|(name, amount)| Some((name, amount?)))
        };
        for (name, amount) in amounts("requests") {
            *requests.entry(name).or_default() += amount;
        }
        for (name, amount) in amounts("limits") {
            *limits.entry(name).or_default() += amount;
        }
        is_limited &= amounts("limits").count() == RESOURCES.len();
    }
    match (requests.is_empty() && limits.is_empty(), is_limited) {
        (true, _) => "BestEffort",
        (false, true) if requests == limits => "Guaranteed",
        _ => "Burstable",
    }
}

/// Returns an amount that is more than zero.
fn amount(resources: &Value, list: &str, name: &str) -> Option<Quantity> {
    let amount = match resources.get(list)?.get(name)? {
        Value::String(text) => Quantity::parse(text)?,
        Value::Number(number) => Quantity::parse(&number.to_string())?,
        _ => return None,
    };
    (amount > Quantity::default()).then_some(amount)
}
