//! The plugin `LimitRanger`: sets the default resources of containers, and checks the resources of
//! Pods and claims, by the LimitRanges of the namespace.

use std::sync::Arc;

use opkit_apimachinery::quantity::Quantity;
use serde_json::{Value, json};

use super::resource_list::{self, Field, ResourceList};
use crate::object;

/// The annotation of a Pod with the resources that this plugin has set.
const ANNOTATION: &str = "kubernetes.io/limit-ranger";
/// The largest number whose thousandths are compared. The thousandths of a larger number do not
/// fit into 64 bits.
const MILLI_VALUE_MAX: i64 = i64::MAX / 1000;

/// Sets the default requests and limits of the containers of a Pod.
pub(super) fn set_defaults(ranges: &[Arc<Value>], pod: &mut Value) {
    for range in ranges {
        let defaults = |field: &str| {
            let limits = object::items(range, &["spec", "limits"]).iter();
            let limits = limits.filter(|limit| type_of(limit) == "Container");
            limits.fold(ResourceList::new(), |mut all, limit| {
                all.extend(resource_list::parse(object::at(limit, &[field])));
                all
            })
        };
        let (requests, limits) = (defaults("defaultRequest"), defaults("default"));
        let mut set = Vec::new();
        for (list, noun) in [
            ("containers", "container"),
            ("initContainers", "init container"),
        ] {
            let containers = pod.pointer_mut(&format!("/spec/{list}"));
            let containers = containers.and_then(Value::as_array_mut);
            for container in containers.into_iter().flatten() {
                let name = object::text(container, &["name"]).to_owned();
                for (field, word, defaults) in [
                    (Field::Requests, "request", &requests),
                    (Field::Limits, "limit", &limits),
                ] {
                    let added = complete(container, field, defaults);
                    if !added.is_empty() {
                        set.push(format!("{} {word} for {noun} {name}", added.join(", ")));
                    }
                }
            }
        }
        if !set.is_empty() {
            let text = format!("LimitRanger plugin set: {}", set.join("; "));
            object::set(pod, &["metadata", "annotations", ANNOTATION], json!(text));
        }
    }
}

/// Adds the resources that a container does not have, and returns their names.
fn complete(container: &mut Value, field: Field, defaults: &ResourceList) -> Vec<String> {
    let mut added = Vec::new();
    for (name, quantity) in defaults {
        let path = ["resources", field.as_str(), name];
        if object::at(container, &path).is_null() {
            object::set(container, &path, json!(quantity.to_string()));
            added.push(name.clone());
        }
    }
    added
}

fn type_of(limit: &Value) -> &str {
    object::text(limit, &["type"])
}

/// Checks a Pod. Returns the violations of the first LimitRange that the Pod violates.
pub(super) fn check_pod(ranges: &[Arc<Value>], pod: &Value) -> Result<(), String> {
    first_violated(ranges, |limit, errors| match type_of(limit) {
        "Container" => {
            for list in ["containers", "initContainers"] {
                for container in object::items(pod, &["spec", list]) {
                    let of = |field: Field| {
                        resource_list::parse(object::at(container, &["resources", field.as_str()]))
                    };
                    check_limit(limit, &of(Field::Requests), &of(Field::Limits), errors);
                }
            }
        }
        "Pod" => {
            let requests = resource_list::of_pod_spec(pod, Field::Requests);
            let limits = resource_list::of_pod_spec(pod, Field::Limits);
            check_limit(limit, &requests, &limits, errors);
        }
        _ => {}
    })
}

/// Checks a PersistentVolumeClaim. Returns the violations of the first LimitRange that the claim
/// violates.
pub(super) fn check_claim(ranges: &[Arc<Value>], claim: &Value) -> Result<(), String> {
    let requests = resource_list::parse(object::at(claim, &["spec", "resources", "requests"]));
    first_violated(ranges, |limit, errors| {
        if type_of(limit) != "PersistentVolumeClaim" {
            return;
        }
        for (name, bound) in &resource_list::parse(object::at(limit, &["min"])) {
            let bound = Bound::new(limit, name, *bound);
            errors.extend(bound.minimum(&requests, &ResourceList::new()));
        }
        for (name, bound) in &resource_list::parse(object::at(limit, &["max"])) {
            let bound = Bound::new(limit, name, *bound);
            errors.extend(bound.maximum_of_requests(&requests));
        }
    })
}

fn first_violated(
    ranges: &[Arc<Value>],
    check: impl Fn(&Value, &mut Vec<String>),
) -> Result<(), String> {
    for range in ranges {
        let mut errors = Vec::new();
        for limit in object::items(range, &["spec", "limits"]) {
            check(limit, &mut errors);
        }
        if !errors.is_empty() {
            return Err(super::aggregate(&errors));
        }
    }
    Ok(())
}

/// Checks requests and limits by all bounds of a limit.
fn check_limit(
    limit: &Value,
    requests: &ResourceList,
    limits: &ResourceList,
    errors: &mut Vec<String>,
) {
    let bounds = |field: &str| resource_list::parse(object::at(limit, &[field]));
    for (name, bound) in &bounds("min") {
        errors.extend(Bound::new(limit, name, *bound).minimum(requests, limits));
    }
    for (name, bound) in &bounds("max") {
        errors.extend(Bound::new(limit, name, *bound).maximum(requests, limits));
    }
    for (name, bound) in &bounds("maxLimitRequestRatio") {
        errors.extend(Bound::new(limit, name, *bound).ratio(requests, limits));
    }
}

/// A bound for one resource.
struct Bound<'a> {
    type_: &'a str,
    resource: &'a str,
    quantity: Quantity,
}

impl<'a> Bound<'a> {
    fn new(limit: &'a Value, resource: &'a str, quantity: Quantity) -> Self {
        Self {
            type_: type_of(limit),
            resource,
            quantity,
        }
    }

    /// Returns the text that starts each error, such as `minimum cpu usage per Pod is 1`.
    fn usage(&self, word: &str) -> String {
        let Self {
            type_,
            resource,
            quantity,
        } = self;
        format!("{word} {resource} usage per {type_} is {quantity}")
    }

    /// Returns request, limit and bound as numbers that can be compared.
    fn numbers(&self, request: Quantity, limit: Quantity) -> (i64, i64, i64) {
        let values = [request, limit, self.quantity];
        let whole = values.map(|quantity| quantity.value().unwrap_or(i64::MAX));
        let precise = values.map(|quantity| quantity.milli_value().unwrap_or(i64::MAX));
        let [request, limit, bound] = match whole.iter().all(|value| *value <= MILLI_VALUE_MAX) {
            true => precise,
            false => whole,
        };
        (request, limit, bound)
    }

    fn minimum(&self, requests: &ResourceList, limits: &ResourceList) -> Option<String> {
        let usage = self.usage("minimum");
        let limit = limits.get(self.resource);
        let Some(request) = requests.get(self.resource) else {
            return Some(format!("{usage}.  No request is specified"));
        };
        let (asked, limited, bound) = self.numbers(*request, limit.copied().unwrap_or_default());
        if asked < bound {
            return Some(format!("{usage}, but request is {request}"));
        }
        let limit = limit.filter(|_| limited < bound)?;
        Some(format!("{usage}, but limit is {limit}"))
    }

    fn maximum_of_requests(&self, requests: &ResourceList) -> Option<String> {
        let usage = self.usage("maximum");
        let Some(request) = requests.get(self.resource) else {
            return Some(format!("{usage}.  No request is specified"));
        };
        let (asked, _, bound) = self.numbers(*request, Quantity::default());
        (asked > bound).then(|| format!("{usage}, but request is {request}"))
    }

    fn maximum(&self, requests: &ResourceList, limits: &ResourceList) -> Option<String> {
        let usage = self.usage("maximum");
        let request = requests.get(self.resource);
        let Some(limit) = limits.get(self.resource) else {
            return Some(format!("{usage}.  No limit is specified"));
        };
        let (asked, limited, bound) = self.numbers(request.copied().unwrap_or_default(), *limit);
        if limited > bound {
            return Some(format!("{usage}, but limit is {limit}"));
        }
        let request = request.filter(|_| asked > bound)?;
        Some(format!("{usage}, but request is {request}"))
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "Kubernetes compares the ratio as a floating-point number"
    )]
    fn ratio(&self, requests: &ResourceList, limits: &ResourceList) -> Option<String> {
        let Self {
            type_,
            resource,
            quantity,
        } = self;
        let text = format!("{resource} max limit to request ratio per {type_} is {quantity}");
        let of = |list: &ResourceList| list.get(*resource).copied().unwrap_or_default();
        let (asked, limited, _) = self.numbers(of(requests), of(limits));
        if asked == 0 {
            let why = "but no request is specified or request is 0";
            return Some(format!("{text}, {why}"));
        }
        if limited == 0 {
            let why = "but no limit is specified or limit is 0";
            return Some(format!("{text}, {why}"));
        }
        let ratio = limited as f64 / asked as f64;
        let whole = quantity.value().unwrap_or(i64::MAX);
        let is_exceeded = match whole <= MILLI_VALUE_MAX {
            true => ratio * 1000.0 > quantity.milli_value().unwrap_or(i64::MAX) as f64,
            false => ratio > whole as f64,
        };
        is_exceeded.then(|| format!("{text}, but provided ratio is {ratio:.6}"))
    }
}

#[cfg(test)]
mod tests;
