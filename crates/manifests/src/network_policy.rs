//! NetworkPolicies: who may connect to the metrics and the webhooks, as kubebuilder prints them.

use serde_json::{Value, json};

use crate::deployment::pod_labels;
use crate::model::MetricsPort;
use crate::object::document;

/// Returns the NetworkPolicies of the servers that the operator has. Metrics are for namespaces
/// with the label `metrics: enabled`. Webhooks are open, because the API server is outside of the
/// Pod network in most clusters.
pub(crate) fn policies(
    operator: &str,
    namespace: &str,
    metrics: Option<MetricsPort>,
    webhook_port: Option<u16>,
) -> Vec<Value> {
    let policy = |name: &str, ingress: Value| {
        let name = format!("{operator}-{name}");
        let api = "networking.k8s.io/v1";
        let mut policy = document(operator, api, "NetworkPolicy", &name, Some(namespace));
        let spec = json!({
            "podSelector": {"matchLabels": pod_labels(operator)},
            "policyTypes": ["Ingress"],
            "ingress": [ingress],
        });
        if let Some(fields) = policy.as_object_mut() {
            fields.insert("spec".to_owned(), spec);
        }
        policy
    };
    let mut policies = Vec::new();
    if let Some(metrics) = metrics {
        let from = json!([{"namespaceSelector": {"matchLabels": {"metrics": "enabled"}}}]);
        let ports = json!([{"port": metrics.port, "protocol": "TCP"}]);
        policies.push(policy(
            "allow-metrics-traffic",
            json!({"from": from, "ports": ports}),
        ));
    }
    if let Some(port) = webhook_port {
        let ports = json!([{"port": port, "protocol": "TCP"}]);
        policies.push(policy("allow-webhook-traffic", json!({"ports": ports})));
    }
    policies
}
