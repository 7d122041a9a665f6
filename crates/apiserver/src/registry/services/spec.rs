//! Access to the fields of a Service that depend on each other.

use serde_json::Value;

use crate::object;

/// The cluster IP of a headless Service.
pub(crate) const NONE: &str = "None";
/// The type of a Service that is an alias of a DNS name, and that has no cluster IP.
pub(super) const EXTERNAL_NAME: &str = "ExternalName";
pub(super) const LOAD_BALANCER: &str = "LoadBalancer";
pub(super) const NODE_PORT: &str = "NodePort";
pub(super) const CLUSTER_IP: &str = "ClusterIP";
pub(super) const SINGLE_STACK: &str = "SingleStack";
pub(super) const PREFER_DUAL_STACK: &str = "PreferDualStack";
pub(super) const REQUIRE_DUAL_STACK: &str = "RequireDualStack";

/// Returns a string field of the spec, or an empty string if the field is missing.
pub(super) fn text<'a>(service: &'a Value, field: &str) -> &'a str {
    object::text(service, &["spec", field])
}

/// Returns the strings of a list in the spec.
pub(super) fn texts(service: &Value, field: &str) -> Vec<String> {
    let items = object::items(service, &["spec", field]).iter();
    items
        .map(|item| item.as_str().unwrap_or_default().to_owned())
        .collect()
}

/// Sets a field of the spec. An empty string, an empty list, 0 and null remove the field, as in
/// Go's JSON.
pub(super) fn set(service: &mut Value, field: &str, value: Value) {
    let is_empty = match &value {
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        _ => false,
    };
    let value = if is_empty { Value::Null } else { value };
    object::set(service, &["spec", field], value);
}

pub(super) fn ports(service: &Value) -> &[Value] {
    object::items(service, &["spec", "ports"])
}

/// Returns the ports for changes. Returns an empty slice if the Service has no list of ports.
pub(super) fn ports_mut(service: &mut Value) -> &mut [Value] {
    let ports = service.pointer_mut("/spec/ports");
    match ports.and_then(Value::as_array_mut) {
        Some(ports) => ports,
        None => &mut [],
    }
}

/// Returns the node ports of all ports that have one.
pub(super) fn node_ports(service: &Value) -> Vec<i64> {
    let ports = ports(service).iter();
    ports.map(node_port).filter(|port| *port != 0).collect()
}

pub(super) fn node_port(port: &Value) -> i64 {
    object::int(port, &["nodePort"])
}

pub(super) fn health_check_node_port(service: &Value) -> i64 {
    object::int(service, &["spec", "healthCheckNodePort"])
}

pub(crate) fn is_headless(service: &Value) -> bool {
    matches!(object::items(service, &["spec", "clusterIPs"]), [one] if one == NONE)
}

pub(super) fn is_external_name(service: &Value) -> bool {
    text(service, "type") == EXTERNAL_NAME
}

pub(super) fn is_load_balancer(service: &Value) -> bool {
    text(service, "type") == LOAD_BALANCER
}

pub(super) fn has_selector(service: &Value) -> bool {
    object::at(service, &["spec", "selector"])
        .as_object()
        .is_some_and(|selector| !selector.is_empty())
}

/// Reports whether clients outside of the cluster can reach the Service.
pub(super) fn is_externally_accessible(service: &Value) -> bool {
    match text(service, "type") {
        LOAD_BALANCER | NODE_PORT => true,
        CLUSTER_IP => !object::items(service, &["spec", "externalIPs"]).is_empty(),
        _ => false,
    }
}

/// Reports whether load balancers need a port for health checks of the nodes.
pub(super) fn needs_health_check(service: &Value) -> bool {
    is_load_balancer(service) && text(service, "externalTrafficPolicy") == "Local"
}

/// Reports whether each port without a node port gets one.
pub(super) fn allocates_node_ports(service: &Value) -> bool {
    match text(service, "type") {
        NODE_PORT => true,
        LOAD_BALANCER => {
            object::at(service, &["spec", "allocateLoadBalancerNodePorts"]) != &Value::Bool(false)
        }
        _ => false,
    }
}

/// Reports whether the type of the Service can have node ports.
pub(super) fn has_node_ports(service: &Value) -> bool {
    matches!(text(service, "type"), NODE_PORT | LOAD_BALANCER)
}
