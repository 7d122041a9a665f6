//! Validation of Endpoints and EndpointSlices.

use std::net::IpAddr;

use serde_json::json;

use super::addresses;
use super::field::{Errors, Field};
use super::{format, selectors};

const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
/// Limits of an EndpointSlice.
const ENDPOINTS_MAX: usize = 1_000;
const ADDRESSES_MAX: usize = 100;
const PORTS_MAX: usize = 20_000;
const HINTS_MAX: usize = 8;
const TOPOLOGY_MAX: usize = 16;

/// Reports whether the object has the address of this server, which may be a loopback address.
fn is_api_server(object: &Field<'_>) -> bool {
    let metadata = object.get("metadata");
    metadata.get("name").text() == "kubernetes" && metadata.get("namespace").text() == "default"
}

/// Adds the errors in Endpoints.
pub(super) fn endpoints(object: &Field<'_>, errors: &mut Errors) {
    for subset in object.get("subsets").items() {
        let lists = [subset.get("addresses"), subset.get("notReadyAddresses")];
        if lists.iter().all(|list| list.is_empty()) {
            let detail = "must specify `addresses` or `notReadyAddresses`";
            errors.required(&subset, detail);
        }
        for address in lists.iter().flat_map(Field::items) {
            let (ip, host, node) = (
                address.get("ip"),
                address.get("hostname"),
                address.get("nodeName"),
            );
            addresses::ip(&ip, errors);
            if !host.is_empty() {
                errors.rules(&host, format::dns_label(host.text()));
            }
            if node.is_set() {
                errors.rules(&node, format::dns_subdomain(node.text()));
            }
            if !is_api_server(object) {
                addresses::endpoint_ip(&ip, errors);
            }
        }
        let ports = subset.get("ports");
        for port in ports.items() {
            let (name, number) = (port.get("name"), port.get("port"));
            match name.text() {
                "" if ports.len() > 1 => errors.required(&name, ""),
                "" => {}
                text => errors.rules(&name, format::dns_label(text)),
            }
            format::range(&number, format::port_number(number.int()), errors);
            errors.required_of(&port.get("protocol"), PROTOCOLS);
            app_protocol(&port, errors);
        }
    }
}

fn app_protocol(port: &Field<'_>, errors: &mut Errors) {
    let protocol = port.get("appProtocol");
    if protocol.is_set() {
        errors.rules(&protocol, format::qualified_name(protocol.text()));
    }
}

/// Adds the errors in an EndpointSlice.
pub(super) fn endpoint_slice(object: &Field<'_>, errors: &mut Errors) {
    let type_ = object.get("addressType");
    errors.required_of(&type_, &["FQDN", "IPv4", "IPv6"]);
    ports(&object.get("ports"), errors);
    let list = object.get("endpoints");
    if list.len() > ENDPOINTS_MAX {
        return errors.not_more(&list, ENDPOINTS_MAX);
    }
    for endpoint in list.items() {
        let list = endpoint.get("addresses");
        if list.is_empty() {
            errors.required(&list, "must contain at least 1 address");
        }
        errors.not_more(&list, ADDRESSES_MAX);
        for address in list.items() {
            self::address(object, &list, &address, errors);
        }
        let node = endpoint.get("nodeName");
        if node.is_set() {
            errors.rules(&node, format::dns_subdomain(node.text()));
        }
        let topology = endpoint.get("deprecatedTopology");
        errors.not_more(&topology, TOPOLOGY_MAX);
        selectors::labels(&topology, errors);
        let host = endpoint.get("hostname");
        if host.is_set() {
            errors.rules(&host, format::dns_label(host.text()));
        }
        hints(&endpoint.get("hints"), errors);
    }
}

fn ports(list: &Field<'_>, errors: &mut Errors) {
    if list.len() > PORTS_MAX {
        return errors.not_more(list, PORTS_MAX);
    }
    let mut names: Vec<&str> = Vec::new();
    for port in list.items() {
        let name = port.get("name");
        if !name.is_empty() {
            errors.rules(&name, format::dns_label(name.text()));
        }
        if names.contains(&name.text()) {
            errors.duplicate(&name.path, name.text());
        }
        names.push(name.text());
        let protocol = port.get("protocol");
        match protocol.is_set() {
            true => errors.supported(&protocol, PROTOCOLS),
            false => errors.required(&protocol, ""),
        }
        app_protocol(&port, errors);
    }
}

fn address(object: &Field<'_>, list: &Field<'_>, address: &Field<'_>, errors: &mut Errors) {
    let (type_, text) = (object.get("addressType").text(), address.text());
    let before = errors.len();
    match type_ {
        "IPv4" | "IPv6" => {
            addresses::ip(address, errors);
            let Some(parsed) = addresses::parse_ip(text).filter(|_| errors.len() == before) else {
                return;
            };
            if type_ == "IPv6" && parsed.to_string() != text {
                let detail = format!("must be in canonical form ({:?})", parsed.to_string());
                return errors.invalid(address, &detail);
            }
            if matches!(parsed, IpAddr::V4(_)) != (type_ == "IPv4") {
                let detail = format!("must be an {type_} address");
                errors.invalid_value(&list.path, json!(text), &detail);
            }
            if !is_api_server(object) {
                addresses::endpoint_ip(address, errors);
            }
        }
        "FQDN" => domain_name(address, errors),
        _ => {}
    }
}

fn domain_name(field: &Field<'_>, errors: &mut Errors) {
    let name = field.text();
    if name.is_empty() {
        return errors.required(field, "");
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let rules = format::dns_subdomain(name);
    if !rules.is_empty() {
        errors.invalid_value(&field.path, json!(name), &rules.join(","));
    } else if !name.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        errors.invalid_value(&field.path, json!(name), detail);
    }
}

fn hints(hints: &Field<'_>, errors: &mut Errors) {
    for field in ["forZones", "forNodes"] {
        let list = hints.get(field);
        if list.len() > HINTS_MAX {
            return errors.not_more(&list, HINTS_MAX);
        }
        let mut names: Vec<&str> = Vec::new();
        for name in list.items().map(|hint| hint.get("name")) {
            if names.contains(&name.text()) {
                errors.duplicate(&name.path, name.text());
            }
            names.push(name.text());
            let rules = match field {
                "forZones" => format::label_value(name.text()),
                _ => format::dns_subdomain(name.text()),
            };
            errors.rules(&name, rules);
        }
    }
}

/// Adds the errors in the change of an EndpointSlice.
pub(super) fn endpoint_slice_update(live: &Field<'_>, new: &Field<'_>, errors: &mut Errors) {
    errors.immutable(&new.get("addressType"), live.get("addressType").value);
}
