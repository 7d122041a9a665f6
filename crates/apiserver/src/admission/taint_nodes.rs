//! The plugin `TaintNodesByCondition`: a new Node is not ready until a controller removes the
//! taint.

use serde_json::{Value, json};

use crate::object;

const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// Adds the taint `not-ready`, unless the Node has it.
pub(super) fn admit(node: &mut Value) {
    let path = ["spec", "taints"];
    let mut taints = object::items(node, &path).to_vec();
    let is_present = taints.iter().any(|taint| {
        object::text(taint, &["key"]) == NOT_READY
            && object::text(taint, &["effect"]) == "NoSchedule"
    });
    if !is_present {
        taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
        object::set(node, &path, json!(taints));
    }
}
