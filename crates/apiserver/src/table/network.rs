//! The cells of Services, Ingresses and endpoints.

use std::collections::BTreeSet;

use serde_json::Value;

use super::cell::{integer, items, print, string};

/// Maximum number of list items in a cell; `+ N more...` stands for the other items.
const SHOWN: usize = 3;

/// Returns the first items of a list as text, and the number of items left out. `count` is the
/// number of all items.
fn shortened(list: &[String], count: usize) -> String {
    let shown = list
        .iter()
        .take(SHOWN)
        .cloned()
        .collect::<Vec<_>>()
        .join(",");
    match count.saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} + {more} more..."),
    }
}

fn or_unset(text: String) -> String {
    if text.is_empty() {
        "<unset>".to_owned()
    } else {
        text
    }
}

/// Returns addresses and ports of an Endpoints object.
pub(super) fn endpoints(object: &Value) -> String {
    let subsets = items(object, ".subsets");
    if subsets.is_empty() {
        return "<none>".to_owned();
    }
    let mut list = Vec::new();
    for subset in subsets {
        let addresses = items(subset, ".addresses")
            .iter()
            .map(|address| string(address, ".ip"));
        let ports = items(subset, ".ports");
        if ports.is_empty() {
            list.extend(addresses.map(str::to_owned));
            continue;
        }
        for port in ports {
            let port = integer(port, ".port");
            list.extend(
                addresses
                    .clone()
                    .map(|address| match address.contains(':') {
                        true => format!("[{address}]:{port}"),
                        false => format!("{address}:{port}"),
                    }),
            );
        }
    }
    shortened(&list, list.len())
}

/// Returns the ports of an EndpointSlice. Each port is shown as its number. A port without a number
/// is shown as its name, or as `*` if the port has no name either.
pub(super) fn endpoint_ports(object: &Value) -> String {
    let ports: Vec<String> = items(object, ".ports")
        .iter()
        .map(|port| match (port.get("port"), string(port, ".name")) {
            (Some(number), _) if number.is_number() => number.to_string(),
            (_, "") => "*".to_owned(),
            (_, name) => name.to_owned(),
        })
        .collect();
    or_unset(shortened(&ports, ports.len()))
}

/// Returns the addresses of an EndpointSlice.
pub(super) fn endpoint_addresses(object: &Value) -> String {
    let endpoints = items(object, ".endpoints").iter();
    let addresses: Vec<String> = endpoints
        .flat_map(|endpoint| items(endpoint, ".addresses"))
        .map(print)
        .collect();
    or_unset(shortened(&addresses, addresses.len()))
}

/// Returns the addresses of a load balancer, without duplicates. An address without an IP is shown
/// as its host name.
pub(super) fn load_balancer(object: &Value) -> String {
    let addresses: BTreeSet<&str> = items(object, ".status.loadBalancer.ingress")
        .iter()
        .map(|ingress| match string(ingress, ".ip") {
            "" => string(ingress, ".hostname"),
            ip => ip,
        })
        .filter(|address| !address.is_empty())
        .collect();
    addresses.into_iter().collect::<Vec<_>>().join(",")
}

/// Returns the external addresses of a Service.
pub(super) fn external_ip(service: &Value) -> String {
    let external: Vec<String> = items(service, ".spec.externalIPs")
        .iter()
        .map(print)
        .collect();
    let external = external.join(",");
    let none_as = |text: &str, none: &str| if text.is_empty() { none } else { text }.to_owned();
    match string(service, ".spec.type") {
        "ClusterIP" | "NodePort" => none_as(&external, "<none>"),
        "LoadBalancer" => {
            let balancer = load_balancer(service);
            match (balancer.is_empty(), external.is_empty()) {
                (false, false) => format!("{balancer},{external}"),
                _ => none_as(&format!("{balancer}{external}"), "<pending>"),
            }
        }
        "ExternalName" => string(service, ".spec.externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

/// Returns the ports of a Service, such as `80:30080/TCP,443/TCP`.
pub(super) fn service_ports(service: &Value) -> String {
    let ports = items(service, ".spec.ports").iter().map(|port| {
        let (number, protocol) = (integer(port, ".port"), string(port, ".protocol"));
        match integer(port, ".nodePort") {
            0 => format!("{number}/{protocol}"),
            node_port => format!("{number}:{node_port}/{protocol}"),
        }
    });
    ports.collect::<Vec<_>>().join(",")
}

/// Returns the hosts of an Ingress, or `*` if the Ingress has no hosts.
pub(super) fn ingress_hosts(ingress: &Value) -> String {
    let rules = items(ingress, ".spec.rules");
    let hosts: Vec<String> = rules
        .iter()
        .map(|rule| string(rule, ".host").to_owned())
        .filter(|host| !host.is_empty())
        .collect();
    if hosts.is_empty() {
        return "*".to_owned();
    }
    // As the API server, count all rules here, also those without a host.
    let count = if hosts.len() > SHOWN {
        rules.len()
    } else {
        hosts.len()
    };
    shortened(&hosts, count)
}

/// Returns the ports of an Ingress: `80`, or `80, 443` if the Ingress has TLS.
pub(super) fn ingress_ports(ingress: &Value) -> String {
    match items(ingress, ".spec.tls") {
        [] => "80".to_owned(),
        _ => "80, 443".to_owned(),
    }
}

/// Returns `Kind.group/name` of the parameters of an IngressClass.
pub(super) fn ingress_parameters(class: &Value) -> Option<String> {
    let parameters = class.pointer("/spec/parameters")?;
    let (kind, name) = (string(parameters, ".kind"), string(parameters, ".name"));
    Some(match string(parameters, ".apiGroup") {
        "" => format!("{kind}/{name}"),
        group => format!("{kind}.{group}/{name}"),
    })
}

/// Returns the parent of an IPAddress, such as `services/default/web`.
pub(super) fn parent_reference(address: &Value) -> Option<String> {
    let parent = address.pointer("/spec/parentRef")?;
    let mut text = string(parent, ".resource").to_lowercase();
    for (separator, field) in [('.', ".group"), ('/', ".namespace"), ('/', ".name")] {
        let part = string(parent, field);
        if !part.is_empty() {
            text.push(separator);
            text.push_str(part);
        }
    }
    Some(text)
}
