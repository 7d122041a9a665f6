//! The plugin `DefaultTolerationSeconds`.

use serde_json::{Value, json};

use crate::object;

/// Adds tolerations of 5 minutes for the taints `not-ready` and `unreachable` of nodes, unless the
/// Pod tolerates these taints already.
pub(super) fn admit(pod: &mut Value) {
    let mut tolerations = object::items(pod, &["spec", "tolerations"]).to_vec();
    for key in [
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
    ] {
        let is_tolerated = tolerations.iter().any(|toleration| {
            // A toleration without key or effect matches all of them.
            let is = |field: &str, value: &str| {
                let own = object::text(toleration, &[field]);
                own.is_empty() || own == value
            };
            is("key", key) && is("effect", "NoExecute")
        });
        if !is_tolerated {
            tolerations.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300,
            }));
        }
    }
    object::set(pod, &["spec", "tolerations"], json!(tolerations));
}
