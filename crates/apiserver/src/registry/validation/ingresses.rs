//! Validation of Ingresses and IngressClasses.

use serde_json::json;

use super::addresses::parse_ip;
use super::field::{Errors, Field};
use super::format;

/// Parts that a path cannot have, and ends that it cannot have.
const FORBIDDEN_PARTS: &[&str] = &["//", "/./", "/../", "%2f", "%2F"];
const FORBIDDEN_ENDS: &[&str] = &["/..", "/."];
const ABSOLUTE: &str = "must be an absolute path";
const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
/// Maximum length of the name of a controller in bytes.
const CONTROLLER_MAX: usize = 250;

/// Adds the errors in an Ingress.
pub(super) fn ingress(object: &Field<'_>, is_update: bool, errors: &mut Errors) {
    let spec = object.get("spec");
    let (rules, default) = (spec.get("rules"), spec.get("defaultBackend"));
    if rules.is_empty() && !default.is_set() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        errors.invalid_value(&spec.path, rules.value.clone(), detail);
    }
    if default.is_set() {
        backend(&default, errors);
    }
    for rule in rules.items() {
        host(&rule.get("host"), errors);
        let paths = rule.at(&["http", "paths"]);
        if rule.get("http").is_set() && paths.is_empty() {
            errors.required(&paths, "");
        }
        for path in paths.items() {
            http_path(&path, errors);
        }
    }
    for tls in spec.get("tls").items() {
        for host in tls.get("hosts").items() {
            errors.rules(&host, host_rules(host.text()));
        }
        let secret = tls.get("secretName");
        if !secret.is_empty() {
            errors.rules(&secret, format::dns_subdomain(secret.text()));
        }
    }
    let class = spec.get("ingressClassName");
    if class.is_set() {
        errors.rules(&class, format::dns_subdomain(class.text()));
    }
    let annotations = object.at(&["metadata", "annotations"]);
    let annotation = annotations.get(CLASS_ANNOTATION);
    let differs = annotation.is_set() && class.is_set() && annotation.text() != class.text();
    if differs && !is_update {
        let path = format!("annotations.{CLASS_ANNOTATION}");
        let detail = "must match `ingressClassName` when both are specified";
        errors.invalid_value(path, json!(annotation.text()), detail);
    }
}

fn host_rules(host: &str) -> Vec<String> {
    match host.contains('*') {
        true => format::wildcard_subdomain(host),
        false => format::dns_subdomain(host),
    }
}

fn host(host: &Field<'_>, errors: &mut Errors) {
    if host.is_empty() {
        return;
    }
    if parse_ip(host.text()).is_some() {
        errors.invalid(host, "must be a DNS name, not an IP address");
    }
    errors.rules(host, host_rules(host.text()));
}

fn http_path(path: &Field<'_>, errors: &mut Errors) {
    let (type_, text) = (path.get("pathType"), path.get("path"));
    if !type_.is_set() {
        return errors.required(&type_, "pathType must be specified");
    }
    match type_.text() {
        "Exact" | "Prefix" => {
            if !text.text().starts_with('/') {
                errors.invalid_text(&text, ABSOLUTE);
            }
            for part in FORBIDDEN_PARTS {
                if text.text().contains(part) {
                    errors.invalid(&text, &format!("must not contain '{part}'"));
                }
            }
            for end in FORBIDDEN_ENDS {
                if text.text().ends_with(end) {
                    errors.invalid(&text, &format!("cannot end with '{end}'"));
                }
            }
        }
        "ImplementationSpecific" => {
            if !text.is_empty() && !text.text().starts_with('/') {
                errors.invalid(&text, ABSOLUTE);
            }
        }
        _ => {
            let types = ["Exact", "ImplementationSpecific", "Prefix"];
            errors.not_supported(&type_, &types);
        }
    }
    backend(&path.get("backend"), errors);
}

fn backend(backend: &Field<'_>, errors: &mut Errors) {
    let (resource, service) = (backend.get("resource"), backend.get("service"));
    let mut invalid = |detail: &str| errors.invalid_value(&backend.path, json!(""), detail);
    match (resource.is_set(), service.is_set()) {
        (true, true) => invalid("cannot set both resource and service backends"),
        (false, false) => invalid("resource or service backend is required"),
        (true, false) => object_reference(&resource, errors),
        (false, true) => {
            let name = service.get("name");
            match name.text() {
                "" => errors.required(&name, ""),
                text => errors.rules(&name, format::dns_label(text)),
            }
            let port = service.get("port");
            let (name, number) = (port.get("name"), port.get("number"));
            match (!name.is_empty(), number.int() != 0) {
                (true, true) => {
                    let detail = "cannot set both port name & port number";
                    errors.invalid_value(&backend.path, json!(""), detail);
                }
                (true, false) => errors.rules(&name, format::port_name(name.text())),
                (false, true) => {
                    format::range(&number, format::port_number(number.int()), errors);
                }
                (false, false) => errors.required(backend, "port name or number is required"),
            }
        }
    }
}

/// Adds the errors in a reference to an object by group, kind and name.
fn object_reference(reference: &Field<'_>, errors: &mut Errors) {
    let group = reference.get("apiGroup");
    if group.is_set() {
        errors.rules(&group, format::dns_subdomain(group.text()));
    }
    for name in ["kind", "name"] {
        let field = reference.get(name);
        match field.text() {
            "" => errors.required(&field, ""),
            text => errors.rules(&field, format::path_segment(text)),
        }
    }
}

/// Adds the errors in an IngressClass.
pub(super) fn ingress_class(object: &Field<'_>, errors: &mut Errors) {
    let spec = object.get("spec");
    let controller = spec.get("controller");
    errors.not_longer(&controller, CONTROLLER_MAX);
    format::domain_prefixed_path(&controller, errors);
    let parameters = spec.get("parameters");
    if !parameters.is_set() {
        return;
    }
    object_reference(&parameters, errors);
    let (scope, namespace) = (parameters.get("scope"), parameters.get("namespace"));
    match scope.text() {
        "" if !scope.is_set() => errors.required(&scope, ""),
        "Namespace" if !namespace.is_set() => {
            errors.required(&namespace, "`parameters.scope` is set to 'Namespace'");
        }
        "Namespace" => errors.rules(&namespace, format::dns_label(namespace.text())),
        "Cluster" if namespace.is_set() => {
            errors.forbidden(&namespace, "`parameters.scope` is set to 'Cluster'");
        }
        _ => errors.supported(&scope, &["Cluster", "Namespace"]),
    }
}

/// Adds the errors in the change of an IngressClass.
pub(super) fn ingress_class_update(live: &Field<'_>, new: &Field<'_>, errors: &mut Errors) {
    let controller = live.at(&["spec", "controller"]);
    errors.immutable(&new.at(&["spec", "controller"]), controller.value);
}
