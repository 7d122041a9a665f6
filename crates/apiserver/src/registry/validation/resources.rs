//! Validation of resource names and quantities: limits and requests of containers and Pods.

use opkit_apimachinery::quantity::Quantity;
use serde_json::json;

use super::field::{Errors, Field};
use super::format;

/// Names of resources of containers, quotas and limit ranges that have no domain.
const STANDARD: &[&str] = &[
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];
/// Resources that are counted, so that their quantities are integers.
const INTEGERS: &[&str] = &[
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];
const HUGE_PAGES: &str = "hugepages-";
const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

/// Returns the quantity of a field, or zero if the field is missing.
pub(super) fn quantity(field: &Field<'_>) -> Quantity {
    let number = field.value.as_number().map(ToString::to_string);
    let text = number.as_deref().unwrap_or_else(|| field.text());
    Quantity::parse(text).unwrap_or_default()
}

pub(super) fn is_huge_pages(name: &str) -> bool {
    name.starts_with(HUGE_PAGES)
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Reports whether the name is that of a resource that Kubernetes does not define, such as
/// `example.com/gpu`.
fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && format::qualified_name(&format!("requests.{name}")).is_empty()
}

pub(super) fn is_overcommit_allowed(name: &str) -> bool {
    is_native(name) && !is_huge_pages(name)
}

/// Adds the errors in the name of a resource. Reports whether the name is valid.
pub(super) fn resource_name(path: &str, name: &str, errors: &mut Errors) -> bool {
    let rules = format::qualified_name(name);
    let is_broken = !rules.is_empty();
    for rule in rules {
        errors.invalid_value(path, json!(name), &rule);
    }
    let is_known = name.contains('/')
        || STANDARD.contains(&name)
        || is_huge_pages(name)
        || name.starts_with("requests.hugepages-");
    if !is_broken && !is_known {
        let detail = "must be a standard resource type or fully qualified";
        errors.invalid_value(path, json!(name), detail);
    }
    !is_broken && is_known
}

/// Adds the errors in the name of a resource of a container.
pub(super) fn container_resource_name(path: &str, name: &str, errors: &mut Errors) {
    resource_name(path, name, errors);
    if !name.contains('/') {
        let is_known =
            matches!(name, "cpu" | "memory" | "ephemeral-storage") || is_huge_pages(name);
        if !is_known {
            let detail = "must be a standard resource for containers";
            errors.invalid_value(path, json!(name), detail);
        }
    } else if !is_native(name) && !is_extended(name) {
        let detail = "doesn't follow extended resource name standard";
        errors.invalid_value(path, json!(name), detail);
    }
}

fn pod_resource_name(path: &str, name: &str, errors: &mut Errors) {
    if !resource_name(path, name, errors) {
        return;
    }
    if !matches!(name, "cpu" | "memory") && !is_huge_pages(name) {
        let value = json!(name);
        let field = Field::new(path, &value);
        errors.not_supported(&field, &["cpu", "hugepages-", "memory"]);
    }
}

/// Adds the errors in the quantity of a resource.
pub(super) fn resource_quantity(name: &str, field: &Field<'_>, errors: &mut Errors) {
    let amount = quantity(field);
    if amount < Quantity::default() {
        errors.invalid_value(&field.path, json!(amount.to_string()), NOT_NEGATIVE);
    }
    let is_counted = INTEGERS.contains(&name) || is_extended(name);
    let is_whole = amount.milli_value().is_none_or(|milli| milli % 1000 == 0);
    if is_counted && !is_whole {
        errors.invalid_value(&field.path, json!(amount.to_string()), "must be an integer");
    }
}

/// Adds an error if a quantity is negative.
pub(super) fn not_negative(field: &Field<'_>, errors: &mut Errors) {
    let amount = quantity(field);
    if amount < Quantity::default() {
        errors.invalid_value(&field.path, json!(amount.to_string()), NOT_NEGATIVE);
    }
}

/// Adds an error if a quantity is not positive. Reports whether it is positive.
pub(super) fn positive(field: &Field<'_>, errors: &mut Errors) -> bool {
    let amount = quantity(field);
    let is_positive = amount > Quantity::default();
    if !is_positive {
        let value = json!(amount.to_string());
        errors.invalid_value(&field.path, value, "must be greater than zero");
    }
    is_positive
}

/// Adds an error if a quantity of storage is negative.
pub(super) fn basic(field: &Field<'_>, errors: &mut Errors) {
    let amount = quantity(field).value().unwrap_or_default();
    if amount < 0 {
        let detail = "must be a valid resource quantity";
        errors.invalid_value(&field.path, json!(amount), detail);
    }
}

fn huge_page_error(name: &str, amount: Quantity) -> Option<String> {
    let size = Quantity::parse(name.strip_prefix(HUGE_PAGES)?).and_then(Quantity::value);
    let is_multiple = match (size, amount.value()) {
        (Some(size), Some(amount)) if size > 0 => amount % size == 0,
        _ => false,
    };
    (!is_multiple).then(|| format!("{amount} is not positive integer multiple of {name}"))
}

/// What has the resources: the names that are allowed differ.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    Container,
    Pod,
}

/// Adds the errors in the limits, requests and claims of a container or Pod. `claims` are the names
/// of the resource claims of the Pod.
pub(super) fn requirements(
    owner: Owner,
    resources: &Field<'_>,
    claims: &[&str],
    errors: &mut Errors,
) {
    let (limits, requests) = (resources.get("limits"), resources.get("requests"));
    amounts(owner, &limits, None, errors);
    amounts(owner, &requests, Some(&limits), errors);
    let mut names = limits.entries().chain(requests.entries());
    let has_compute = names.any(|(name, _)| matches!(name, "cpu" | "memory"));
    let mut names = limits.entries().chain(requests.entries());
    if !has_compute && names.any(|(name, _)| is_huge_pages(name)) {
        errors.forbidden(resources, "HugePages require cpu or memory");
    }
    claim_names(&resources.get("claims"), claims, errors);
}

/// Adds the errors in a map of resources. `limits` are the limits for requests.
pub(super) fn amounts(
    owner: Owner,
    map: &Field<'_>,
    limits: Option<&Field<'_>>,
    errors: &mut Errors,
) {
    for (name, field) in map.entries() {
        match owner {
            Owner::Container => container_resource_name(&field.path, name, errors),
            Owner::Pod => pod_resource_name(&field.path, name, errors),
        }
        resource_quantity(name, &field, errors);
        let amount = quantity(&field);
        if let Some(limits) = limits {
            let limit = Field::new(limits.key(name), crate::object::at(limits.value, &[name]));
            let is_allowed = is_overcommit_allowed(name);
            let most = quantity(&limit);
            let detail = match limit.is_set() {
                true if amount != most && !is_allowed => {
                    Some(format!("must be equal to {name} limit of {most}"))
                }
                true if amount > most => Some(format!(
                    "must be less than or equal to {name} limit of {most}"
                )),
                _ => None,
            };
            if let Some(detail) = detail {
                errors.invalid_value(&map.path, json!(amount.to_string()), &detail);
            }
            if !limit.is_set() && !is_allowed {
                let detail = "Limit must be set for non overcommitable resources";
                errors.required(limits, detail);
            }
        }
        if let Some(detail) = huge_page_error(name, amount) {
            errors.invalid_value(&field.path, json!(amount.to_string()), &detail);
        }
    }
}

/// Adds the errors in the resource claims of a container.
fn claim_names(list: &Field<'_>, claims: &[&str], errors: &mut Errors) {
    let mut seen: Vec<String> = Vec::new();
    for claim in list.items() {
        let (name, request) = (claim.get("name").text(), claim.get("request"));
        if name.is_empty() {
            errors.required(&claim, "");
            continue;
        }
        if seen.iter().any(|seen| seen == name) {
            errors.duplicate(&claim.path, name);
        } else {
            let mut key = name.to_owned();
            if !request.is_empty() {
                errors.rules(&request, format::dns_label(request.text()));
                key = format!("{name}/{}", request.text());
            }
            let prefix = format!("{name}/");
            if seen.contains(&key) {
                errors.duplicate(&claim.path, &key);
            } else if request.is_empty() {
                for _ in seen.iter().filter(|seen| seen.starts_with(&prefix)) {
                    errors.duplicate(&claim.path, name);
                }
            }
            seen.push(key);
        }
        if !claims.contains(&name) {
            errors.not_found(&claim.path, name);
            let mut known: Vec<&str> = claims.to_vec();
            known.sort_unstable();
            let list = match known.is_empty() {
                true => " which is empty".to_owned(),
                false => format!(": {}", known.join(", ")),
            };
            if let Some(error) = errors.0.last_mut() {
                let detail = ": must be one of the names in pod.spec.resourceClaims";
                error.detail.push_str(detail);
                error.detail.push_str(&list);
            }
        }
    }
}
