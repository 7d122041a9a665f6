//! The plugin `PodTopologyLabels`: gives a Pod the labels of the zone and region of its node.

use serde_json::{Value, json};

use crate::object;

const LABELS: [&str; 2] = [
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
];

/// Returns the node that a Pod has, or to which a Binding binds it.
pub(super) fn node_of(object: &Value, is_binding: bool) -> &str {
    let target = object::at(object, &["target"]);
    match (is_binding, object::text(target, &["kind"])) {
        (false, _) => object::text(object, &["spec", "nodeName"]),
        (true, "Node") => object::text(target, &["name"]),
        (true, _) => "",
    }
}

/// Sets the labels of a Pod or of a Binding to those of the node.
pub(super) fn admit(node: &Value, object: &mut Value) {
    for label in LABELS {
        if let Some(value) = object::at(node, &["metadata", "labels", label]).as_str() {
            object::set(object, &["metadata", "labels", label], json!(value));
        }
    }
}
