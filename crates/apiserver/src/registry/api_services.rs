//! APIServices: validation, and the condition of those that this server serves itself.

use opkit_apimachinery::identity::segment_flaw;
use opkit_apimachinery::names;
use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use crate::aggregator::API_SERVICES;
use crate::kinds::Kind;
use crate::object;

pub(super) fn is_api_service(kind: &Kind) -> bool {
    kind.group_resource() == API_SERVICES
}

/// Sets the status of a new APIService: one without a Service is available at once.
pub(super) fn set_initial_status(api_service: &mut Value, now: &str) {
    let status = match object::at(api_service, &["spec", "service"]).is_null() {
        false => json!({}),
        true => json!({"conditions": [{
            "type": "Available", "status": "True", "lastTransitionTime": now,
            "reason": "Local", "message": "Local APIServices are always available",
        }]}),
    };
    object::set_field(api_service, "status", status);
}

/// Returns the reason why the name of an APIService is not valid.
pub(super) fn name_flaw(api_service: &Value) -> Option<String> {
    let name = object::name(api_service);
    if let Some(flaw) = segment_flaw(name) {
        return Some(flaw.to_owned());
    }
    let text = |field: &str| object::text(api_service, &["spec", field]);
    let required = format!("{}.{}", text("version"), text("group"));
    (name != required).then(|| format!("must be `spec.version+\".\"+spec.group`: {required:?}"))
}

/// Returns the errors in the `spec` of an APIService.
pub(super) fn errors(kind: &Kind, api_service: &Value) -> Vec<FieldError> {
    if !is_api_service(kind) {
        return Vec::new();
    }
    let spec = object::at(api_service, &["spec"]);
    let text = |field: &str| object::text(spec, &[field]);
    let invalid = |field: &str, value: &Value, detail: &str| {
        FieldError::invalid(format!("spec.{field}"), value, detail)
    };
    let mut errors = Vec::new();
    let (group, version) = (text("group"), text("version"));
    if group.is_empty() && version != "v1" {
        let detail = "only v1 may have an empty group and it better be legacy kube";
        errors.push(FieldError::required("spec.group", detail));
    }
    if !group.is_empty()
        && let Err(flaw) = names::check_dns_subdomain(group)
    {
        errors.push(invalid("group", &json!(group), &flaw));
    }
    if let Err(flaw) = names::check_rfc_1035_label(version) {
        errors.push(invalid("version", &json!(version), &flaw));
    }
    for (field, max) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1000)] {
        let priority = object::int(spec, &[field]);
        if !(1..=max).contains(&priority) {
            let detail = format!("must be positive and less than {max}");
            errors.push(invalid(field, &json!(priority), &detail));
        }
    }
    let bundle = text("caBundle");
    let is_insecure = object::at(spec, &["insecureSkipTLSVerify"]) == &json!(true);
    let service = object::at(spec, &["service"]);
    if service.is_null() {
        if !bundle.is_empty() {
            let bytes = bundle.trim_end_matches('=').len() * 3 / 4;
            let detail = "local APIServices may not have a caBundle";
            errors.push(invalid(
                "caBundle",
                &json!(format!("{bytes} bytes")),
                detail,
            ));
        }
        if is_insecure {
            let detail = "local APIServices may not have insecureSkipTLSVerify";
            errors.push(invalid("insecureSkipTLSVerify", &json!(true), detail));
        }
        return errors;
    }
    for field in ["namespace", "name"] {
        if object::text(service, &[field]).is_empty() {
            errors.push(FieldError::required(format!("spec.service.{field}"), ""));
        }
    }
    let port = object::int(service, &["port"]);
    if !(1..=65_535).contains(&port) {
        let detail = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(invalid("service.port", &json!(port), detail));
    }
    if is_insecure && !bundle.is_empty() {
        let detail = "may not be true if caBundle is present";
        errors.push(invalid("insecureSkipTLSVerify", &json!(true), detail));
    }
    errors
}

/// Returns the errors in the status of an APIService.
pub(super) fn status_errors(kind: &Kind, api_service: &Value) -> Vec<FieldError> {
    if !is_api_service(kind) {
        return Vec::new();
    }
    let conditions = object::items(api_service, &["status", "conditions"]).iter();
    let statuses = conditions.map(|condition| object::at(condition, &["status"]));
    let wrong = statuses
        .enumerate()
        .filter(|(_, status)| !matches!(status.as_str(), Some("True" | "False" | "Unknown")));
    wrong
        .map(|(index, status)| {
            let field = format!("status.conditions[{index}].status");
            FieldError::not_supported(field, status, &["True", "False", "Unknown"])
        })
        .collect()
}
