//! Validation of HorizontalPodAutoscalers.

use serde_json::json;

use super::field::{Errors, Field};
use super::{format, resources};

const METRICS: &[&str] = &[
    "ContainerResource",
    "External",
    "Object",
    "Pods",
    "Resource",
];
const NOT_POPULATED: &str = "must populate information for the given metric source";
/// The sources of a metric in the order in which Kubernetes validates them.
const SOURCES: &[(&str, &str)] = &[
    ("object", "Object"),
    ("external", "External"),
    ("pods", "Pods"),
    ("resource", "Resource"),
    ("containerResource", "ContainerResource"),
];

/// Adds the errors in an autoscaler. `live` is the stored autoscaler, if there is one.
pub(super) fn autoscaler(object: &Field<'_>, live: Option<&Field<'_>>, errors: &mut Errors) {
    let spec = object.get("spec");
    let (min, max) = (spec.get("minReplicas"), spec.get("maxReplicas"));
    if min.is_set() && min.int() < 1 {
        errors.invalid(&min, "must be greater than or equal to 1");
    }
    if max.int() == 0 {
        errors.required(&max, "must be set and greater than 0");
    } else if max.int() < 0 {
        errors.invalid(&max, "must be greater than or equal to 1");
    }
    if min.is_set() && max.int() < min.int() {
        let detail = "must be greater than or equal to `minReplicas`";
        errors.invalid_int(&max, detail);
    }
    let target = spec.get("scaleTargetRef");
    reference(&target, errors);
    let version = target.get("apiVersion");
    let is_core =
        !version.text().contains('/') && target.get("kind").text() != "ReplicationController";
    if is_core && live.is_none_or(|live| !has_same_target(live, object)) {
        errors.invalid_text(&version, "apiVersion must specify API group");
    }
    for metric in spec.get("metrics").items() {
        self::metric(&metric, errors);
    }
    if min.is_set() && min.int() == 0 {
        let mut metrics = spec.get("metrics").items();
        if !metrics.any(|m| m.get("type").is_one_of(&["Object", "External"])) {
            let detail = "must specify at least one Object or External metric to support scaling \
                          to zero replicas";
            errors.forbidden(&spec.get("metrics"), detail);
        }
    }
    for name in ["scaleUp", "scaleDown"] {
        scaling_rules(&spec.at(&["behavior", name]), errors);
    }
}

fn has_same_target(live: &Field<'_>, new: &Field<'_>) -> bool {
    ["apiVersion", "kind"].iter().all(|name| {
        let path = ["spec", "scaleTargetRef", name];
        live.at(&path).text() == new.at(&path).text()
    })
}

fn reference(reference: &Field<'_>, errors: &mut Errors) {
    for name in ["kind", "name"] {
        let field = reference.get(name);
        match field.text() {
            "" => errors.required(&field, ""),
            text => errors.rules(&field, format::path_segment(text)),
        }
    }
    let version = reference.get("apiVersion");
    if version.text().matches('/').count() > 1 {
        let detail = format!("unexpected GroupVersion string: {}", version.text());
        errors.invalid_text(&version, &detail);
    }
}

fn scaling_rules(rules: &Field<'_>, errors: &mut Errors) {
    if !rules.is_set() {
        return;
    }
    let window = rules.get("stabilizationWindowSeconds");
    if window.int() < 0 {
        errors.invalid(&window, "must be greater than or equal to zero");
    }
    if window.int() > 3600 {
        errors.invalid(&window, "must be less than or equal to 3600");
    }
    let policies = ["Disabled", "Max", "Min"];
    errors.supported_if_set(&rules.get("selectPolicy"), &policies);
    let list = rules.get("policies");
    if list.is_empty() {
        errors.required(&list, "must specify at least one Policy");
    }
    for policy in list.items() {
        errors.supported(&policy.get("type"), &["Percent", "Pods"]);
        let (value, period) = (policy.get("value"), policy.get("periodSeconds"));
        for field in [&value, &period] {
            if field.int() <= 0 {
                errors.invalid_int(field, "must be greater than zero");
            }
        }
        if period.int() > 1800 {
            errors.invalid(&period, "must be less than or equal to 1800");
        }
    }
    resources::not_negative(&rules.get("tolerance"), errors);
}

fn metric(metric: &Field<'_>, errors: &mut Errors) {
    let type_ = metric.get("type");
    if type_.is_empty() {
        errors.required(&type_, "must specify a metric source type");
    }
    errors.supported(&type_, METRICS);
    let present = SOURCES.iter().map(|(name, _)| (*name, metric.get(name)));
    let present: Vec<(&str, Field<'_>)> = present.filter(|(_, f)| f.is_set()).collect();
    if let Some((name, source)) = present.first() {
        metric_source(name, source, errors);
    }
    let mut known = SOURCES.iter();
    match known.find(|(_, known)| *known == type_.text()) {
        Some((name, _)) if !metric.get(name).is_set() => {
            errors.required(&metric.get(name), NOT_POPULATED);
        }
        Some(_) => {}
        None => errors.not_supported(&type_, METRICS),
    }
    if present.len() != 1 {
        let expected = SOURCES.iter().find(|(_, known)| *known == type_.text());
        for (name, source) in present {
            if expected.is_none_or(|(expected, _)| *expected != name) {
                let detail = "must populate the given metric source only";
                errors.forbidden(&source, detail);
            }
        }
    }
}

fn metric_source(name: &str, source: &Field<'_>, errors: &mut Errors) {
    let target = source.get("target");
    let has = |field: &str| target.get(field).is_set();
    if name == "object" {
        reference(&source.get("describedObject"), errors);
    }
    if matches!(name, "object" | "external" | "pods") {
        let id = source.at(&["metric", "name"]);
        match id.text() {
            "" => errors.required(&id, "must specify a metric name"),
            text => errors.rules(&id, format::path_segment(text)),
        }
    }
    if matches!(name, "resource" | "containerResource") {
        let resource = source.get("name");
        match resource.text() {
            "" => errors.required(&resource, "must specify a resource name"),
            text if name == "containerResource" => {
                resources::container_resource_name(&resource.path, text, errors);
            }
            _ => {}
        }
    }
    if name == "containerResource" {
        let container = source.get("container");
        match container.text() {
            "" => errors.required(&container, "must specify a container"),
            text => errors.rules(&container, format::dns_label(text)),
        }
    }
    metric_target(&target, errors);
    let (value, average) = (target.get("value"), target.get("averageValue"));
    match name {
        "object" if !has("value") && !has("averageValue") => {
            errors.required(&average, "must set either a target value or averageValue");
        }
        "external" if !has("value") && !has("averageValue") => {
            let detail = "must set either a target value for metric or a per-pod target";
            errors.required(&average, detail);
        }
        "external" if has("value") && has("averageValue") => {
            let detail = "may not set both a target value for metric and a per-pod target";
            errors.forbidden(&value, detail);
        }
        "pods" if !has("averageValue") => {
            errors.required(&average, "must specify a positive target averageValue");
        }
        "resource" | "containerResource" => {
            let utilization = target.get("averageUtilization");
            if !has("averageUtilization") && !has("averageValue") {
                let detail = "must set either a target raw value or a target utilization";
                errors.required(&utilization, detail);
            }
            if has("averageUtilization") && has("averageValue") {
                let detail = "may not set both a target raw value and a target utilization";
                errors.forbidden(&average, detail);
            }
        }
        _ => {}
    }
}

fn metric_target(target: &Field<'_>, errors: &mut Errors) {
    let type_ = target.get("type");
    if type_.is_empty() {
        errors.required(&type_, "must specify a metric target type");
    }
    if !type_.is_one_of(&["Utilization", "Value", "AverageValue"]) {
        let detail = "must be either Utilization, Value, or AverageValue";
        errors.invalid_text(&type_, detail);
    }
    for name in ["value", "averageValue"] {
        let field = target.get(name);
        let amount = resources::quantity(&field);
        if field.is_set() && amount <= opkit_apimachinery::quantity::Quantity::default() {
            let value = json!(amount.to_string());
            errors.invalid_value(&field.path, value, "must be positive");
        }
    }
    let utilization = target.get("averageUtilization");
    if utilization.is_set() && utilization.int() < 1 {
        errors.invalid(&utilization, "must be greater than 0");
    }
}

/// Adds the errors in an autoscaler of `autoscaling/v1`, which has one metric at most.
pub(super) fn old_autoscaler(object: &Field<'_>, live: Option<&Field<'_>>, errors: &mut Errors) {
    autoscaler(object, live, errors);
    let target = object.at(&["spec", "targetCPUUtilizationPercentage"]);
    if target.is_set() && target.int() < 1 {
        let path = "spec.metrics[0].resource.target.averageUtilization";
        errors.invalid(&target.renamed(path), "must be greater than 0");
    }
}
