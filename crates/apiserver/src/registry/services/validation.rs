//! Validation of Services, with the messages of Kubernetes.

mod addresses;
mod ports;

use std::net::IpAddr;

use opkit_apimachinery::names::check_dns_subdomain;
use opkit_apimachinery::selector::{label_key_errors, label_value_errors};
use opkit_apimachinery::structural::FieldError;
use serde_json::{Value, json};

use super::spec::{self, CLUSTER_IP, EXTERNAL_NAME, LOAD_BALANCER, NODE_PORT};
use crate::object;
use addresses::{
    cluster_ip_changes, external_ip_errors, family_changes, ip_error, source_range_errors,
};
use ports::{duplicate_ports, node_port_errors, port_errors};

pub(super) use addresses::cluster_ips;

const PORT_NUMBER: &str = "must be between 1 and 65535, inclusive";
const ONLY_LOAD_BALANCER: &str = "may only be used when `type` is 'LoadBalancer'";
/// Maximum session affinity timeout in seconds: one day.
const AFFINITY_TIMEOUT_MAX: i64 = 86_400;

/// Returns the errors in a Service that is to be stored. `live` is the stored Service, if there is
/// one.
pub(in crate::registry) fn validate(service: &Value, live: Option<&Value>) -> Vec<FieldError> {
    let type_ = spec::text(service, "type");
    let mut errors = type_errors(service);
    errors.extend(port_errors(service));
    let selector = object::at(service, &["spec", "selector"]).as_object();
    for (key, value) in selector.into_iter().flatten() {
        let invalid = |value: &str, detail: String| {
            FieldError::invalid("spec.selector", &json!(value), detail)
        };
        let keys = label_key_errors(key).into_iter();
        errors.extend(keys.map(|detail| invalid(key, detail)));
        let value = value.as_str().unwrap_or_default();
        let values = label_value_errors(value).into_iter();
        errors.extend(values.map(|detail| invalid(value, detail)));
    }
    errors.extend(affinity_errors(service));
    errors.extend(cluster_ips(service, live));
    errors.extend(external_ip_errors(service, live));
    let types = [CLUSTER_IP, EXTERNAL_NAME, LOAD_BALANCER, NODE_PORT];
    errors.extend(unsupported(service, "type", &types));
    errors.extend(node_port_errors(service));
    errors.extend(duplicate_ports(service));
    errors.extend(source_range_errors(service, live));
    let is_balanced = type_ == LOAD_BALANCER;
    let has = |field: &str| !object::at(service, &["spec", field]).is_null();
    if has("allocateLoadBalancerNodePorts") && !is_balanced {
        let field = "spec.allocateLoadBalancerNodePorts";
        errors.push(FieldError::forbidden(field, ONLY_LOAD_BALANCER));
    }
    let class = object::at(service, &["spec", "loadBalancerClass"]);
    if let Some(name) = class.as_str() {
        let field = "spec.loadBalancerClass";
        if is_balanced {
            let wrong = label_key_errors(name).into_iter();
            errors.extend(wrong.map(|detail| FieldError::invalid(field, class, detail)));
        } else {
            errors.push(FieldError::forbidden(field, ONLY_LOAD_BALANCER));
        }
    }
    errors.extend(external_traffic_errors(service));
    if has("internalTrafficPolicy") {
        let policies = ["Cluster", "Local"];
        errors.extend(unsupported(service, "internalTrafficPolicy", &policies));
    }
    if has("trafficDistribution") {
        let known = ["PreferClose", "PreferSameZone", "PreferSameNode"];
        errors.extend(unsupported(service, "trafficDistribution", &known));
    }
    errors
}

/// Returns the errors in a Service that is to be stored in place of `live`.
pub(in crate::registry) fn validate_update(live: &Value, new: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if !spec::is_external_name(live) && !spec::is_external_name(new) {
        errors.extend(cluster_ip_changes(live, new));
        errors.extend(family_changes(live, new));
    }
    let class = |service: &Value| object::at(service, &["spec", "loadBalancerClass"]).clone();
    if spec::is_load_balancer(live) && spec::is_load_balancer(new) && class(live) != class(new) {
        let detail = "may not change once set";
        let error = FieldError::invalid("spec.loadBalancerClass", &class(new), detail);
        errors.push(error);
    }
    if spec::needs_health_check(live)
        && spec::needs_health_check(new)
        && spec::health_check_node_port(live) != spec::health_check_node_port(new)
    {
        let field = "spec.healthCheckNodePort";
        errors.push(FieldError::forbidden(field, "field is immutable"));
    }
    errors.extend(validate(new, Some(live)));
    errors
}

/// Returns the errors in the status of a Service.
pub(in crate::registry) fn validate_status(service: &Value) -> Vec<FieldError> {
    let ingress = object::items(service, &["status", "loadBalancer", "ingress"]);
    let list = "status.loadBalancer.ingress";
    if !spec::is_load_balancer(service) && !ingress.is_empty() {
        let detail = "may only be used when `spec.type` is 'LoadBalancer'";
        return vec![FieldError::forbidden(list, detail)];
    }
    let mut errors = Vec::new();
    for (index, item) in ingress.iter().enumerate() {
        let at = |field: &str| format!("{list}[{index}].{field}");
        let ip = object::text(item, &["ip"]);
        if !ip.is_empty() {
            errors.extend(ip_error(&at("ip"), ip));
        }
        let mode = object::at(item, &["ipMode"]);
        if !mode.is_null() && ip.is_empty() {
            let detail = "may not be specified when `ip` is not set";
            errors.push(FieldError::forbidden(at("ipMode"), detail));
        } else if mode
            .as_str()
            .is_some_and(|mode| !matches!(mode, "Proxy" | "VIP"))
        {
            let supported = ["Proxy", "VIP"];
            errors.push(FieldError::not_supported(at("ipMode"), mode, &supported));
        }
        let host = object::text(item, &["hostname"]);
        if !host.is_empty() {
            let value = json!(host);
            if let Err(rule) = check_dns_subdomain(host) {
                errors.push(FieldError::invalid(at("hostname"), &value, rule));
            }
            if host.parse::<IpAddr>().is_ok() {
                let detail = "must be a DNS name, not an IP address";
                errors.push(FieldError::invalid(at("hostname"), &value, detail));
            }
        }
    }
    errors
}

/// Returns an error if the text in a field of the spec is not one of the `supported` values.
fn unsupported(service: &Value, field: &str, supported: &[&str]) -> Option<FieldError> {
    let value = object::at(service, &["spec", field]);
    let is_known = supported.contains(&value.as_str().unwrap_or_default());
    (!is_known).then(|| FieldError::not_supported(format!("spec.{field}"), value, supported))
}

/// Returns the errors in fields that depend on the type of the Service.
fn type_errors(service: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let (type_, is_headless) = (spec::text(service, "type"), super::is_headless(service));
    if spec::ports(service).is_empty() && !is_headless && type_ != EXTERNAL_NAME {
        errors.push(FieldError::required("spec.ports", ""));
    }
    if is_headless && matches!(type_, LOAD_BALANCER | NODE_PORT) {
        let detail = format!("may not be set to 'None' for {type_} services");
        errors.push(FieldError::invalid(
            "spec.clusterIPs[0]",
            &json!(spec::NONE),
            detail,
        ));
    }
    if type_ == EXTERNAL_NAME {
        let detail = "may not be set for ExternalName services";
        for field in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
            let value = object::at(service, &["spec", field]);
            let is_empty = value.as_array().is_some_and(Vec::is_empty);
            if !value.is_null() && !is_empty {
                errors.push(FieldError::forbidden(format!("spec.{field}"), detail));
            }
        }
        let name = spec::text(service, "externalName");
        let name = name.strip_suffix('.').unwrap_or(name);
        if name.is_empty() {
            errors.push(FieldError::required("spec.externalName", ""));
        } else if let Err(rule) = check_dns_subdomain(name) {
            errors.push(FieldError::invalid("spec.externalName", &json!(name), rule));
        }
    }
    errors
}

fn affinity_errors(service: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    errors.extend(unsupported(
        service,
        "sessionAffinity",
        &["ClientIP", "None"],
    ));
    if spec::text(service, "sessionAffinity") == "ClientIP" {
        let path = [
            "spec",
            "sessionAffinityConfig",
            "clientIP",
            "timeoutSeconds",
        ];
        let timeout = object::at(service, &path);
        let seconds = timeout.as_i64().unwrap_or_default();
        if !(1..=AFFINITY_TIMEOUT_MAX).contains(&seconds) {
            let detail = format!("must be greater than 0 and less than {AFFINITY_TIMEOUT_MAX}");
            errors.push(FieldError::invalid(path.join("."), timeout, detail));
        }
    }
    errors
}

fn external_traffic_errors(service: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let field = "spec.externalTrafficPolicy";
    let policy = object::at(service, &["spec", "externalTrafficPolicy"]);
    if !spec::is_externally_accessible(service) {
        if !spec::text(service, "externalTrafficPolicy").is_empty() {
            let detail = "may only be set for externally-accessible services";
            errors.push(FieldError::invalid(field, policy, detail));
        }
    } else {
        let policies = ["Cluster", "Local"];
        errors.extend(unsupported(service, "externalTrafficPolicy", &policies));
    }
    let field = "spec.healthCheckNodePort";
    let port = spec::health_check_node_port(service);
    if !spec::needs_health_check(service) && port != 0 {
        let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is \
                      'Local'";
        errors.push(FieldError::invalid(field, &json!(port), detail));
    } else if spec::needs_health_check(service) && !(1..=65_535).contains(&port) {
        errors.push(FieldError::invalid(field, &json!(port), PORT_NUMBER));
    }
    errors
}
