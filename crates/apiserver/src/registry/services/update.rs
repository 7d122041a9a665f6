//! Fields of a Service that an update may leave out, and that a change of the type removes.

use serde_json::{Value, json};

use super::spec;
use crate::object;

/// Sets `clusterIPs` of a new Service from `clusterIP`, for clients that know only that field.
pub(super) fn fill_cluster_ips(service: &mut Value) {
    let address = spec::text(service, "clusterIP").to_owned();
    if !address.is_empty() && spec::texts(service, "clusterIPs").is_empty() {
        spec::set(service, "clusterIPs", json!([address]));
    }
}

/// Removes the internal traffic policy of an external name, which has no traffic.
pub(super) fn drop_internal_traffic_policy(service: &mut Value) {
    if spec::is_external_name(service) {
        object::set(service, &["spec", "internalTrafficPolicy"], Value::Null);
    }
}

/// Copies allocated addresses and ports from `live` if the client has left them out, so that the
/// manifest of a Service can be written again.
pub(super) fn keep_allocated_values(live: &Value, new: &mut Value) {
    if !spec::is_external_name(live) && !spec::is_external_name(new) {
        if spec::text(new, "clusterIP").is_empty() {
            spec::set(new, "clusterIP", json!(spec::text(live, "clusterIP")));
        }
        if spec::texts(new, "clusterIPs").is_empty() {
            spec::set(new, "clusterIPs", json!(spec::texts(live, "clusterIPs")));
        }
    }
    if spec::allocates_node_ports(live) && spec::allocates_node_ports(new) {
        let after = spec::node_ports(new);
        let used: Vec<i64> = spec::node_ports(live)
            .into_iter()
            .filter(|port| after.contains(port))
            .collect();
        let name = |port: &Value| object::text(port, &["name"]).to_owned();
        let before: Vec<(String, i64)> = spec::ports(live)
            .iter()
            .map(|port| (name(port), spec::node_port(port)))
            .collect();
        for port in spec::ports_mut(new) {
            let own = name(port);
            let known = before.iter().rev().find(|(name, _)| *name == own);
            let known = known.map(|(_, node_port)| *node_port).unwrap_or_default();
            if spec::node_port(port) == 0 && known != 0 && !used.contains(&known) {
                object::set_field(port, "nodePort", json!(known));
            }
        }
    }
    if spec::needs_health_check(live)
        && spec::needs_health_check(new)
        && spec::health_check_node_port(new) == 0
    {
        let port = spec::health_check_node_port(live);
        spec::set(new, "healthCheckNodePort", json!(port));
    }
}

/// Sets `clusterIPs` from `clusterIP` if a client has changed only one of the two fields.
pub(super) fn sync_cluster_ips(live: &Value, new: &mut Value) {
    let (before, after) = (spec::text(live, "clusterIP"), spec::text(new, "clusterIP"));
    let (before, after) = (before.to_owned(), after.to_owned());
    let live_list = spec::texts(live, "clusterIPs");
    if spec::texts(new, "clusterIPs").is_empty() && before == after {
        spec::set(new, "clusterIPs", json!(live_list));
    }
    if before != after && spec::texts(new, "clusterIPs") == live_list {
        let list: Vec<String> = Some(after)
            .into_iter()
            .filter(|ip| !ip.is_empty())
            .collect();
        spec::set(new, "clusterIPs", json!(list));
    }
}

/// Removes the fields that do not apply to the new type of a Service, unless the client has changed
/// these fields together with the type.
pub(in crate::registry) fn drop_type_dependent_fields(live: &Value, new: &mut Value) {
    let is_same = |new: &Value, field: &str| {
        object::at(live, &["spec", field]) == object::at(new, &["spec", field])
    };
    let drop = |new: &mut Value, field: &str| object::set(new, &["spec", field], Value::Null);
    if !spec::is_external_name(live) && spec::is_external_name(new) {
        if is_same(new, "clusterIP") && is_same(new, "clusterIPs") {
            drop(new, "clusterIP");
            drop(new, "clusterIPs");
        }
        for field in ["ipFamilies", "ipFamilyPolicy"] {
            if is_same(new, field) {
                drop(new, field);
            }
        }
    }
    if spec::has_node_ports(live) && !spec::has_node_ports(new) {
        let before = spec::node_ports(live);
        let added = spec::node_ports(new)
            .iter()
            .any(|port| !before.contains(port));
        if !added {
            for port in spec::ports_mut(new) {
                object::set(port, &["nodePort"], Value::Null);
            }
        }
    }
    if spec::needs_health_check(live)
        && !spec::needs_health_check(new)
        && is_same(new, "healthCheckNodePort")
    {
        drop(new, "healthCheckNodePort");
    }
    if spec::is_load_balancer(live) && !spec::is_load_balancer(new) {
        for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
            if is_same(new, field) {
                drop(new, field);
            }
        }
    }
    if spec::is_externally_accessible(live)
        && !spec::is_externally_accessible(new)
        && is_same(new, "externalTrafficPolicy")
    {
        drop(new, "externalTrafficPolicy");
    }
    if !spec::is_load_balancer(new) {
        object::set(new, &["status", "loadBalancer"], json!({}));
    }
}
