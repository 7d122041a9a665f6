//! Validation of LimitRanges and ResourceQuotas.

use opkit_apimachinery::quantity::Quantity;
use serde_json::json;

use super::field::{Errors, Field};
use super::{format, resources};

const QUOTA_RESOURCES: &[&str] = &[
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "persistentvolumeclaims",
    "configmaps",
    "services.nodeports",
    "services.loadbalancers",
];
/// Resources of Pods to which most scopes can be applied.
const POD_RESOURCES: &[&str] = &[
    "pods",
    "cpu",
    "memory",
    "limits.cpu",
    "limits.memory",
    "requests.cpu",
    "requests.memory",
];
const OPPOSITES: [[&str; 2]; 2] = [
    ["BestEffort", "NotBestEffort"],
    ["Terminating", "NotTerminating"],
];

/// Adds the errors in a LimitRange.
pub(super) fn limit_range(object: &Field<'_>, errors: &mut Errors) {
    let mut types: Vec<&str> = Vec::new();
    for limit in object.at(&["spec", "limits"]).items() {
        let type_ = limit.get("type");
        let rules = format::qualified_name(type_.text());
        let is_known = type_.is_one_of(&["Pod", "Container", "PersistentVolumeClaim"]);
        if rules.is_empty() && !type_.text().contains('/') && !is_known {
            let detail = "must be a standard limit type or fully qualified";
            errors.invalid_text(&type_, detail);
        }
        errors.rules(&type_, rules);
        if types.contains(&type_.text()) {
            errors.duplicate(&type_.path, type_.text());
        }
        types.push(type_.text());
        limit_names(&limit, type_.text(), errors);
        let mut names: Vec<&str> = Vec::new();
        for map in [
            "max",
            "min",
            "default",
            "defaultRequest",
            "maxLimitRequestRatio",
        ] {
            names.extend(limit.get(map).entries().map(|(name, _)| name));
        }
        names.sort_unstable();
        names.dedup();
        for name in names {
            limit_values(&limit, name, errors);
        }
    }
}

fn limit_names(limit: &Field<'_>, type_: &str, errors: &mut Errors) {
    let mut check = |map: &str| {
        for (name, field) in limit.get(map).entries() {
            match type_ {
                "Pod" | "Container" => {
                    resources::container_resource_name(&field.path, name, errors);
                }
                _ => {
                    resources::resource_name(&field.path, name, errors);
                }
            }
        }
    };
    check("max");
    check("min");
    if type_ != "Pod" {
        check("default");
        check("defaultRequest");
    }
    if type_ == "Pod" {
        for name in ["default", "defaultRequest"] {
            if !limit.get(name).is_empty() {
                let detail = "may not be specified when `type` is 'Pod'";
                errors.forbidden(&limit.get(name), detail);
            }
        }
    }
    let has_storage = |name: &str| limit.at(&[name, "storage"]).is_set();
    if type_ == "PersistentVolumeClaim" && !has_storage("min") && !has_storage("max") {
        let detail =
            "either minimum or maximum storage value is required, but neither was provided";
        errors.required(&limit.get("limits"), detail);
    }
    for (name, field) in limit.get("maxLimitRequestRatio").entries() {
        match type_ {
            "Pod" | "Container" => {
                resources::container_resource_name(&field.path, name, errors);
            }
            _ => {
                resources::resource_name(&field.path, name, errors);
            }
        }
    }
}

/// Adds an error for each pair of limits of a resource that contradict each other.
fn limit_values(limit: &Field<'_>, name: &str, errors: &mut Errors) {
    let value = |map: &str| {
        let field = Field::new("", crate::object::at(limit.value, &[map, name]));
        field.is_set().then(|| resources::quantity(&field))
    };
    let (min, max) = (value("min"), value("max"));
    let (default, request) = (value("default"), value("defaultRequest"));
    let mut invalid = |map: &str, value: Quantity, detail: String| {
        let path = limit.get(map).key(name);
        errors.invalid_value(path, json!(value.to_string()), &detail);
    };
    if let (Some(min), Some(max)) = (min, max)
        && min > max
    {
        let detail = format!("min value {min} is greater than max value {max}");
        invalid("min", min, detail);
    }
    if let (Some(request), Some(min)) = (request, min)
        && min > request
    {
        let detail = format!("min value {min} is greater than default request value {request}");
        invalid("defaultRequest", request, detail);
    }
    if let (Some(request), Some(max)) = (request, max)
        && request > max
    {
        let detail = format!("default request value {request} is greater than max value {max}");
        invalid("defaultRequest", request, detail);
    }
    if let (Some(request), Some(default)) = (request, default)
        && request > default
    {
        let detail = format!(
            "default request value {request} is greater than default limit value {default}"
        );
        invalid("defaultRequest", request, detail);
    }
    if let (Some(default), Some(min)) = (default, min)
        && min > default
    {
        let detail = format!("min value {min} is greater than default value {default}");
        invalid("default", min, detail);
    }
    if let (Some(default), Some(max)) = (default, max)
        && default > max
    {
        let detail = format!("default value {default} is greater than max value {max}");
        invalid("default", max, detail);
    }
    if let Some(ratio) = value("maxLimitRequestRatio") {
        if ratio < Quantity::from(1) {
            let detail = format!("ratio {ratio} is less than 1");
            invalid("maxLimitRequestRatio", ratio, detail);
        }
        if let (Some(min), Some(max)) = (min, max) {
            let milli = |amount: Quantity| amount.milli_value().unwrap_or(i64::MAX) as f64;
            let most = milli(max) / milli(min);
            if milli(ratio) / 1000.0 > most {
                let detail = format!("ratio {ratio} is greater than max/min = {most:.6}");
                invalid("maxLimitRequestRatio", ratio, detail);
            }
        }
    }
    if let (Some(default), Some(request)) = (default, request)
        && !resources::is_overcommit_allowed(name)
        && default != request
    {
        let detail = format!(
            "default value {default} must equal to defaultRequest value {request} in {name}"
        );
        invalid("defaultRequest", request, detail);
    }
}

/// Adds the errors in a ResourceQuota.
pub(super) fn resource_quota(object: &Field<'_>, errors: &mut Errors) {
    let spec = object.get("spec");
    for (parent, map) in [("spec", "hard"), ("status", "hard"), ("status", "used")] {
        for (name, field) in object.at(&[parent, map]).entries() {
            quota_name(&field.path, name, errors);
            resources::resource_quantity(name, &field, errors);
        }
        if parent == "spec" {
            scopes(&spec, errors);
            scope_selector(&spec, errors);
        }
    }
}

fn is_quota_resource(name: &str) -> bool {
    QUOTA_RESOURCES.contains(&name)
        || resources::is_huge_pages(name)
        || name.starts_with("requests.hugepages-")
}

fn quota_name(path: &str, name: &str, errors: &mut Errors) {
    resources::resource_name(path, name, errors);
    if !name.contains('/') && !is_quota_resource(name) {
        let detail = "must be a standard resource for quota";
        errors.invalid_value(path, json!(name), detail);
    }
}

fn is_scope(scope: &str) -> bool {
    matches!(
        scope,
        "Terminating"
            | "NotTerminating"
            | "BestEffort"
            | "NotBestEffort"
            | "PriorityClass"
            | "VolumeAttributesClass"
            | "CrossNamespacePodAffinity"
    )
}

/// Reports whether a scope can limit a resource.
fn is_limited(scope: &str, resource: &str) -> bool {
    match scope {
        "BestEffort" => resource == "pods",
        "VolumeAttributesClass" => {
            matches!(resource, "persistentvolumeclaims" | "requests.storage")
        }
        _ if is_scope(scope) => POD_RESOURCES.contains(&resource),
        _ => true,
    }
}

fn scopes(spec: &Field<'_>, errors: &mut Errors) {
    let scopes = spec.get("scopes");
    for scope in scopes.items() {
        if !is_scope(scope.text()) {
            errors.invalid(&scopes, "unsupported scope");
        }
        for (name, _) in spec.get("hard").entries() {
            if is_quota_resource(name) && !is_limited(scope.text(), name) {
                errors.invalid(&scopes, "unsupported scope applied to resource");
            }
        }
    }
    for pair in OPPOSITES {
        if pair
            .iter()
            .all(|name| scopes.items().any(|scope| scope.text() == *name))
        {
            errors.invalid(&scopes, "conflicting scopes");
        }
    }
}

fn scope_selector(spec: &Field<'_>, errors: &mut Errors) {
    let selector = spec.get("scopeSelector");
    let list = selector.get("matchExpressions");
    for requirement in list.items() {
        // The paths of fields in messages do not have the index of the requirement.
        let requirement = requirement.renamed(list.path.clone());
        let (scope, operator) = (requirement.get("scopeName"), requirement.get("operator"));
        if !is_scope(scope.text()) {
            errors.invalid_text(&scope, "unsupported scope");
        }
        for (name, _) in spec.get("hard").entries() {
            if is_quota_resource(name) && !is_limited(scope.text(), name) {
                let printed = printed_selector(&list);
                let detail = "unsupported scope applied to resource";
                errors.invalid_printed(&list.path, &printed, detail);
            }
        }
        let is_exists_only =
            is_scope(scope.text()) && !scope.is_one_of(&["PriorityClass", "VolumeAttributesClass"]);
        if is_exists_only && operator.text() != "Exists" {
            let detail = "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                          ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                          ResourceQuotaScopeNotBestEffort or \
                          ResourceQuotaScopeCrossNamespacePodAffinity";
            errors.invalid_text(&operator, detail);
        }
        let values = requirement.get("values");
        match operator.text() {
            "In" | "NotIn" if values.is_empty() => {
                let detail = "must be at least one value when `operator` is 'In' or 'NotIn' for \
                              scope selector";
                errors.required(&values, detail);
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for \
                              scope selector";
                errors.invalid(&values, detail);
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => errors.invalid_text(&operator, "not a valid selector operator"),
        }
    }
}

/// Prints a scope selector as Kubernetes prints its internal type.
fn printed_selector(list: &Field<'_>) -> String {
    let requirements = list.items().map(|requirement| {
        let text = |name: &str| json!(requirement.get(name).text());
        format!(
            "{{\"ScopeName\":{},\"Operator\":{},\"Values\":{}}}",
            text("scopeName"),
            text("operator"),
            requirement.get("values").value
        )
    });
    let requirements: Vec<String> = requirements.collect();
    format!("{{\"MatchExpressions\":[{}]}}", requirements.join(","))
}

/// Adds the errors in the change of a ResourceQuota.
pub(super) fn resource_quota_update(live: &Field<'_>, new: &Field<'_>, errors: &mut Errors) {
    let scopes = |quota: &Field<'_>| {
        let scopes = quota.at(&["spec", "scopes"]);
        let mut scopes: Vec<String> = scopes.items().map(|s| s.text().to_owned()).collect();
        scopes.sort_unstable();
        scopes
    };
    if scopes(live) != scopes(new) {
        errors.invalid(&new.at(&["spec", "scopes"]), "field is immutable");
    }
}
