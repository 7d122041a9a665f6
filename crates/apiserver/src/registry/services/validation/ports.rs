//! Validation of the ports of a Service.

use opkit_apimachinery::names::check_dns_label;
use opkit_apimachinery::selector::label_key_errors;
use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use super::super::spec::{self, CLUSTER_IP};
use super::PORT_NUMBER;
use crate::object;

pub(super) fn port_errors(service: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let ports = spec::ports(service);
    let mut names: Vec<&str> = Vec::new();
    for (index, port) in ports.iter().enumerate() {
        let at = |field: &str| format!("spec.ports[{index}].{field}");
        let name = object::text(port, &["name"]);
        if name.is_empty() {
            if ports.len() > 1 {
                errors.push(FieldError::required(at("name"), ""));
            }
        } else {
            let value = json!(name);
            if let Err(rule) = check_dns_label(name) {
                errors.push(FieldError::invalid(at("name"), &value, rule));
            }
            match names.contains(&name) {
                true => errors.push(FieldError::duplicate(at("name"), &value)),
                false => names.push(name),
            }
        }
        let number = object::int(port, &["port"]);
        if !(1..=65_535).contains(&number) {
            errors.push(FieldError::invalid(at("port"), &json!(number), PORT_NUMBER));
        }
        let protocol = object::at(port, &["protocol"]);
        if !matches!(protocol.as_str(), Some("TCP" | "UDP" | "SCTP")) {
            let supported = ["SCTP", "TCP", "UDP"];
            errors.push(FieldError::not_supported(
                at("protocol"),
                protocol,
                &supported,
            ));
        }
        let target = object::at(port, &["targetPort"]);
        let wrong = match target {
            Value::String(name) => port_name_errors(name),
            _ if (1..=65_535).contains(&target.as_i64().unwrap_or_default()) => Vec::new(),
            _ => vec![PORT_NUMBER],
        };
        let value = if target.is_null() { &json!(0) } else { target };
        let wrong = wrong.into_iter();
        errors.extend(wrong.map(|detail| FieldError::invalid(at("targetPort"), value, detail)));
        let app = object::at(port, &["appProtocol"]);
        if let Some(name) = app.as_str() {
            let wrong = label_key_errors(name).into_iter();
            errors.extend(wrong.map(|detail| FieldError::invalid(at("appProtocol"), app, detail)));
        }
    }
    errors
}

/// Returns the rules that the name of a container's port violates.
fn port_name_errors(name: &str) -> Vec<&'static str> {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let rules = [
        (name.len() <= 15, "must be no more than 15 characters"),
        (
            !name.is_empty() && name.chars().all(is_part),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (
            name.chars().any(|c| c.is_ascii_lowercase()),
            "must contain at least one letter (a-z)",
        ),
        (!name.contains("--"), "must not contain consecutive hyphens"),
        (
            !name.starts_with('-') && !name.ends_with('-'),
            "must not begin or end with a hyphen",
        ),
    ];
    let violated = rules.into_iter().filter(|(holds, _)| !holds);
    violated.map(|(_, rule)| rule).collect()
}

pub(super) fn node_port_errors(service: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let field = |index: usize| format!("spec.ports[{index}].nodePort");
    let ports = spec::ports(service);
    if spec::text(service, "type") == CLUSTER_IP {
        let used = ports.iter().enumerate();
        let used = used.filter(|(_, port)| spec::node_port(port) != 0);
        let detail = "may not be used when `type` is 'ClusterIP'";
        errors.extend(used.map(|(index, _)| FieldError::forbidden(field(index), detail)));
    }
    let mut seen: Vec<(&str, i64)> = Vec::new();
    for (index, port) in ports.iter().enumerate() {
        let place = (object::text(port, &["protocol"]), spec::node_port(port));
        if place.1 == 0 {
            continue;
        }
        if seen.contains(&place) {
            errors.push(FieldError::duplicate(field(index), &json!(place.1)));
        }
        seen.push(place);
    }
    errors
}

/// Returns an error for each port whose number and protocol another port has.
pub(super) fn duplicate_ports(service: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen: Vec<(&str, i64)> = Vec::new();
    for (index, port) in spec::ports(service).iter().enumerate() {
        let place = (
            object::text(port, &["protocol"]),
            object::int(port, &["port"]),
        );
        if seen.contains(&place) {
            let (protocol, number) = place;
            let mut error = FieldError::duplicate(format!("spec.ports[{index}]"), &json!(0));
            // Kubernetes prints its internal type, with the fields in the order of the Go struct.
            error.detail = format!(
                "Duplicate value: {{\"Name\":\"\",\"Protocol\":\"{protocol}\",\"AppProtocol\":null,\
                 \"Port\":{number},\"TargetPort\":0,\"NodePort\":0}}"
            );
            errors.push(error);
        }
        seen.push(place);
    }
    errors
}
